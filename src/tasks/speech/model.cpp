#include "tasks/speech/model.h"

#include <torch/nn/utils/rnn.h>
#include <torch/types.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "ops/memory/step_memory.h"
#include "quatrain/data/audio.h"
#include "quatrain/data/back_off_model.h"
#include "quatrain/models/word_model.h"
#include "quatrain/nn/safetensors.h"
#include "support/numbers.h"
#include "support/text.h"
#include "tasks/speech/news.h"
#include "tasks/speech/recogniser.h"

namespace quatrain::tasks {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBuffers = "features_";  // before the names of a normalisation's state
constexpr const char* kAgain = "= ";           // before an answer of which told words are others now
constexpr const char* kTransitions = "transitions.safetensors";
constexpr int64_t kMostRatio = 256;  // of a recording's rate and the run's, for the resampler
constexpr int64_t kPortion = 10;     // seconds of a file that are heard at a time

void write_state(const std::map<std::string, at::Tensor>& state, const fs::path& file) {
  nn::write_safetensors(file, {state.begin(), state.end()});
}

std::map<std::string, at::Tensor> read_state(const fs::path& file) {
  std::map<std::string, at::Tensor> state;
  for (const auto& [name, tensor] : nn::read_safetensors(file).tensors) state[name] = tensor;
  return state;
}

// A file in portions, the mean of its channels.
void for_each_portion(const fs::path& path, const std::function<void(const at::Tensor&)>& take) {
  data::AudioFile file(path);
  for (;;) {
    const at::Tensor samples = file.read(kPortion * file.info().rate);
    if (samples.size(1) == 0) return;
    take(data::mix_channels(samples));
  }
}

// The resampler knows no file's name.
void check_rate(const fs::path& path, int64_t rate, int64_t wanted) {
  TORCH_CHECK(rate <= kMostRatio * wanted && wanted <= kMostRatio * rate, "audio: ", path.string(), " has ",
              counted(rate, "sample"), " a second, and the run hears ", wanted,
              " (features.rate): they must differ by a factor of at most ", kMostRatio,
              "; convert it, for example by: ffmpeg -i FILE -ar ", wanted, " FILE.wav");
}

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

class SpeechLive : public Live {
 public:
  SpeechLive(SpeechModel& model, int64_t rate)
      : model_(model),
        rate_(rate),
        training_(model.training_normalisation()),
        recogniser_(model, rate, model.own().normalise == NormaliseBy::training ? &training_ : nullptr) {}
  std::string push(const at::Tensor& samples) override {
    const Stopwatch work;
    const ops::StepMemory::Guard memory(memory_);
    samples_ += samples.size(0);
    recogniser_.push(samples);
    std::string news = told_of(recogniser_.heard());
    model_.count(static_cast<double>(samples.size(0)) / static_cast<double>(rate_), work.seconds());
    return news;
  }
  std::string finish() override {
    const Stopwatch work;
    const auto heard = recogniser_.finish();
    if (heard.front().tokens.empty()) model_.require_heard("the sound", samples_);
    std::string answer = model_.written(heard, length());
    model_.count(0, work.seconds());
    told_.clear();
    samples_ = 0;
    return answer;
  }

 private:
  double length() const { return static_cast<double>(samples_) / static_cast<double>(rate_); }

  // Not the whole answer, which would be repeated as long as somebody speaks.
  std::string told_of(const std::vector<HeardToken>& heard) {
    const auto now = settled(heard);
    auto [tokens, again] =
        news_of(told_, now, [this](const HeardToken& a, const HeardToken& b) { return same(a, b); });
    if (!again && model_.own().of_characters()) {
      const auto first = std::ranges::find_if_not(tokens, &HeardToken::is_gap);
      tokens = tokens.subspan(static_cast<size_t>(first - tokens.begin()));
    }
    std::string line = again ? kAgain : "";
    if (again || !tokens.empty()) line += model_.written(tokens, length());
    told_.assign(now.begin(), now.end());
    return line;
  }

  // What may still grow waits for what follows it: a word of characters, and the time of a token.
  std::span<const HeardToken> settled(std::span<const HeardToken> heard) const {
    size_t waiting = 0;
    if (model_.own().of_characters())
      waiting = static_cast<size_t>(std::ranges::find_if(heard.rbegin(), heard.rend(), &HeardToken::is_gap) -
                                    heard.rbegin()) +
                1;
    else if (model_.own().decode.times && model_.own().objective != Objective::utterance)
      waiting = 1;
    return heard.first(heard.size() - std::min(waiting, heard.size()));
  }

