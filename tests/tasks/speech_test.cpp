#include <algorithm>
#include <map>
#include <set>

#include "quatrain/data/audio.h"
#include "quatrain/data/kaldi_archive.h"
#include "quatrain/data/tokenizer.h"
#include "system_memory.h"
#include "tasks/speech/news.h"
#include "tasks/speech_runs.h"

namespace quatrain::tasks {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

using SpeechTest = SpeechRuns;

TEST_F(SpeechTest, WordsAreHeard) {
  test::write_tones(folder_ / "tones", 160, 20, 40, 4);
  const train::Result result = learn({});
  EXPECT_LT(result.test.at("error_rate"), 0.05);
  EXPECT_LT(result.test.at("sentence_error_rate"), 0.1);
  EXPECT_EQ(result.test.at("count"), 40);
  const auto run = folder_ / "run";
  EXPECT_THAT(text_of(run / "test.errors.txt"), StartsWith("%WER "));
  EXPECT_THAT(text_of(run / "test.errors.txt"), HasSubstr("anna %WER "));
  EXPECT_THAT(text_of(run / "test.ref.trn"), HasSubstr(" (bert-test0.wav)\n"));
  EXPECT_THAT(text_of(run / "test.confusions.tsv"), StartsWith("reference\thypothesis\tcount\n"));
  EXPECT_THAT(text_of(run / "test.ctm"), HasSubstr("test0.wav 1 "));

  const torch::NoGradGuard no_grad;
  const auto model = load_run(run);
  const auto answers = model->predict({file("test0.wav"), file("test1.wav")});
  std::stringstream lines(text_of(run / "test.hyp.trn"));
  for (const auto& answer : answers) {
    std::string line;
    std::getline(lines, line);
    EXPECT_THAT(line, StartsWith(answer + " ("));
  }
  EXPECT_THAT(model->summary(), HasSubstr("times as fast as spoken"));

  // What is heard bit by bit is what the whole file says, and each word is told once.
  const data::Audio audio = data::read_audio(file("test2.wav"));
  const auto live = model->listen(0);
  std::string told;
  for (const at::Tensor& part : audio.samples[0].split(777))
    for (const std::string& news : live->push(part)) told += (told.empty() ? "" : " ") + news;
  EXPECT_NE(told, "");
  const std::string whole = live->finish();
  EXPECT_EQ(whole, model->predict({file("test2.wav")})[0]);
  EXPECT_THAT(whole, StartsWith(told));

  // A tenth of a second after the other takes no memory for tensors from the system once all rests have been
  // as large.
  const auto listening = model->listen(0);
  const at::Tensor tenth = audio.samples[0].narrow(0, 0, 800);
  for (int i = 0; i < 10; ++i) listening->push(tenth);
  const test::SystemMemory system;
  for (int i = 0; i < 50; ++i) listening->push(tenth);
  EXPECT_EQ(system.blocks(), 0);

  // A model says how fast it was to a live speaker too.
  const auto other = load_run(run);
  const auto heard = other->listen(0);
  heard->push(audio.samples[0]);
  heard->finish();
  EXPECT_THAT(other->summary(), HasSubstr("times as fast as spoken"));

  // With times, and by a beam.
  const auto timed = load_run(run, {Setting::parse("decode.times=true"), Setting::parse("decode.beam=4")});
  const std::string answer = timed->predict({file("test0.wav")})[0];
  EXPECT_EQ(answer.substr(0, answer.find('\t')), answers[0]);
  EXPECT_THAT(answer, testing::ContainsRegex("\t0\\.[0-9][0-9]-0\\.[0-9][0-9]"));
}

TEST(SpeechNews, WhatChangedIsToldAgain) {
  const auto answer = [](const std::vector<std::string>& words) {
    std::vector<HeardToken> tokens;
    for (const auto& word : words) tokens.push_back({.text = word});
    return tokens;
  };
  const auto news = [&](const std::vector<std::string>& told, const std::vector<std::string>& heard) {
    const auto before = answer(told), now = answer(heard);
    const auto [tokens, again] =
        news_of(before, now, [](const HeardToken& a, const HeardToken& b) { return a.text == b.text; });
    std::string line = again ? "=" : "+";
    for (const auto& token : tokens) line += " " + token.text;
    return line;
  };
  EXPECT_EQ(news({}, {"one", "two"}), "+ one two");
  EXPECT_EQ(news({"one", "two"}, {"one", "two"}), "+");
  EXPECT_EQ(news({"one"}, {"one", "two"}), "+ two");
  EXPECT_EQ(news({"one", "two"}, {"one"}), "= one");
  EXPECT_EQ(news({"one", "two"}, {"one", "three"}), "= one three");
  EXPECT_EQ(news({"one"}, {}), "=");
}

TEST_F(SpeechTest, LiveAnswersOfEachKindComeTogether) {
  test::write_tones(folder_ / "tones", 60, 4, 4, 4);
  learn({"train.epochs=4"});
  learn({"train.epochs=4", "task.units=characters", "features.stack=1"}, "characters");
  const at::Tensor samples = data::read_audio(file("test0.wav")).samples[0];
  const torch::NoGradGuard no_grad;
  for (const char* run : {"run", "characters"})
    for (const char* setting : {"decode.beam=1", "decode.beam=8"}) {
      const auto model = load_run(folder_ / run, {Setting::parse(setting)});
      const auto live = model->listen(0);
      const std::string told = noted(*live, samples).text;
      const std::string whole = live->finish();
      if (std::string(setting) == "decode.beam=1") {
        EXPECT_THAT(whole, StartsWith(told)) << run;
      }
      EXPECT_EQ(whole, model->predict({file("test0.wav")})[0]) << run << setting;
    }
}

TEST_F(SpeechTest, AnotherRateIsBroughtToTheModels) {
  test::write_tones(folder_ / "tones", 80, 8, 8, 3);
  learn({"train.epochs=8"});
  const torch::NoGradGuard no_grad;
  const auto model = load_run(folder_ / "run");
  const data::Audio audio = data::read_audio(file("test0.wav"));
  const at::Tensor faster = data::resample(audio.samples, 8000, 16000)[0];
  std::vector<int16_t> samples;
  for (int64_t i = 0; i < faster.size(0); ++i)
    samples.push_back(static_cast<int16_t>(faster[i].item<float>() * 32768));
  test::write_recording(folder_ / "faster.wav", samples, 16000);
  EXPECT_EQ(model->predict({(folder_ / "faster.wav").string()}), model->predict({file("test0.wav")}));
  const auto live = model->listen(16000);
  live->push(faster);
  EXPECT_EQ(live->finish(), model->predict({file("test0.wav")})[0]);
}

TEST_F(SpeechTest, BothDirectionsHearLongRecordingsInPieces) {
  test::write_tones(folder_ / "tones", 120, 8, 8, 4);
  learn({"model.bidirectional=true", "features.normalise=utterance", "train.epochs=6"});
  uint64_t state = 7;
  std::vector<int> words;
  for (int i = 0; i < 60; ++i) words.push_back(i % 3);
  test::write_recording(folder_ / "long.wav", test::say(words, state));  // 12 s
  const torch::NoGradGuard no_grad;
  const auto whole = load_run(folder_ / "run")->predict({(folder_ / "long.wav").string()});
  const auto model =
      load_run(folder_ / "run", {Setting::parse("decode.piece=2.0"), Setting::parse("decode.context=1.0")});
  EXPECT_EQ(model->predict({(folder_ / "long.wav").string()}), whole);
  EXPECT_GT(std::count(whole[0].begin(), whole[0].end(), ' '), 50);
  EXPECT_THROW(model->listen(0), RecipeError);
}

TEST_F(SpeechTest, TimesAreThoseOfFramesThatBeginAtWholeSamples) {
  test::write_tones(folder_ / "tones", 8, 2, 2, 1);
  learn({"task.objective=utterance", "features.stack=1", "features.rate=11025", "train.epochs=1"});
  test::write_recording(folder_ / "minute.wav", std::vector<int16_t>(60 * 8000, 100));
  const torch::NoGradGuard no_grad;
  const auto model = load_run(folder_ / "run", {Setting::parse("decode.times=true")});
  EXPECT_THAT(model->predict({(folder_ / "minute.wav").string()})[0], testing::EndsWith("\t0.00-60.00"));
}

TEST_F(SpeechTest, TimesEndWithTheRecording) {
  test::write_tones(folder_ / "tones", 8, 2, 2, 1);
  learn({"task.objective=utterance", "features.stack=8", "train.epochs=1"});
  const std::vector<int16_t> samples(4000, 100);  // 50 frames: the last row is filled up
  test::write_recording(folder_ / "half.wav", samples);
  const torch::NoGradGuard no_grad;
  const auto model = load_run(folder_ / "run", {Setting::parse("decode.times=true")});
  const std::string answer = model->predict({(folder_ / "half.wav").string()})[0];
  EXPECT_THAT(answer, testing::EndsWith("\t0.00-0.50"));
  const auto live = model->listen(0);
  live->push(data::read_audio(folder_ / "half.wav").samples[0]);
  EXPECT_EQ(live->finish(), answer);
}

TEST_F(SpeechTest, TimesOfSegmentsAreThoseOfTheirRecording) {
  uint64_t state = 3;
  for (const std::string set : {"train", "test"}) {
    const auto place = folder_ / "tones" / set;
    std::filesystem::create_directories(place);
    test::write_recording(place / "a.wav", test::say({0, 1, 0}, state));
    std::ofstream(place / "wav.scp") << "rec-1 a.wav\n";
    std::ofstream(place / "text") << set << "1 low\n" << set << "2 mid\n";
    std::ofstream(place / "segments") << set << "1 rec-1 0 0.2\n" << set << "2 rec-1 0.2 0.45\n";
  }
  learn({"task.data=kaldi", "task.objective=utterance", "features.stack=1", "train.epochs=1"});
  EXPECT_THAT(text_of(folder_ / "run" / "test.ctm"),
              testing::AllOf(StartsWith("rec-1 1 0.000 0.200 "), HasSubstr("\nrec-1 1 0.200 0.250 ")));
  // Rows of 0.16 s end with the segment, and lines come by recording and time, not by segment.
  for (const std::string set : {"train", "test"}) {
    const auto place = folder_ / "tones" / set;
    std::ofstream(place / "wav.scp") << "rec-1 a.wav\nrec-2 a.wav\n";
    std::ofstream(place / "text") << set << "1 low\n" << set << "2 mid\n" << set << "3 low\n";
    std::ofstream(place / "segments") << set << "1 rec-2 0 0.2\n"
                                      << set << "2 rec-1 0.2 0.45\n"
                                      << set << "3 rec-1 0 0.2\n";
  }
  learn({"task.data=kaldi", "task.objective=utterance", "features.stack=16", "train.epochs=1"}, "stacked");
  EXPECT_THAT(
      text_of(folder_ / "stacked" / "test.ctm"),
      testing::ContainsRegex("^rec-1 1 0\\.000 0\\.200 .*\nrec-1 1 0\\.200 0\\.250 .*\nrec-2 1 0\\.000 "
                             "0\\.200 "));
}

// A set of Kaldi's with one recording of two channels, "call".
std::filesystem::path write_call(const std::filesystem::path& place, const std::vector<int16_t>& left,
                                 const std::vector<int16_t>& right) {
  std::vector<int16_t> both;
  for (size_t i = 0; i < left.size(); ++i) both.insert(both.end(), {left[i], right[i]});
  std::filesystem::create_directories(place);
  std::ofstream(place / "call.wav", std::ios::binary)
      << data::wav(data::sixteen_bits(both), {.channels = 2, .rate = test::kRate});
  std::ofstream(place / "wav.scp") << "call call.wav\n";
  return place;
}

TEST_F(SpeechTest, ChannelsOfARecordingAreHeardApart) {
  uint64_t state = 3;
  const auto left = test::say({0}, state), right = test::say({2}, state);
  for (const std::string set : {"train", "test"}) {
    const auto place = write_call(folder_ / "tones" / set, left, right);
    std::ofstream(place / "text") << set << "1 low\n" << set << "2 high\n";
    std::ofstream(place / "segments") << set << "1 call 0 -1 A\n" << set << "2 call 0 -1 B\n";
  }
  const train::Result result = learn({"task.data=kaldi", "task.objective=utterance", "features.stack=1",
                                      "train.epochs=40", "train.batch=2"});
  EXPECT_EQ(result.test.at("error_rate"), 0);
  EXPECT_THAT(text_of(folder_ / "run" / "test.ctm"),
              testing::ContainsRegex("^call 1 0\\.000 0\\.250 low .*\ncall 2 0\\.000 0\\.250 high "));
}

// As sclite reads them: by recording, channel and time.
TEST_F(SpeechTest, TimesOfAChannelStandTogether) {
  uint64_t state = 3;
  const auto said = test::say({0, 1}, state);
  for (const std::string set : {"train", "test"}) {
    const auto place = write_call(folder_ / "tones" / set, said, said);
    std::ofstream text(place / "text"), segments(place / "segments");
    for (const auto& [number, part] :
         {std::pair{1, "0 0.1 A"}, {2, "0 0.1 B"}, {3, "0.1 0.25 A"}, {4, "0.1 0.25 B"}}) {
      text << set << number << (number % 2 ? " low\n" : " mid\n");
      segments << set << number << " call " << part << "\n";
    }
  }
  learn({"task.data=kaldi", "task.objective=utterance", "features.stack=1", "train.epochs=1"});
  EXPECT_THAT(
      text_of(folder_ / "run" / "test.ctm"),
      testing::ContainsRegex("^call 1 0\\.000 .*\ncall 1 0\\.100 .*\ncall 2 0\\.000 .*\ncall 2 0\\.100 "));
}

TEST_F(SpeechTest, OneLabelForARecording) {
  test::write_tones(folder_ / "tones", 120, 20, 30, 1);
  const train::Result result = learn({"task.objective=utterance", "features.stack=1", "train.epochs=4"});
  EXPECT_LT(result.test.at("error_rate"), 0.05);
  const torch::NoGradGuard no_grad;
  const auto model = load_run(folder_ / "run");
  EXPECT_THAT(model->predict({file("test0.wav")})[0],
              testing::ContainsRegex("^(low|mid|high)\t[01]\\.[0-9]+$"));
}

TEST_F(SpeechTest, ATestSetIsScoredWithoutATrainingSet) {
  test::write_tones(folder_ / "tones", 20, 4, 6, 2);
  const train::Result result = learn({"train.epochs=1"});
  for (const char* set : {"train", "dev"}) std::filesystem::remove(file(std::string(set) + ".tsv"));
  const torch::NoGradGuard no_grad;
  const std::shared_ptr<Model> model = load_run(folder_ / "run");
  const auto data = load({}, {.split = "test", .model = model.get()});
  EXPECT_EQ(data->make_task(model)->evaluate("test", {}).figures.at("error_rate"),
            result.test.at("error_rate"));
}

TEST_F(SpeechTest, CharactersAreHeardToo) {
  test::write_tones(folder_ / "tones", 20, 4, 4, 2);
  const train::Result result = learn({"task.units=characters", "features.stack=1", "train.epochs=1"});
  EXPECT_THAT(text_of(folder_ / "run" / "test.errors.txt"), HasSubstr("%CER"));
  EXPECT_THAT(text_of(folder_ / "run" / "test.errors.txt"), HasSubstr("%WER"));
  EXPECT_THAT(text_of(folder_ / "run" / "best" / "classes.txt"), StartsWith("<blank>\n<space>\n"));
}

TEST_F(SpeechTest, FramesAndTheirPhones) {
  test::write_phones(folder_ / "tones");
  const train::Result result =
      learn({"task.data=timit", "task.objective=frames", "features.stack=1", "task.dev_speakers=fcleo0",
             "task.test_speakers=mdave0", "train.epochs=40", "train.batch=2", "model.bidirectional=true"});
  EXPECT_LT(result.test.at("frame_error"), 0.15);
  EXPECT_LT(result.test.at("error_rate"), 0.2);
  EXPECT_THAT(text_of(folder_ / "run" / "test.errors.txt"), StartsWith("%PER "));
  const auto model = load_run(folder_ / "run");
  const torch::NoGradGuard no_grad;
  EXPECT_THAT(model->predict({file("dr1/mdave0/si1.wav")})[0], StartsWith("sil "));

  // For a hybrid decoder: log posterior less log prior of each frame and class.
  model->export_to({.format = "kaldi", .folder = folder_ / "made"});
  const auto entries = data::read_kaldi_script(folder_ / "made" / "test.scp");
  ASSERT_EQ(entries.size(), 2);
  const at::Tensor scores = data::read_kaldi_matrix(entries[0].location);
  EXPECT_EQ(scores.size(1), 61);
  EXPECT_EQ(text_of(folder_ / "made" / "classes.txt"), text_of(folder_ / "run" / "best" / "classes.txt"));
  EXPECT_EQ(entries[0].location.find(folder_.string()), 0);
}

TEST_F(SpeechTest, PhonesByCtc) {
  test::write_phones(folder_ / "tones");
  const train::Result result = learn({"task.data=timit", "task.units=phones", "features.stack=1",
                                      "task.test_speakers=mdave0", "train.epochs=1", "train.batch=2"});
  EXPECT_THAT(text_of(folder_ / "run" / "test.errors.txt"), StartsWith("%PER "));
  EXPECT_THAT(text_of(folder_ / "run" / "best" / "classes.txt"), testing::StrEq("<blank>\naa\niy\ns\nsil\n"));
}

TEST_F(SpeechTest, PhonesNeedNoWords) {
  test::write_phones(folder_ / "tones");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ / "tones"))
    if (entry.path().extension() == ".wrd") std::filesystem::remove(entry.path());
  for (const char* phones : {"task.objective=frames", "task.units=phones"})
    EXPECT_EQ(error_of_load({"task.data=timit", "features.stack=1", phones}), "no error");
  EXPECT_THAT(error_of_load({"task.data=timit"}), HasSubstr("neither a .wrd nor a .txt file"));
}

