#include <algorithm>
#include <cmath>

#include "data/flac_files.h"
#include "quatrain/data/audio.h"
#include "quatrain/data/resampler.h"
#include "tasks/speech/recogniser.h"
#include "tasks/speech_runs.h"

namespace quatrain::tasks {
namespace {

using SpeechSoundTest = SpeechRuns;

// Resampler, features, normalisation, rows and network, bit by bit and all at once.
TEST_F(SpeechSoundTest, ScoresOfPiecesAreThoseOfTheWhole) {
  test::write_tones(folder_ / "tones", 8, 2, 2, 3);
  const at::Tensor said = data::read_audio(file("test0.wav")).samples[0];
  std::vector<int16_t> samples;
  const at::Tensor faster = data::resample(said, test::kRate, 11025).contiguous();
  for (int64_t i = 0; i < faster.size(0); ++i)
    samples.push_back(static_cast<int16_t>(faster[i].item<float>() * 32768));
  test::write_recording(file("test0.wav"), samples, 11025);
  std::ofstream(file("test.tsv")) << "test0.wav\tlow\n";
  learn({"features.stack=3", "train.epochs=1"});
  const torch::NoGradGuard no_grad;
  const auto run = load_run(folder_ / "run");
  auto& model = dynamic_cast<SpeechModel&>(*run);
  const auto data = load_data(model.recipe(), {(folder_ / "tones").string(), "test", &model});
  const at::Tensor whole = model.forward(data->inputs("test", model.recipe(), 1, 1)[0].tensors);
  const at::Tensor sound = data::read_audio(file("test0.wav")).samples[0];
  const data::Normalisation training = model.training_normalisation();
  for (const int64_t piece : {101, 1777, 100000}) {
    SoundFeatures features(model.own(), 11025);
    ScoreStream stream(model);
    std::vector<at::Tensor> scores;
    const auto take = [&](const at::Tensor& frames) {
      scores.push_back(stream.push(training.apply(frames)));
    };
    for (const at::Tensor& part : sound.split(piece)) features.push(part, take);
    features.finish(take);
    scores.push_back(stream.finish());
    EXPECT_LT((torch::cat(scores) - whole).abs().max().item<double>(), 1e-5) << piece;
  }
}

// One sound in other files: as stereo, with other widths, compressed.
TEST_F(SpeechSoundTest, OneSoundHasOneAnswerInEachFormat) {
  test::write_tones(folder_ / "tones", 120, 4, 4, 4);
  learn({"decode.beam=4"});
  const at::Tensor sound = data::read_audio(file("test0.wav")).samples[0] * 32768;
  std::vector<int16_t> mono, one_side;
  std::string wide, narrow;
  for (int64_t i = 0; i < sound.size(0); ++i) {
    const auto sample = static_cast<int16_t>(sound[i].item<float>());
    mono.push_back(sample);
    one_side.insert(one_side.end(), {static_cast<int16_t>(2 * sample), 0});
    wide += std::string(1, '\0') + data::bytes_of(sample);
    narrow += static_cast<char>(128 + std::lround(sample / 256.0));
  }
  const auto write = [&](const std::string& name, const std::string& bytes) {
    std::ofstream(file(name), std::ios::binary) << bytes;
  };
  write("stereo.wav", data::wav(data::sixteen_bits(one_side), {.channels = 2}));
  write("wide.wav", data::wav(wide, {.bits = 24}));
  write("narrow.wav", data::wav(narrow, {.bits = 8}));
  data::write_flac(file("sound.flac"), mono, 1, test::kRate);
  data::write_flac(file("stereo.flac"), one_side, 2, test::kRate);
  const torch::NoGradGuard no_grad;
  const auto scored = load_run(folder_ / "run", {Setting::parse("decode.scores=true")});
  const std::string answer = scored->predict({file("test0.wav")})[0];
  EXPECT_THAT(answer, testing::ContainsRegex("\t(low|mid|high) "));
  for (const char* name : {"stereo.wav", "wide.wav", "sound.flac", "stereo.flac"})
    EXPECT_EQ(scored->predict({file(name)})[0], answer) << name;
  // Eight bits are another sound, of the same words.
  const auto model = load_run(folder_ / "run");
  EXPECT_EQ(model->predict({file("narrow.wav")}), model->predict({file("test0.wav")}));
}

class SilentAndClippedTest : public SpeechRuns {
 protected:
  // Half a second of nothing, and words that are far too loud, also for training.
  void SetUp() override {
    test::write_tones(folder_ / "tones", 24, 4, 4, 2);
    test::write_recording(file("silent.wav"), std::vector<int16_t>(4000));
    uint64_t state = 4;
    auto loud = test::say({0, 1, 2}, state);
    for (auto& sample : loud) sample = static_cast<int16_t>(std::clamp(sample * 20, -32768, 32767));
    test::write_recording(file("clipped.wav"), loud);
    std::ofstream(file("train.tsv"), std::ios::app) << "silent.wav\tlow\nclipped.wav\tmid\n";
  }
};

TEST_F(SilentAndClippedTest, TrainAndHaveFiniteAnswers) {
  for (const std::string by : {"training", "utterance", "none"})
    for (const std::string objective : {"ctc", "utterance"}) {
      SCOPED_TRACE(by + ", " + objective);
      const std::string name = by + objective;
      const train::Result result = learn(
          {"features.normalise=" + by, "task.objective=" + objective, "train.epochs=2", "train.batch=4"},
          name);
      EXPECT_TRUE(std::isfinite(result.final_loss));
      EXPECT_TRUE(std::isfinite(result.test.at("loss")));
      const torch::NoGradGuard no_grad;
      const bool ctc = objective == "ctc";
      const auto model =
          load_run(folder_ / name, settings_of_tests(ctc ? std::vector<std::string>{"decode.scores=true"}
                                                         : std::vector<std::string>{}));
      for (const auto& tensor : model->module().parameters())
        EXPECT_TRUE(tensor.isfinite().all().item<bool>());
      for (const char* sound : {"silent.wav", "clipped.wav"}) {
        const std::string answer = model->predict({file(sound)})[0];
        EXPECT_THAT(answer, testing::MatchesRegex(ctc ? "-[0-9]+\\.[0-9]{4}\t((low|mid|high) ?)*"
                                                      : "[a-z ]+\t[01]\\.[0-9]{4}"))
            << sound;
        if (by == "utterance") continue;
        const auto live = model->listen(0);
        for (const at::Tensor& part : data::read_audio(file(sound)).samples[0].split(777)) live->push(part);
        EXPECT_EQ(live->finish(), answer) << sound;
      }
    }
}

}  // namespace
}  // namespace quatrain::tasks
