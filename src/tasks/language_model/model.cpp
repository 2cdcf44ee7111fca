#include "tasks/language_model/model.h"

#include <torch/nn/utils/rnn.h>
#include <torch/types.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "quatrain/train/session.h"
#include "support/numbers.h"
#include "support/stopwatch.h"
#include "train/checksum.h"

namespace quatrain::tasks {
namespace {

namespace fs = std::filesystem;
using data::Pieces;

constexpr const char* kPiecesFile = "text.pieces";

// The same on every machine.
uint64_t seed_of(uint64_t seed, const std::string& line) {
  constexpr int kDigits = 16, kBase = 16;
  return std::stoull(train::checksum(std::to_string(seed) + "\n" + line).substr(0, kDigits), nullptr, kBase);
}

}  // namespace

TextPredictor::TextPredictor(Recipe recipe, Pieces known)
    : Model(std::move(recipe)), pieces(std::move(known)) {
  auto options = own().model;
  network = models::LanguageModel(options.vocabulary_size(pieces.size()));
}

at::Tensor TextPredictor::forward(const std::vector<at::Tensor>& input) {
  TORCH_CHECK_VALUE(input.size() == 1, "language_model: the input must be tokens (B, L), got ", input.size(),
                    " tensors");
  return network->forward(input[0]);
}

std::vector<std::string> TextPredictor::predict(const std::vector<std::string>& lines) {
  const Stopwatch work;
  auto answers = own().score ? scored(lines) : continued(lines);
  seconds_ += work.seconds();
  return answers;
}

std::vector<int64_t> TextPredictor::prompt(const std::string& line) const {
  const auto ids = pieces.encode(line);
  std::vector<int64_t> tokens(ids.begin(), ids.end());
  if (!tokens.empty() && own().mark_ends) tokens.insert(tokens.begin(), Pieces::kEnd);  // of the line before
  return tokens;
}

std::vector<at::Tensor> TextPredictor::inputs(const std::vector<std::string>& lines) {
  std::vector<at::Tensor> prompts;
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto tokens = prompt(lines[i]);
    if (tokens.empty()) throw LineError(i, "the line is empty");
    prompts.push_back(torch::tensor(tokens, torch::kInt64));
  }
  const at::Tensor all = torch::nn::utils::rnn::pad_sequence(prompts, /*batch_first=*/true, Pieces::kPad);
  return {all.to(train::device_of(*network))};
}

std::vector<std::string> TextPredictor::texts(const std::vector<std::vector<int64_t>>& numbers) const {
  std::vector<std::string> all;
  for (const auto& ids : numbers) all.push_back(pieces.decode(ids));
  return all;
}

std::vector<std::string> TextPredictor::continued(const std::vector<std::string>& lines) {
  models::GenerationOptions options = own().generation;
  options.context = own().windows.window;
  options.end = Pieces::kEnd;
  options.never = {Pieces::kPad, Pieces::kBegin};
  if (!own().mark_ends) options.never.push_back(Pieces::kEnd);
  if (!own().unknown) options.never.push_back(Pieces::kUnknown);
  std::vector<std::vector<int64_t>> prompts;
  std::vector<uint64_t> seeds;
  std::vector<size_t> places;
  for (size_t i = 0; i < lines.size(); ++i) {
    auto tokens = prompt(lines[i]);
    if (tokens.empty()) continue;
    cut_ += std::ssize(tokens) > options.context;
    prompts.push_back(std::move(tokens));
    seeds.push_back(seed_of(own().seed, lines[i]));
    places.push_back(i);
  }
  const auto found = models::generate(network, prompts, seeds, options);
  std::vector<std::string> answers(lines.size());
  for (size_t i = 0; i < found.size(); ++i) {
    if (!found[i].finite) throw LineError(places[i], "the model's scores are not finite");
    answers[places[i]] = pieces.decode_following(found[i].tokens);
    written_ += static_cast<int64_t>(found[i].tokens.size());
  }
  return answers;
}

std::vector<std::string> TextPredictor::scored(const std::vector<std::string>& lines) {
  std::vector<std::vector<int32_t>> texts;
  for (const std::string& line : lines) {
    auto& text = texts.emplace_back(pieces.encode(line));
    if (text.empty() || !own().mark_ends) continue;
    text.insert(text.begin(), Pieces::kEnd);  // of the line before
    text.push_back(Pieces::kEnd);
  }
  const auto found = models::score_texts(network, texts, own().windows);
  std::vector<std::string> answers(lines.size());
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i].tokens == 0) continue;
    if (!std::isfinite(found[i].log_probability)) throw LineError(i, "the model's scores are not finite");
    std::array<char, 80> text{};
    std::snprintf(text.data(), text.size(), "%.4f\t%.6g", found[i].log_probability,
                  std::exp(-found[i].log_probability / static_cast<double>(found[i].tokens)));
    answers[i] = text.data();
    read_ += found[i].tokens;
  }
  return answers;
}

std::string TextPredictor::summary() const {
  const int64_t tokens = written_ + read_;
  if (tokens == 0) return {};
  std::string text = counted(tokens, "token") + (read_ > 0 ? " scored, " : " written, ") +
                     std::to_string(std::llround(static_cast<double>(tokens) / seconds_)) + " a second";
  if (cut_ > 0)
    text += "; of " + counted(cut_, "line") + " only the last " + std::to_string(own().windows.window) +
            " tokens were read";
  return text;
}

void TextPredictor::store(const fs::path& folder) const {
  pieces.save(folder / kPiecesFile);
}

Pieces TextPredictor::load_pieces(const fs::path& folder) {
  return Pieces::load(folder / kPiecesFile);
}

// The weights of component-wise attention mean something else than those of real attention.
std::unique_ptr<Model> TextPredictor::in_algebra(const std::string& algebra) const {
  Recipe recipe = recipe_alone();
  recipe.own<LanguageOptions>().model.algebra(algebra).attention(nn::AttentionKind::real);
  check(recipe);
  return std::make_unique<TextPredictor>(std::move(recipe), pieces);
}

}  // namespace quatrain::tasks