TEST_F(SpeechTest, AlignmentsAndStoredFeaturesOfKaldi) {
  for (const char* set : {"train", "test"}) {
    const auto place = folder_ / "tones" / set;
    std::filesystem::create_directories(place);
    data::KaldiArchiveWriter features(place / "feats.ark", place / "feats.scp");
    std::ofstream text(place / "text"), labels(place / "ali.ark");
    torch::manual_seed(1);
    for (int i = 0; i < 6; ++i) {
      const std::string id = std::string(set) + std::to_string(i);
      const at::Tensor classes = torch::arange(40).div(10, "floor").remainder(3);
      const at::Tensor energies = torch::one_hot(classes, 12).to(torch::kFloat) * 5 + torch::randn({40, 12});
      features.write(id, energies);
      text << id << " some words\n";
      labels << id;
      // The test set has a class more, in a tenth of its frames.
      for (int64_t t = 0; t < 40; ++t)
        labels << " " << (set[1] == 'e' && t < 4 ? 9 : classes[t].item<int64_t>());
      labels << "\n";
    }
    features.close();
  }
  const train::Result result = learn({"task.data=kaldi", "task.objective=frames", "features.source=stored",
                                      "features.stack=1", "train.epochs=20", "train.batch=2"});
  EXPECT_GE(result.test.at("frame_error"), 0.1);
  EXPECT_LT(result.test.at("frame_error"), 0.2);
  EXPECT_LT(result.test.at("loss"), 0.5);  // of the classes that can be learned
  EXPECT_FALSE(result.test.contains("error_rate"));
  const auto data = load({"task.data=kaldi", "task.objective=frames", "features.source=stored",
                          "features.stack=1", "task.test_speakers=train0", "task.dev_speakers=train1"});
  EXPECT_THAT(make_task(data->recipe(), *data)->evaluate("dev", {}).samples, testing::IsEmpty());
  EXPECT_FALSE(data->recipe().options->answers_lines());
  const std::shared_ptr<Model> model = load_run(folder_ / "run");
  EXPECT_THAT(what_is_said([&] { answer(*model, std::vector<std::string>{"any.wav"}); }),
              HasSubstr("this run reads stored features"));
  // There is no dev set.
  model->export_to({.format = "kaldi", .folder = folder_ / "made"});
  EXPECT_TRUE(std::filesystem::exists(folder_ / "made/test.ark"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "made/dev.ark"));
  // Other features than the run's are refused.
  const auto other = folder_ / "other/test";
  std::filesystem::create_directories(other);
  data::KaldiArchiveWriter wider(other / "feats.ark", other / "feats.scp");
  wider.write("one", torch::zeros({4, 16}));
  wider.close();
  std::ofstream(other / "text") << "one some words\n";
  std::ofstream(other / "ali.ark") << "one 0 0 0 0\n";
  const std::string folder = (folder_ / "other").string();
  EXPECT_THAT(what_is_said([&] {
                load_data(model->recipe(), {folder, "test", model.get()});
              }),
              HasSubstr("have 16 columns, but those of the run had 12"));
}

