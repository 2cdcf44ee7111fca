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
