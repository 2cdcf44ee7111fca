#include "tasks/speech/model.h"

#include <torch/nn/utils/rnn.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>

#include "quatrain/data/back_off_model.h"
#include "quatrain/models/word_model.h"
#include "quatrain/nn/safetensors.h"
#include "support/numbers.h"
#include "support/text.h"

namespace quatrain::tasks {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBuffers = "features_";  // before the names of a normalisation's state
constexpr const char* kTransitions = "transitions.safetensors";

void write_state(const std::map<std::string, at::Tensor>& state, const fs::path& file) {
  nn::write_safetensors(file, {state.begin(), state.end()});
}

std::map<std::string, at::Tensor> read_state(const fs::path& file) {
  std::map<std::string, at::Tensor> state;
  for (const auto& [name, tensor] : nn::read_safetensors(file).tensors) state[name] = tensor;
  return state;
}

}  // namespace

std::vector<std::string> texts_of(std::span<const HeardToken> tokens) {
  std::vector<std::string> texts;
  for (const auto& token : tokens) texts.push_back(token.text);
  return texts;
}

std::vector<HeardToken> timed_of(const SpeechTaskOptions& options, std::span<const HeardToken> tokens) {
  if (!options.of_characters()) return {tokens.begin(), tokens.end()};
  std::vector<HeardToken> words;
  for (auto token = tokens.begin(); token != tokens.end();) {
    const auto end = std::find_if(token, tokens.end(), [](const auto& one) { return one.is_gap(); });
    if (const auto count = end - token; count > 0) {
      HeardToken word{"", token->begin, (end - 1)->end, 0};
      for (; token != end; ++token) {
        word.text += token->text;
        word.confidence += token->confidence / static_cast<double>(count);
      }
      words.push_back(std::move(word));
    }
    if (token != tokens.end()) ++token;
  }
  return words;
}

void SpeechParts::save(const fs::path& folder) const {
  classes.save(folder);
  if (transitions) write_state(transitions->state(), folder / kTransitions);
}

SpeechParts SpeechParts::load(const SpeechTaskOptions& options, const fs::path& folder) {
  SpeechParts parts{SpeechClasses::load(folder), {}};
  if (options.objective == Objective::frames) {
    parts.transitions.emplace(parts.classes.size());
    parts.transitions->load(read_state(folder / kTransitions));
  }
  return parts;
}

SpeechModel::SpeechModel(Recipe recipe, SpeechParts given, const data::Normalisation& training)
    : Model(std::move(recipe)), parts(std::move(given)), network(own().network(parts.classes.size())) {
  for (const auto& [name, tensor] : training.state()) network->register_buffer(kBuffers + name, tensor);
  recipe_.own<SpeechTaskOptions>().classes_named = parts.classes.are_named();
  if (own().decode.language.empty()) return;
  language_ = std::make_shared<const data::BackOffModel>(own().decode.language);
  ctc_options(/*best_path=*/false);  // not only after training does it show that words are missing
}

data::Normalisation SpeechModel::empty_normalisation(const SpeechTaskOptions& options) {
  return data::Normalisation(options.bank.bands, options.components(), options.scale);
}

data::Normalisation SpeechModel::training_normalisation() const {
  data::Normalisation normalisation = empty_normalisation(own());
  std::map<std::string, at::Tensor> state;
  for (const auto& [name, tensor] : normalisation.state())
    state[name] = network->named_buffers()[kBuffers + name].to(at::kCPU, tensor.scalar_type());
  normalisation.load(state);
  return normalisation;
}

at::Tensor SpeechModel::forward(const std::vector<at::Tensor>& input) {
  TORCH_CHECK_VALUE(
      (input.size() == 2 || input.size() == 4) && input[0].dim() == 2 && input[1].dim() == 1,
      "speech: the input must be rows (N, ", own().inputs(),
      ") and the batch sizes of their steps, and the order of the utterances (two tensors) or none, got ",
      input.size(), " tensors");
  return network->forward(torch::nn::utils::rnn::PackedSequence(input[0], input[1].cpu()));
}

