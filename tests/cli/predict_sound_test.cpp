#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "cli/program.h"
#include "tasks/speech_corpora.h"

namespace quatrain::cli {
namespace {

using testing::HasSubstr;

// One trained run for all tests here.
class PredictSound : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    place_ = new Workplace;
    test::write_tones(place_->path("tones"), 80, 8, 8, 3);
    const Outcome outcome = place_->run(
        "train yesno --data tones --out run --set task.data=tsv --set model.bidirectional=false --set "
        "features.bands=24 --set "
        "model.hidden=16 "
        "--set train.epochs=2 --set train.threads=1");
    ASSERT_EQ(outcome.code, 0) << outcome.error;
    ASSERT_EQ(place_
                  ->run("train yesno --data tones --out both --set task.data=tsv --set features.bands=24 "
                        "--set model.hidden=8 --set model.bidirectional=true --set train.steps=1 "
                        "--set train.threads=1")
                  .code,
              0);
  }
  static void TearDownTestSuite() {
    delete place_;
    place_ = nullptr;
  }
  // The samples of a recording, without its header.
  static std::string samples_of(const std::string& name) {
    const std::string bytes = place_->read(name);
    return bytes.substr(bytes.find("data") + 8);
  }
  static inline Workplace* place_ = nullptr;
};

TEST_F(PredictSound, files_are_arguments_or_lines) {
  const Outcome arguments = place_->run("predict run tones/test0.wav tones/test1.wav");
  EXPECT_EQ(arguments.code, 0);
  EXPECT_THAT(arguments.error, HasSubstr("times as fast as spoken"));
  EXPECT_EQ(std::count(arguments.out.begin(), arguments.out.end(), '\n'), 2);
  EXPECT_EQ(place_->run("predict run", "tones/test0.wav\ntones/test1.wav\n").out, arguments.out);
}

TEST_F(PredictSound, a_bad_file_leaves_the_others_their_answers) {
  const std::string whole = place_->read("tones/test2.wav");
  place_->write("cut.wav", whole.substr(0, whole.size() / 2));
  const std::string files = "tones/test0.wav nowhere.wav cut.wav tones/test1.wav";
  for (const std::string setting : {"", " --set decode.times=true"}) {
    const auto answer = [&](const std::string& file) { return place_->run("predict run " + file + setting); };
    const Outcome outcome = answer(files);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.out, answer("tones/test0.wav").out + "\n\n" + answer("tones/test1.wav").out);
    EXPECT_THAT(outcome.error, HasSubstr("quatrain: argument 2: there is no audio file \"nowhere.wav\"\n"));
    EXPECT_THAT(outcome.error, HasSubstr("quatrain: argument 3: audio: "));
    EXPECT_THAT(outcome.error, HasSubstr("cut.wav"));
    EXPECT_THAT(outcome.error, HasSubstr("times as fast as spoken"));
    EXPECT_THAT(outcome.error, HasSubstr("quatrain: 2 of 4 lines have no answer"));
    EXPECT_EQ(std::count(outcome.error.begin(), outcome.error.end(), '\n'), 4);
  }
  std::string lines = files;
  std::replace(lines.begin(), lines.end(), ' ', '\n');
  const Outcome input = place_->run("predict run", lines);
  EXPECT_EQ(input.code, 1);
  EXPECT_EQ(input.out, place_->run("predict run " + files).out);
  EXPECT_THAT(input.error, HasSubstr("standard input, line 3: "));
}

// As Ctrl-C does, which nobody can avoid who ends a recording that is made by arecord.
TEST_F(PredictSound, a_signal_ends_live_sound_as_its_end_does) {
  const std::string sound = samples_of("tones/test0.wav") + samples_of("tones/test1.wav");
  const Outcome whole = place_->run("predict run --live", sound);
  ASSERT_EQ(whole.code, 0) << whole.error;
  const std::string last = whole.out.substr(whole.out.rfind('\n', whole.out.size() - 2) + 1);
  const auto pipe = place_->path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::fstream source(pipe, std::ios::in | std::ios::out | std::ios::binary);  // open until the test ends
  for (const int number : {SIGINT, SIGTERM}) {
    const Background program("predict " + place_->path("run").string() + " --live", place_->path("error"),
                             pipe, place_->path("out"));
    program.wait_until_it_catches(number);
    source << sound + 'x' << std::flush;  // a sample is cut where a signal falls
    program.signal(number);
    EXPECT_EQ(program.wait(), 128 + number);
    EXPECT_THAT(place_->read("out"), testing::EndsWith("\n" + last));
    EXPECT_THAT(place_->read("error"),
                testing::MatchesRegex("[0-9.]+ s heard in .* times as fast as spoken\n"));
  }
}

