#include <torch/nn/utils/rnn.h>
#include <torch/types.h>

#include "quatrain/data/audio.h"
#include "quatrain/train/session.h"
#include "support/numbers.h"
#include "support/stopwatch.h"
#include "support/text.h"
#include "tasks/speech/model.h"
#include "tasks/speech/recogniser.h"

namespace quatrain::tasks {
namespace {

namespace fs = std::filesystem;
namespace rnn = torch::nn::utils::rnn;

constexpr int64_t kMostRatio = 256;  // of a recording's rate and the run's, for the resampler
constexpr int64_t kPortion = 10;     // seconds of a file that are heard at a time

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

// work(i, lines[i]) in turn, whose errors become those of the line.
void for_each_line(const std::vector<std::string>& lines,
                   const std::function<void(const std::string&)>& work) {
  for (size_t i = 0; i < lines.size(); ++i) {
    try {
      work(lines[i]);
    } catch (const c10::Error& error) {
      throw LineError(i, error.what_without_backtrace());
    } catch (const LineError& error) {
      throw LineError(i, error.what());
    }
  }
}

}  // namespace

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

data::AudioInfo SpeechModel::info_of(const std::string& path) const {
  const data::AudioInfo info = data::read_audio_info(path);
  check_rate(path, info.rate, own().bank.rate);
  return info;
}

// The file is read once, a portion at a time, and nothing of it is kept.
void SpeechModel::hear(const std::string& path, int64_t rate,
                       const std::function<void(const at::Tensor&)>& take) const {
  SoundFeatures sound(own(), rate);
  for_each_portion(path, [&](const at::Tensor& samples) { sound.push(samples, take); });
  sound.finish(take);
}

std::optional<data::Normalisation> SpeechModel::normalisation_of(const std::string& path,
                                                                 int64_t rate) const {
  if (own().normalise == NormaliseBy::none) return {};
  if (own().normalise == NormaliseBy::training) return training_normalisation();
  data::Normalisation of_file = empty_normalisation(own());
  hear(path, rate, [&](const at::Tensor& features) { of_file.add(features); });
  return of_file.frames() > 0 ? of_file : training_normalisation();
}

std::string SpeechModel::answer(const std::string& path) {
  const Stopwatch work;
  const data::AudioInfo info = info_of(path);
  const auto by = normalisation_of(path, info.rate);
  Recogniser recogniser(*this, info.rate, by ? &*by : nullptr);
  for_each_portion(path, [&](const at::Tensor& samples) { recogniser.push(samples); });
  const auto heard = recogniser.finish();
  if (heard.front().tokens.empty()) require_heard("the audio file " + path, info.frames);
  std::string text = written(heard, info.seconds());
  count(info.seconds(), work.seconds());
  return text;
}

std::vector<std::string> SpeechModel::predict(const std::vector<std::string>& lines) {
  std::vector<std::string> answers;
  for_each_line(lines, [&](const std::string& path) { answers.push_back(answer(path)); });
  return answers;
}

at::Tensor SpeechModel::rows_of(const std::string& path) const {
  const data::AudioInfo info = info_of(path);
  const auto by = normalisation_of(path, info.rate);
  std::vector<at::Tensor> all;
  hear(path, info.rate,
       [&](const at::Tensor& features) { all.push_back(by ? by->apply(features) : features); });
  const at::Tensor rows = stacked(torch::cat(all));
  TORCH_CHECK(rows.size(0) > 0, "the audio file ", path, " is too short to be heard: it has ",
              counted(info.frames, "sample"));
  return rows;
}

std::vector<at::Tensor> SpeechModel::inputs(const std::vector<std::string>& lines) {
  std::vector<at::Tensor> recordings;
  for_each_line(lines, [&](const std::string& path) { recordings.push_back(rows_of(path)); });
  const auto packed = rnn::pack_sequence(recordings, /*enforce_sorted=*/false).to(train::device_of(*network));
  return {packed.data(), packed.batch_sizes(), packed.sorted_indices(), packed.unsorted_indices()};
}

}  // namespace quatrain::tasks