  // That two tokens read the same in an answer.
  bool same(const HeardToken& a, const HeardToken& b) const {
    constexpr double kWritten = 1e4;  // of a probability
    const auto& own = model_.own();
    return a.text == b.text && (!own.decode.times || (a.begin == b.begin && a.end == b.end)) &&
           (own.objective != Objective::utterance ||
            std::llround(a.confidence * kWritten) == std::llround(b.confidence * kWritten));
  }

  SpeechModel& model_;
  int64_t rate_;
  int64_t samples_ = 0;           // so far
  std::vector<HeardToken> told_;  // of the answer
  data::Normalisation training_;
  ops::StepMemory memory_;  // of a push: features, network and scores
  Recogniser recogniser_;
};

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
    state[name] = network->named_buffers()[kBuffers + name].cpu();
  normalisation.load(state);
  return normalisation;
}

at::Tensor SpeechModel::forward(const std::vector<at::Tensor>& input) {
  TORCH_CHECK_VALUE(input.size() == 2 && input[0].dim() == 2 && input[1].dim() == 1,
                    "speech: the input must be rows (N, ", own().inputs(),
                    ") and the batch sizes of their steps");
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

std::string SpeechModel::line_problem(const std::string& line) const {
  if (!own().answers_lines())
    throw RecipeError(
        "this run reads stored features (features.source = stored), it cannot hear audio files");
  std::error_code error;
  if (fs::status(line, error).type() == fs::file_type::not_found)
    return "there is no audio file " + quote(line);
  try {
    check_file(line);
  } catch (const std::invalid_argument& problem) {
    return "the audio file " + quote(line) + " cannot be read: " + problem.what();
  }
  return "";
}

std::string SpeechModel::answer(const std::string& path) {
  const Stopwatch work;
  const data::AudioInfo info = data::read_audio_info(path);
  check_rate(path, info.rate, own().bank.rate);
  const data::Normalisation training = training_normalisation();
  const data::Normalisation* by = &training;
  data::Normalisation of_file = empty_normalisation(own());
  if (own().normalise == NormaliseBy::none) by = nullptr;
  if (own().normalise == NormaliseBy::speaker || own().normalise == NormaliseBy::utterance) {
    SoundFeatures sound(own(), info.rate);
    const auto add = [&](const at::Tensor& features) { of_file.add(features); };
    for_each_portion(path, [&](const at::Tensor& samples) { sound.push(samples, add); });
    sound.finish(add);
    if (of_file.frames() > 0) by = &of_file;
  }
  Recogniser recogniser(*this, info.rate, by);
  for_each_portion(path, [&](const at::Tensor& samples) { recogniser.push(samples); });
  const auto heard = recogniser.finish();
  if (heard.front().tokens.empty()) require_heard("the audio file " + path, info.frames);
  std::string text = written(heard, info.seconds());
  count(info.seconds(), work.seconds());
  return text;
}

std::vector<std::string> SpeechModel::predict(const std::vector<std::string>& lines) {
  std::vector<std::string> answers;
  for (size_t i = 0; i < lines.size(); ++i) {
    try {
      answers.push_back(answer(lines[i]));
    } catch (const c10::Error& error) {
      throw LineError(i, error.what_without_backtrace());
    } catch (const LineError& error) {
      throw LineError(i, error.what());
    }
  }
  return answers;
}

std::unique_ptr<Live> SpeechModel::listen(int64_t rate) {
  if (own().source.stored_features)
    throw RecipeError("a run of stored features (features.source) cannot hear sound");
  if (own().model.bidirectional())
    throw RecipeError(
        "a bidirectional model needs the end of a recording before it can answer: train one with "
        "model.bidirectional = false, or pass the whole file");
  if (own().normalise != NormaliseBy::training && own().normalise != NormaliseBy::none)
    throw RecipeError("features.normalise = " + std::string(name(own().normalise)) +
                      " needs the whole recording before it can answer: train with features.normalise = "
                      "training, or pass the whole file");
  return std::make_unique<SpeechLive>(*this, rate > 0 ? rate : own().bank.rate);
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
