#include "tasks/seq2seq/model.h"

#include <torch/types.h>

#include <algorithm>

#include "support/numbers.h"
#include "support/text.h"
#include "tasks/recipe_keys.h"
#include "train/checksum.h"

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

std::string PairPieces::checksum(const fs::path& folder, bool joint) {
  std::string both = train::checksum_of_file(folder / kSourceFile);
  if (!joint && fs::exists(folder / kTargetFile)) both += train::checksum_of_file(folder / kTargetFile);
  return train::checksum(both);
}

Seq2SeqModel::Seq2SeqModel(Recipe recipe, PairPieces known)
    : Model(std::move(recipe)), pieces(std::move(known)) {
  if (own().translation.search.beam > pieces.target.size())
    recipe_.refuse("decode.beam", "must be at most the " + grouped(pieces.target.size()) +
                                      " tokens of the vocabulary, got " +
                                      std::to_string(own().translation.search.beam));
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

void Seq2SeqModel::answer_with(const Model& other) {
  const auto* same = dynamic_cast<const Seq2SeqModel*>(&other);
  if (!same) return Model::answer_with(other);
  if (!(same->pieces == pieces))
    throw RecipeError("their pieces differ, so that their probabilities are not of the same tokens");
  const auto& options = same->network->options;
  const int64_t shortest = own().translation.search.shortest;
  if (options.positions() == models::Positions::learned && shortest >= options.max_length())
    throw RecipeError(
        "decode.shortest must be below model.max_positions = " + std::to_string(options.max_length()) +
        " of the latter, got " + std::to_string(shortest));
  others_.push_back(same->network);
}

models::Ensemble Seq2SeqModel::ensemble() const {
  std::vector<models::Seq2Seq> all{network};
  all.insert(all.end(), others_.begin(), others_.end());
  return models::Ensemble(std::move(all));
}

// The weights of component-wise attention mean something else than those of real attention.
std::unique_ptr<Model> Seq2SeqModel::in_algebra(const std::string& algebra) const {
  Recipe recipe = recipe_alone();
  recipe.own<Seq2SeqTaskOptions>().model.algebra(algebra).attention(nn::AttentionKind::real);
  check(recipe);
  return std::make_unique<Seq2SeqModel>(std::move(recipe), pieces);
}

}  // namespace quatrain::tasks
