#include <torch/types.h>
#include <torch/utils.h>

#include "quatrain/data/audio.h"
#include "tasks/speech_runs.h"

namespace quatrain::tasks {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class SpeechLiveTest : public SpeechRuns {
 protected:
  // "low mid", "high" and "mid low high", with 0.6 s of noise behind each.
  at::Tensor write_pauses() const {
    std::vector<int16_t> samples;
    uint64_t state = 5;
    for (const std::vector<int>& words : {std::vector<int>{0, 1}, {2}, {1, 0, 2}}) {
      for (const int16_t sample : test::say(words, state)) samples.push_back(sample);
      for (int i = 0; i < test::kRate * 6 / 10; ++i)
        samples.push_back(static_cast<int16_t>(test::next_number(state, 401) - 200));
    }
    test::write_recording(file("pauses.wav"), samples);
    return data::read_audio(file("pauses.wav")).samples[0];
  }
};

// What is told before each empty line.
std::vector<std::vector<std::string>> utterances_of(Live& live, const at::Tensor& samples, int64_t piece) {
  std::vector<std::vector<std::string>> all(1);
  for (const at::Tensor& part : samples.split(piece))
    for (const std::string& line : live.push(part))
      if (line.empty())
        all.emplace_back();
      else
        all.back().push_back(line);
  return all;
}

TEST_F(SpeechLiveTest, PausesEndUtterances) {
  test::write_tones(folder_ / "tones", 80, 4, 4, 4);
  learn({"train.epochs=20"});
  const at::Tensor samples = write_pauses();
  const torch::NoGradGuard no_grad;
  for (const char* beam : {"decode.beam=1", "decode.beam=8"})
    for (const int64_t piece : {int64_t{80}, int64_t{777}, samples.size(0)}) {
      const auto model = load_run(folder_ / "run", settings_of_tests({"decode.endpoint=0.4", beam}));
      const auto live = model->listen(0);
      const auto all = utterances_of(*live, samples, piece);
      ASSERT_EQ(all.size(), 4) << piece;
      std::vector<std::string> whole;
      for (size_t i = 0; i < 3; ++i) whole.push_back(all[i].back());
      EXPECT_THAT(whole, ElementsAre("low mid", "high", "mid low high")) << piece;
      EXPECT_TRUE(all[3].empty()) << piece;
      EXPECT_EQ(live->finish(), "") << piece;
      // The next recording begins anew.
      EXPECT_EQ(utterances_of(*live, samples.slice(0, 0, test::kRate), piece)[0].back(), "low mid") << piece;
    }

  // A pause that is longer than any of these, or none, leaves the sound whole.
  for (const char* endpoint : {"decode.endpoint=0", "decode.endpoint=2"}) {
    const auto live = load_run(folder_ / "run", {Setting::parse(endpoint)});
    const auto listening = live->listen(0);
    EXPECT_EQ(utterances_of(*listening, samples, 777).size(), 1) << endpoint;
    EXPECT_EQ(listening->finish(), "low mid high mid low high") << endpoint;
  }
}

TEST_F(SpeechLiveTest, TimesOfUtterancesCountFromTheBeginning) {
  test::write_tones(folder_ / "tones", 80, 4, 4, 4);
  learn({"train.epochs=20"});
  const at::Tensor samples = write_pauses();
  const torch::NoGradGuard no_grad;
  const auto timed = settings_of_tests({"decode.times=true", "decode.endpoint=0.4"});
  const auto model = load_run(folder_ / "run", timed);
  const std::string whole = model->predict({file("pauses.wav")})[0];
  const auto live = model->listen(0);
  std::string words, times;
  for (const auto& utterance : utterances_of(*live, samples, 777)) {
    if (utterance.empty()) continue;
    const std::string& line = utterance.back();
    words += (words.empty() ? "" : " ") + line.substr(0, line.find('\t'));
    times += (times.empty() ? "" : " ") + line.substr(line.find('\t') + 1);
  }
  EXPECT_EQ(words + "\t" + times, whole);
}

TEST_F(SpeechLiveTest, OnlyTokensEndUtterances) {
  test::write_tones(folder_ / "tones", 8, 2, 2, 2);
  learn({"task.objective=utterance", "train.epochs=1"});
  EXPECT_THAT(what_is_said([&] { load_run(folder_ / "run", {Setting::parse("decode.endpoint=0.5")}); }),
              HasSubstr("task.objective = ctc"));
}

}  // namespace
}  // namespace quatrain::tasks
