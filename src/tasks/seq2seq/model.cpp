#include "tasks/seq2seq/model.h"

#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "support/numbers.h"
#include "support/text.h"

namespace quatrain::tasks {
namespace {

namespace fs = std::filesystem;
using data::Pieces;

constexpr const char* kSourceFile = "source.pieces";
constexpr const char* kTargetFile = "target.pieces";

// The tokens of each phrase of decode.banned.
std::vector<std::vector<int64_t>> banned_tokens(const Recipe& recipe, const Pieces& pieces) {
  const std::string& phrases = recipe.own<Seq2SeqTaskOptions>().banned;
  constexpr std::string_view kBetween = " | ";
  std::vector<std::vector<int64_t>> all;
  for (size_t begin = 0; begin < phrases.size();) {
    const size_t end = std::min(phrases.find(kBetween, begin), phrases.size());
    const std::string phrase = phrases.substr(begin, end - begin);
    begin = end + kBetween.size();
    if (phrase == pieces.piece(Pieces::kUnknown)) {
      all.push_back({Pieces::kUnknown});
      continue;
    }
    const auto ids = pieces.encode(phrase);
    if (ids.empty())
      recipe.refuse("decode.banned", "must have phrases with \" | \" between, got " + quote(phrases));
    if (std::find(ids.begin(), ids.end(), Pieces::kUnknown) != ids.end())
      recipe.refuse("decode.banned",
                    "has " + quote(phrase) + ", which the target's vocabulary cannot write: leave it out");
    all.emplace_back(ids.begin(), ids.end());
  }
  return all;
}

}  // namespace

void PairPieces::save(const fs::path& folder) const {
  source.save(folder / kSourceFile);
  if (!(source == target)) target.save(folder / kTargetFile);
}

PairPieces PairPieces::load(const fs::path& folder, bool joint) {
  const Pieces source = Pieces::load(folder / kSourceFile);
  return {source, joint || !fs::exists(folder / kTargetFile) ? source : Pieces::load(folder / kTargetFile)};
}

Seq2SeqModel::Seq2SeqModel(Recipe recipe, PairPieces known)
    : Model(std::move(recipe)), pieces(std::move(known)) {
  auto options = own().model;
  options.source_vocabulary(pieces.source.size()).target_vocabulary(pieces.target.size());
  network = models::Seq2Seq(options);
  banned_ = banned_tokens(recipe_, pieces.target);
}

at::Tensor Seq2SeqModel::forward(const std::vector<at::Tensor>& input) {
  TORCH_CHECK_VALUE(input.size() == 2 || input.size() == 4,
                    "seq2seq: the input must be source (B, S) and target (B, L), and the padding of both or "
                    "none, got ",
                    input.size(), " tensors");
  if (input.size() == 2) return network->forward(input[0], input[1]);
  return network->forward(input[0], input[1], input[2], input[3]);
}

Seq2SeqModel::Source Seq2SeqModel::encode(const std::string& line) const {
  const auto ids = pieces.source.encode(line);
  const auto count = static_cast<int64_t>(ids.size());
  int64_t most = count;
  if (own().limits.max_source > 0) most = std::min(most, own().limits.max_source);
  if (own().model.positions() == models::Positions::learned)
    most = std::min(most, own().model.max_length() - 1);
  Source source{{ids.begin(), ids.begin() + most}, count == 0, most < count};
  source.tokens.push_back(Pieces::kEnd);
  return source;
}

std::vector<std::vector<models::Hypothesis>> Seq2SeqModel::translate(
    const std::vector<std::vector<int64_t>>& sources, const models::TranslationOptions& asked,
    const std::function<void()>& after_batch) {
  models::TranslationOptions options = asked;
  options.search.banned = banned_;
  if (own().model.positions() == models::Positions::learned)
    options.longest = std::min(options.longest, own().model.max_length() - 1);
  return models::translate(network, sources, options, {}, after_batch);
}

std::vector<std::string> Seq2SeqModel::predict(const std::vector<std::string>& lines) {
  const auto start = std::chrono::steady_clock::now();
  // An empty line has an empty answer.
  std::vector<std::vector<int64_t>> sources;
  std::vector<size_t> places;
  for (size_t i = 0; i < lines.size(); ++i) {
    Source source = encode(lines[i]);
    if (source.empty) continue;
    cut_ += source.cut;
    sources.push_back(std::move(source.tokens));
    places.push_back(i);
  }
  std::vector<std::string> answers(lines.size());
  const auto found = translate(sources, own().translation);
  for (size_t i = 0; i < sources.size(); ++i) {
    std::string& answer = answers[places[i]];
    for (const auto& hypothesis : found[i]) {
      if (!std::isfinite(hypothesis.score)) throw LineError(places[i], "the model's scores are not finite");
      if (&hypothesis != &found[i].front()) answer += '\t';
      if (own().scores) {
        std::array<char, 32> number{};
        std::snprintf(number.data(), number.size(), "%.4f\t", hypothesis.score);
        answer += number.data();
      }
      answer += pieces.target.decode(hypothesis.tokens);
    }
    tokens_ += static_cast<int64_t>(found[i].front().tokens.size()) + 1;
  }
  seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return answers;
}

std::string Seq2SeqModel::summary() const {
  if (tokens_ == 0) return {};
  std::string text = counted(tokens_, "token") + " written, " +
                     std::to_string(std::llround(static_cast<double>(tokens_) / seconds_)) + " a second";
  if (cut_ > 0)
    text += "; " + counted(cut_, "line") + " cut at " + std::to_string(own().limits.max_source) + " tokens";
  return text;
}

void Seq2SeqModel::check_same_meaning(const fs::path& checkpoint) const {
  const auto known = PairPieces::load(checkpoint, own().joint);
  if (!(known == pieces))
    throw RecipeError("train.weights: the vocabulary of the run '" + recipe_.weights + "' (" +
                      std::to_string(known.source.size()) + " and " + std::to_string(known.target.size()) +
                      " pieces) differs from the vocabulary of these data (" +
                      std::to_string(pieces.source.size()) + " and " + std::to_string(pieces.target.size()) +
                      "): use the data and the [vocabulary] of that run");
}

// The weights of component-wise attention mean something else than those of real attention.
std::unique_ptr<Model> Seq2SeqModel::in_algebra(const std::string& algebra) const {
  Recipe recipe = recipe_;
  recipe.twins.clear();
  recipe.origins.clear();
  recipe.own<Seq2SeqTaskOptions>().model.algebra(algebra).attention(nn::AttentionKind::real);
  check(recipe);
  return std::make_unique<Seq2SeqModel>(std::move(recipe), pieces);
}

}  // namespace quatrain::tasks
