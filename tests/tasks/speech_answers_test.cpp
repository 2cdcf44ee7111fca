#include <cmath>
#include <numbers>

#include "quatrain/data/audio.h"
#include "quatrain/data/tokenizer.h"
#include "quatrain/scores/transcripts.h"
#include "tasks/speech_runs.h"
#include "train/score.h"

namespace quatrain::tasks {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

using SpeechAnswersTest = SpeechRuns;

// As other kinds do; a class would be printed beside the probability nan.
TEST_F(SpeechAnswersTest, WeightsThatAreNoNumbersAnswerNothing) {
  test::write_tones(folder_ / "tones", 8, 2, 2, 1);
  for (const std::string objective : {"utterance", "ctc"}) {
    learn({"task.objective=" + objective, "features.stack=1", "train.epochs=1"}, objective);
    const torch::NoGradGuard no_grad;
    const auto model = load_run(folder_ / objective);
    model->module().named_parameters()["output.bias"][1] = std::nan("");
    const auto not_finite = testing::ThrowsMessage<LineError>(StartsWith("the answer is not finite"));
    EXPECT_THAT([&] { model->predict({file("test0.wav")}); }, not_finite);
    EXPECT_THAT(answer(*model, std::vector{file("test0.wav")}).problem,
                StartsWith("the answer is not finite"));
    const at::Tensor samples = data::read_audio(file("test0.wav")).samples[0];
    EXPECT_THAT(
        [&] {
          const auto live = model->listen(0);
          live->push(samples);
          live->finish();
        },
        not_finite);
  }
}

// Words have times, whatever they are made of: sclite reads them beside the words of ref.trn.
TEST_F(SpeechAnswersTest, CharactersBecomeWordsWithTimes) {
  test::write_tones(folder_ / "tones", 100, 4, 6, 4);
  learn({"task.units=characters", "features.stack=1", "train.epochs=8"});
  std::map<std::string, std::vector<std::string>> timed;
  std::istringstream lines(text_of(folder_ / "run" / "test.ctm"));
  std::map<std::string, double> ends;
  for (std::string line; std::getline(lines, line);) {
    const auto fields = data::split(line, data::Tokenizer::whitespace);
    ASSERT_EQ(fields.size(), 6) << line;
    timed[fields[0]].push_back(fields[4]);
    const double begin = std::stod(fields[2]);
    EXPECT_GE(begin + 2e-3, ends[fields[0]]) << line;
    ends[fields[0]] = begin + std::stod(fields[3]);
    EXPECT_GE(std::stod(fields[5]), 0.2) << line;  // a mean, and no product
  }
  const auto model = load_run(folder_ / "run", settings_of_tests({"decode.times=true"}));
  const torch::NoGradGuard no_grad;
  size_t most = 0;
  for (const auto& said : scores::read_trn(folder_ / "run" / "test.hyp.trn")) {
    EXPECT_EQ(timed[said.utterance], said.tokens) << said.utterance;
    most = std::max(most, said.tokens.size());
    const std::string answer = model->predict({file(said.utterance)})[0];
    const auto times = data::split(answer.substr(answer.find('\t')), data::Tokenizer::whitespace);
    EXPECT_EQ(times.size(), said.tokens.size()) << answer;
  }
  EXPECT_GE(most, 2);
}

// A table of phones beside the sets makes their alignment what was said.
class SpeechPhonesTest : public SpeechRuns {
 protected:
  void SetUp() override {
    uint64_t state = 3;
    for (const std::string set : {"train", "test"}) {
      const auto place = folder_ / "tones" / set;
      std::filesystem::create_directories(place);
      std::ofstream list(place / "wav.scp"), labels(place / "ali.ark");
      for (int i = 0; i < 6; ++i) {  // 5 frames of noise, 15 of a tone, 5 of noise
        const std::string id = set + std::to_string(i);
        test::write_recording(place / (id + ".wav"), test::say({i % 2}, state));
        list << id << " " << id << ".wav\n";
        labels << id;
        for (int t = 0; t < 25; ++t) labels << (t < 5 || t >= 20 ? " 0" : i % 2 ? " 2" : " 1");
        labels << "\n";
      }
    }
  }
  void name_classes(const std::string& table) const { std::ofstream(file("phones.txt")) << table; }
  std::string answer_of(const std::string& run) const {
    return load_run(folder_ / run)->predict({file("test/test0.wav")})[0];
  }
  const std::vector<std::string> settings_{"task.data=kaldi", "task.objective=frames", "features.stack=1",
                                           "train.epochs=60", "train.batch=2"};
};

TEST_F(SpeechPhonesTest, AlignmentsWithNamesAreWhatWasSaid) {
  name_classes("sil 0\nlow 1\nmid 2\nnever 7\n");
  const train::Result result = learn(settings_);
  EXPECT_LT(result.test.at("error_rate"), 0.1);
  EXPECT_LT(result.test.at("frame_error"), 0.1);
  const auto run = folder_ / "run";
  EXPECT_THAT(text_of(run / "test.errors.txt"), StartsWith("%PER "));
  EXPECT_THAT(text_of(run / "test.ref.trn"), StartsWith("sil low sil (test0-test0)\nsil mid sil (test1-"));
  EXPECT_EQ(text_of(run / "best" / "classes.txt"), "sil\nlow\nmid\n");
  const torch::NoGradGuard no_grad;
  EXPECT_EQ(answer_of("run"), "sil low sil");
  // A run that is scored later knows its names itself.
  std::filesystem::remove(file("phones.txt"));
  const std::shared_ptr<Model> model = load_run(run);
  const auto data = load_data(model->recipe(), {(folder_ / "tones").string(), "test", model.get()});
  EXPECT_EQ(train::score(*data->make_task(model), "test", false, {}).files.at("test.ref.trn"),
            text_of(run / "test.ref.trn"));
}

// Viterbi's search takes words back, and each line with another answer says all of it.
TEST_F(SpeechPhonesTest, FramesAreHeardLive) {
  name_classes("sil 0\nlow 1\nmid 2\n");
  learn(settings_);
  uint64_t state = 9;
  test::write_recording(file("long.wav"), test::say({0, 1, 1, 0, 0, 1}, state));
  const at::Tensor samples = data::read_audio(file("long.wav")).samples[0];
  const torch::NoGradGuard no_grad;
  const auto model = load_run(folder_ / "run");
  const std::string whole = model->predict({file("long.wav")})[0];
  EXPECT_EQ(whole, "sil low sil mid sil mid sil low sil low sil mid sil");
  for (const int64_t piece : {80, 333, 777}) {
    const auto live = model->listen(0);
    const std::string told = noted(*live, samples, piece).text;
    EXPECT_NE(told, "") << piece;
    EXPECT_THAT(whole, StartsWith(told)) << piece;
    EXPECT_EQ(live->finish(), whole) << piece;
  }
  // Two tones that take turns every 40 ms, too fast for a search in which a change costs three times as much.
  std::vector<int16_t> mixed;
  for (int i = 0; i < 8000; ++i)
    mixed.push_back(static_cast<int16_t>(4000 * std::sin(std::numbers::pi * (i / 320 % 2 ? .25 : .1) * i) +
                                         test::next_number(state, 401) - 200));
  test::write_recording(file("mixed.wav"), mixed);
  const auto slow = load_run(folder_ / "run", {Setting::parse("decode.transition_scale=3")});
  const auto live = slow->listen(0);
  const Noted told = noted(*live, data::read_audio(file("mixed.wav")).samples[0], 80);
  EXPECT_GT(told.again, 0);
  EXPECT_NE(told.text, "");
  const std::string said = live->finish();
  EXPECT_THAT(said, StartsWith(told.text));
  EXPECT_EQ(said, slow->predict({file("mixed.wav")})[0]);
}

TEST_F(SpeechPhonesTest, AClassWithoutANameLeavesAllTheirNumbers) {
  name_classes("sil 0\nlow 1\n");
  EXPECT_THAT(
      load(settings_)->notes(),
      testing::Contains("phones.txt has no name for the class 2, which the alignment of \"train1\" has: "
                        "the classes keep their numbers, and no phone error rate is counted"));
  EXPECT_FALSE(learn(settings_).test.contains("error_rate"));
  const torch::NoGradGuard no_grad;
  EXPECT_EQ(answer_of("run"), "0 1 0");
  name_classes("sil 0\nlow\n");
  EXPECT_THAT(error_of_load(settings_),
              HasSubstr("phones.txt:2: a line must be a name and the number of its"));
  name_classes("sil 0\nsil 1\n");
  EXPECT_THAT(error_of_load(settings_), HasSubstr("phones.txt:2: names and numbers must differ"));
}

TEST_F(SpeechAnswersTest, EverySetHasItsErrorsAndTranscripts) {
  test::write_tones(folder_ / "tones", 20, 4, 4, 2);
  learn({"task.units=characters", "features.stack=1", "train.epochs=1"});
  const std::shared_ptr<Model> model = load_run(folder_ / "run");
  const auto scored = [&](const std::string& set) {
    const auto data = load_data(model->recipe(), {(folder_ / "tones").string(), set, model.get()});
    return train::score(*data->make_task(model), set, false, {});
  };
  const auto test = scored("test");
  EXPECT_THAT(test.lines, ElementsAre(StartsWith("%CER "), StartsWith("%WER "), StartsWith("%SER ")));
  EXPECT_THAT(test.files.at("test.errors.txt"), StartsWith(test.lines[0] + "\n" + test.lines[1] + "\n"));
  for (const auto& [name, text] : test.files) EXPECT_EQ(text, text_of(folder_ / "run" / name)) << name;
  EXPECT_THAT(scored("dev").files.at("dev.ref.trn"), HasSubstr("-dev0.wav)\n"));
}

}  // namespace
}  // namespace quatrain::tasks