TEST_F(PredictSound, live_ends_with_the_answer_to_the_whole) {
  const std::string whole = place_->run("predict run tones/test0.wav").out;
  const Outcome live = place_->run("predict run --live", samples_of("tones/test0.wav"));
  EXPECT_EQ(live.code, 0) << live.error;
  EXPECT_TRUE(live.out.ends_with(whole)) << live.out;
  EXPECT_EQ(place_->run("predict run --live").out, "\n");
  const Outcome cut = place_->run("predict run --live", samples_of("tones/test0.wav") + "x");
  EXPECT_EQ(cut.code, 1);
  EXPECT_EQ(cut.out, live.out);
  EXPECT_THAT(cut.error, HasSubstr("the last sample is cut"));
}

// Nobody could keep what is heard all day, if each line were all of it.
TEST_F(PredictSound, live_tells_each_word_once) {
  std::string sound;
  for (int i = 0; i < 80; ++i) sound += samples_of("tones/test" + std::to_string(i % 8) + ".wav");
  const Outcome live = place_->run("predict run --live", sound);
  ASSERT_EQ(live.code, 0) << live.error;
  std::vector<std::string> lines;
  std::istringstream stream(live.out);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  ASSERT_GT(lines.size(), 5U);
  std::string told;
  for (size_t i = 0; i + 1 < lines.size(); ++i) told += (i > 0 ? " " : "") + lines[i];
  EXPECT_TRUE(lines.back().starts_with(told)) << live.out;
}

// An utterance that has ended has an empty line behind it, and nothing comes after that where nothing was
// said.
TEST_F(PredictSound, live_utterances_end_in_pauses) {
  const std::string said = samples_of("tones/test0.wav"),
                    run = "predict run --live --set decode.endpoint=0.4";
  uint64_t state = 3;
  std::vector<int16_t> pause(test::kRate);
  for (int16_t& sample : pause) sample = static_cast<int16_t>(test::next_number(state, 401) - 200);
  const std::string noise(reinterpret_cast<const char*>(pause.data()), 2 * pause.size());
  const std::string whole = place_->run("predict run tones/test0.wav").out;
  ASSERT_GT(whole.size(), 1U);
  const Outcome paused = place_->run(run, said + noise);
  EXPECT_EQ(paused.code, 0) << paused.error;
  EXPECT_TRUE(paused.out.ends_with(whole + "\n")) << paused.out;
  const Outcome twice = place_->run(run, said + noise + said);
  EXPECT_TRUE(twice.out.starts_with(paused.out)) << twice.out;
  EXPECT_FALSE(twice.out.ends_with("\n\n")) << twice.out;
  EXPECT_EQ(place_->run(run).out, "\n");
}

// What scoring the test set at the end of training left in the run's folder, of any set.
TEST_F(PredictSound, evaluate_writes_what_was_heard) {
  const Outcome outcome = place_->run("evaluate run --out heard");
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_THAT(outcome.out, testing::ContainsRegex("all +8 .*\n%WER .*\n%SER .*\n$"));
  for (const std::string name : {"errors.txt", "ref.trn", "hyp.trn", "ctm", "confusions.tsv"})
    EXPECT_EQ(place_->read("heard/test." + name), place_->read("run/test." + name)) << name;
  const Outcome again = place_->run("evaluate run --out heard");
  EXPECT_EQ(again.code, 2);
  EXPECT_EQ(again.error, "quatrain: evaluate: 'heard' exists: choose another name\n");
  EXPECT_EQ(again.out, "");
  EXPECT_EQ(place_->run("evaluate run --out run/best/heard").code, 2);
  ASSERT_EQ(place_->run("evaluate run --split dev --out dev").code, 0);
  EXPECT_THAT(place_->read("dev/dev.hyp.trn"), HasSubstr("-dev0.wav)\n"));
  EXPECT_THAT(place_->run("evaluate run --json -").out, HasSubstr("\"%WER "));
}

TEST_F(PredictSound, live_refuses_what_needs_the_end) {
  const Outcome both = place_->run("predict both --live", samples_of("tones/test0.wav"));
  EXPECT_EQ(both.code, 2);
  EXPECT_THAT(both.error, HasSubstr("bidirectional model needs the end of a recording"));
  EXPECT_NE(place_->run("predict run --live tones/test0.wav").code, 0);
  EXPECT_NE(place_->run("predict run --rate 8000 tones/test0.wav").code, 0);
}

}  // namespace
}  // namespace quatrain::cli