TEST_F(SpeechTest, AnswersNormaliseAsTrainingDid) {
  // One utterance a speaker: what is known of the speaker is what is known of the file.
  test::write_tones(folder_ / "tones", 24, 4, 6, 2);
  for (const char* set : {"train", "dev", "test"}) {
    std::istringstream lines(text_of(file(std::string(set) + ".tsv")));
    std::ofstream alone(file(std::string(set) + ".tsv"));
    int speaker = 0;
    for (std::string name, text, rest;
         std::getline(lines, name, '\t') && std::getline(lines, text, '\t') && std::getline(lines, rest);)
      alone << name << "\t" << text << "\t" << set << speaker++ << "\n";
  }
  const torch::NoGradGuard no_grad;
  for (const std::string by : {"training", "speaker", "utterance", "none"}) {
    {
      const at::AutoGradMode learning(true);
      learn({"features.normalise=" + by, "train.epochs=8", "train.batch=2"}, by);
    }
    // What evaluation heard is what the run answers, of whole files and bit by bit.
    std::istringstream heard(text_of(folder_ / by / "test.hyp.trn"));
    const auto model = load_run(folder_ / by);
    for (int i = 0; i < 6; ++i) {
      const std::string name = file("test" + std::to_string(i) + ".wav");
      std::string line;
      ASSERT_TRUE(std::getline(heard, line, '('));
      while (line.ends_with(' ')) line.pop_back();
      heard.ignore(1000, '\n');
      EXPECT_EQ(model->predict({name})[0], line) << by;
      if (by == "speaker" || by == "utterance") continue;
      const auto live = model->listen(0);
      for (const at::Tensor& piece : data::read_audio(name).samples[0].split(333)) live->push(piece);
      EXPECT_EQ(live->finish(), line) << by;
    }
    if (by == "training" || by == "none") continue;
    EXPECT_THAT([&] { model->listen(0); },
                testing::ThrowsMessage<RecipeError>(HasSubstr("features.normalise = " + by)));
  }
}