at::Tensor SpeechModel::stacked(const at::Tensor& features) const {
  const int64_t stack = own().stack, bands = own().bank.bands;
  if (stack == 1) return features;
  const int64_t rows = (features.size(0) + stack - 1) / stack;
  const at::Tensor filled = torch::constant_pad_nd(features, {0, 0, 0, rows * stack - features.size(0)});
  return filled.view({rows, stack, own().components(), bands})
      .transpose(1, 2)
      .reshape({rows, own().inputs()});
}

models::CtcDecoderOptions SpeechModel::ctc_options(bool best_path) const {
  const auto& decode = own().decode;
  models::CtcDecoderOptions options;
  options.blank = SpeechClasses::kBlank;
  if (best_path) return options;
  options.beam = decode.beam;
  // Of characters several may read the same, with more or fewer gaps.
  options.best = decode.best > 1 && own().of_characters() ? decode.beam : decode.best;
  options.token_threshold = decode.threshold;
  options.insertion_bonus = decode.insertion;
  options.language_weight = decode.language_weight;
  if (!language_) return options;
  options.language = models::as_word_model(language_);
  options.words.push_back(-1);  // the blank's
  for (int64_t id = SpeechClasses::kBlank + 1; id < parts.classes.size(); ++id) {
    options.words.push_back(language_->word(parts.classes.name(id)));
    if (options.words.back() < 0)
      throw RecipeError("decode.language: " + own().decode.language.string() + " has neither " +
                        quote(parts.classes.name(id)) + ", which the model can answer, nor <unk>");
  }
  return options;
}

std::string SpeechModel::written(std::span<const HeardToken> tokens, double length) const {
  std::string text = text_of(own(), texts_of(tokens));
  if (own().objective == Objective::utterance && !tokens.empty())
    text += "\t" + fixed(tokens.front().confidence, 4);
  if (!own().decode.times) return text;
  text += "\t";
  const auto timed = timed_of(own(), tokens);
  for (const auto& token : timed) {
    const auto time = [&](int64_t row) {
      return fixed(std::min(static_cast<double>(row) * own().row_seconds(), length), 2);
    };
    text += (&token == &timed.front() ? "" : " ") + time(token.begin) + "-" + time(token.end);
  }
  return text;
}

std::string SpeechModel::written(std::span<const HeardAnswer> answers, double length) const {
  constexpr int kDigits = 4;
  std::string text;
  for (const auto& answer : answers) {
    if (&answer != &answers.front()) text += "\t";
    if (own().decode.scores) text += fixed(answer.score, kDigits) + "\t";
    text += written(answer.tokens, length);
  }
  return text;
}

void SpeechModel::require_heard(const std::string& what, int64_t samples) const {
  TORCH_CHECK(own().objective != Objective::utterance, what, " is too short to be heard: it has ",
              counted(samples, "sample"));
}

std::string SpeechModel::summary() const {
  if (heard_ == 0) return {};
  return fixed(heard_, 1) + " s heard in " + seconds(worked_) + ", " + fixed(heard_ / worked_, 1) +
         " times as fast as spoken";
}

void SpeechModel::count(double heard, double worked) {
  heard_ += heard;
  worked_ += worked;
}

std::vector<std::string> SpeechModel::keeps_own(const fs::path& checkpoint) const {
  const fs::path stored = checkpoint / "recipe.toml";
  if (!fs::exists(stored)) return {};
  const Recipe trained = read_recipe(stored.string());
  if (trained.kind != recipe_.kind) return {};  // other weights, as loading them tells
  const std::string others = join(differing_keys(recipe_, trained, [](const train::Key& key) {
    return key.table == "features" && !key.free && !key.augments;
  }));
  if (!others.empty())
    throw RecipeError("train.weights: the model in " + checkpoint.string() + " hears other features (" +
                      others + "): set them as in its recipe.toml");
  if (SpeechClasses::load(checkpoint) == parts.classes) return {};
  return {"output"};
}

std::unique_ptr<Model> SpeechModel::in_algebra(const std::string& algebra) const {
  if (own().model.dense() > 0 && own().model.bidirectional())
    throw RecipeError(
        "model.dense of a bidirectional network reads its directions in another order in each algebra: train "
        "the network in " +
        algebra + " anew");
  Recipe recipe = recipe_alone();
  recipe.own<SpeechTaskOptions>().model.algebra(algebra);
  check(recipe);
  return std::make_unique<SpeechModel>(std::move(recipe), parts, training_normalisation());
}

}  // namespace quatrain::tasks