TEST_F(SpeechTest, EveryOptionOfFeaturesTrains) {
  test::write_tones(folder_ / "tones", 12, 4, 4, 2);
  for (const auto& settings : std::vector<std::vector<std::string>>{
           {"features.normalise=speaker", "features.scale=component"},
           {"features.normalise=none", "features.derivatives=0", "model.algebra=real"},
           {"features.speeds=0.9 1 1.1"},
           {"features.band_masks=1", "features.time_masks=2"},
           {"features.rate=16000"},
           {"train.batch_seconds=2.0"},
           {"model.cell=gru", "model.bidirectional=true", "model.share_directions=true"},
           {"model.dense=16", "model.bidirectional=true"}}) {
    auto all = settings;
    all.push_back("train.epochs=1");
    const train::Result result = learn(all, "run-" + settings[0]);
    EXPECT_TRUE(std::isfinite(result.test.at("loss"))) << settings[0];
    const torch::NoGradGuard no_grad;
    EXPECT_EQ(load_run(folder_ / ("run-" + settings[0]))->predict({file("test0.wav")}).size(), 1)
        << settings[0];
  }
}

// A word takes .2 s and the pause before the first .05 s, and batches are of about equal lengths.
TEST_F(SpeechTest, BatchesHoldSoManySeconds) {
  test::write_tones(folder_ / "tones", 40, 2, 2, 4);
  std::map<std::string, double> seconds;
  for (int i = 0; i < 40; ++i) {
    const std::string name = "train" + std::to_string(i) + ".wav";
    seconds[name] = static_cast<double>(data::read_audio(file(name)).samples.size(1)) / test::kRate;
  }
  // Most seconds with padding and most utterances of any batch, and how many batches there are.
  struct Batches {
    double longest = 0;
    size_t most = 0;
    int64_t count = 0;
  };
  const auto batches = [&](const std::vector<std::string>& settings) {
    const auto data = load(settings);
    const auto task = make_task(data->recipe(), *data);
    Batches found{.count = task->batches()};
    for (const int64_t epoch : {0, 1}) {
      std::multiset<std::string> all;
      for (int64_t i = 0; i < found.count; ++i) {
        std::string names = task->describe_batch(epoch, i);
        names = names.substr(names.find("utterances ") + 11);
        std::ranges::replace(names, ',', ' ');
        const auto batch = data::split(names, data::Tokenizer::whitespace);
        double longest = 0;
        for (const auto& name : batch) longest = std::max(longest, seconds.at(name));
        all.insert(batch.begin(), batch.end());
        found.most = std::max(found.most, batch.size());
        if (batch.size() > 1)
          found.longest = std::max(found.longest, longest * static_cast<double>(batch.size()));
      }
      EXPECT_EQ(all.size(), seconds.size());
      for (const auto& [name, length] : seconds) EXPECT_EQ(all.count(name), 1) << name;
    }
    return found;
  };
  const Batches free = batches({}), two = batches({"train.batch_seconds=2.0"}),
                pairs = batches({"train.batch_seconds=2.0", "train.batch=2"}),
                half = batches({"train.batch_seconds=0.5"});
  EXPECT_EQ(free.count, 5);
  EXPECT_GT(free.longest, 5);
  EXPECT_LE(two.longest, 2.0);
  EXPECT_GT(two.longest, 1.5);
  EXPECT_GT(two.count, free.count);
  EXPECT_EQ(pairs.most, 2);
  EXPECT_GE(pairs.count, 20);
  EXPECT_LE(half.longest, 0.5);  // an utterance that is longer comes alone
  EXPECT_GT(half.count, two.count);
}

}  // namespace
}  // namespace quatrain::tasks
