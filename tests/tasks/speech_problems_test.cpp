#include "quatrain/data/kaldi_archive.h"

#include <cmath>

#include "quatrain/nn/convert.h"
#include "tasks/changed_set.h"
#include "tasks/speech_runs.h"
#include "train/finite.h"

namespace quatrain::tasks {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using SpeechProblemsTest = SpeechRuns;

TEST_F(SpeechProblemsTest, ARunGoesOnWithTheSameRecordingsAlone) {
  test::write_tones(folder_ / "tones", 12, 4, 4, 2);
  const auto run = [&](const std::string& name, int64_t steps, bool resume) {
    const auto data =
        load({"train.epochs=2", "features.speeds=1 1.1", "train.steps=" + std::to_string(steps)});
    const auto task = make_task(data->recipe(), *data);
    train::Trainer(
        *task, data->recipe().train,
        {.folder = folder_ / name, .existing = resume ? train::Existing::resume : train::Existing::refuse})
        .run();
  };
  run("stopped", 1, false);
  const auto refused = [&](const std::filesystem::path& changed, const std::string& bytes) {
    const std::string before = text_of(changed);
    std::ofstream(changed, std::ios::binary) << bytes;
    EXPECT_THAT([&] { run("stopped", 2, true); },
                testing::ThrowsMessage<std::exception>(HasSubstr("train.recordings.checksum")));
    std::ofstream(changed, std::ios::binary) << before;
  };
  refused(file("train3.wav"), text_of(file("train4.wav")));
  std::string faster = text_of(file("train3.wav"));
  faster[25] = static_cast<char>(2 * faster[25]);  // the same samples, in half the time
  refused(file("train3.wav"), faster);
  std::string speakers = text_of(file("train.tsv"));
  speakers.replace(speakers.find("anna"), 4, "carl");
  refused(file("train.tsv"), speakers);
  for (const std::string set : {"dev", "test"}) {
    const std::filesystem::path list = file(set + ".tsv"), away = file("away");
    std::filesystem::rename(list, away);
    EXPECT_THAT([&] { run("stopped", 2, true); },
                testing::ThrowsMessage<std::exception>(HasSubstr(set + ".recordings.checksum")));
    std::filesystem::rename(away, list);
  }
  run("stopped", 2, true);
  for (const std::string set : {"train", "dev", "test"}) {
    EXPECT_THAT(changed_set(folder_ / "stopped", set), testing::IsEmpty());
    const std::string before = text_of(file(set + "0.wav"));
    std::ofstream(file(set + "0.wav"), std::ios::binary) << text_of(file(set + "1.wav"));
    EXPECT_THAT(changed_set(folder_ / "stopped", set), ElementsAre(set + ".recordings"));
    std::ofstream(file(set + "0.wav"), std::ios::binary) << before;
  }
}

TEST_F(SpeechProblemsTest, BadUtterancesAreNamed) {
  test::write_tones(folder_ / "tones", 8, 2, 2, 2);
  test::write_recording(file("train1.wav"), {5});
  EXPECT_THAT(error_of_load({}), HasSubstr("\"train1.wav\""));
  EXPECT_THAT(error_of_load({}), HasSubstr("has no frame"));
  auto data = load({"task.skip_bad=true"});
  EXPECT_THAT(data->notes(), testing::Contains("train set: 1 utterance without a frame, left out"));

  // Empty, and at a rate that cannot be brought to the others'.
  test::write_recording(file("train1.wav"), {});
  EXPECT_THAT(error_of_load({}), HasSubstr("has no frame (its 0 samples are too few)"));
  test::write_recording(file("train1.wav"), std::vector<int16_t>(100), 20);
  test::write_recording(file("test1.wav"), std::vector<int16_t>(100), 20);
  EXPECT_THAT(error_of_load({}), testing::AllOf(HasSubstr("\"train1.wav\""), HasSubstr("got 20 and 8000")));
  data = load({"task.skip_bad=true", "features.speeds=0.9 1"});
  EXPECT_THAT(data->notes(),
              ElementsAre(HasSubstr("train set: 1 utterance left out (the recording cannot be read)"),
                          HasSubstr("test set: 1 utterance left out (the recording cannot be read)")));

  // However many speeds there are, an utterance is counted once.
  test::write_recording(file("train1.wav"), {5});
  test::write_recording(file("test1.wav"), std::vector<int16_t>(800));
  data = load({"task.skip_bad=true", "features.speeds=0.9 1 1.1"});
  EXPECT_THAT(data->notes(), testing::Contains("train set: 1 utterance without a frame, left out"));

  uint64_t state = 3;
  test::write_recording(file("train1.wav"), test::say({1}, state));
  test::write_recording(file("test1.wav"), test::say({1}, state));
  data = load({"task.skip_bad=true", "features.stack=12", "features.speeds=0.9 1 4"});
  EXPECT_THAT(data->notes(),
              testing::Contains(testing::ContainsRegex("^train set: [1-8] utterances? too short")));
  EXPECT_THAT(error_of_load({"features.stack=64"}), HasSubstr("is too short for its text"));
}

TEST_F(SpeechProblemsTest, BadLinesAreNamed) {
  test::write_tones(folder_ / "tones", 8, 2, 2, 2);
  const std::string lines = text_of(file("test.tsv"));
  std::ofstream(file("test.tsv"), std::ios::app) << "test0.wav\tunheard\n";
  EXPECT_THAT(error_of_load({}), HasSubstr("there is another utterance"));
  std::ofstream(file("test.tsv")) << lines;
  std::ofstream(file("train.tsv")) << "train0.wav\tlow <blank>\n";
  EXPECT_THAT(error_of_load({}), HasSubstr("the texts have the word <blank>"));
}

TEST_F(SpeechProblemsTest, WordsOfTheTestSetAloneAreErrorsThatAreCounted) {
  test::write_tones(folder_ / "tones", 8, 2, 2, 2);
  const train::Result known = learn({"train.epochs=1"}, "known");
  {
    uint64_t state = 3;
    test::write_recording(file("new.wav"), test::say({1}, state));
    std::ofstream(file("test.tsv"), std::ios::app) << "new.wav\tunheard\n";
    test::write_recording(file("one.wav"), {5});
    std::ofstream(file("test.tsv"), std::ios::app) << "one.wav\tlow\n";
  }
  const auto data = load({});
  EXPECT_THAT(
      data->notes(),
      ElementsAre("test set: 1 token that the training set does not have, which cannot be recognised, "
                  "the first \"unheard\"",
                  "test set: 1 utterance without a frame, to which the answer is empty"));
  const train::Result result = learn({"train.epochs=1"});
  EXPECT_EQ(result.test.at("count"), 4);
  EXPECT_GT(result.test.at("error_rate"), 0);
  EXPECT_NEAR(result.test.at("loss"), known.test.at("loss"), 1e-5);  // an unheard word has none
}

// The answers are numbers, though no text of the set can be learned.
TEST_F(SpeechProblemsTest, ASetOfUnheardWordsHasNoLoss) {
  test::write_tones(folder_ / "tones", 8, 2, 2, 2);
  uint64_t state = 3;
  test::write_recording(file("new.wav"), test::say({1}, state));
  std::ofstream(file("test.tsv")) << "new.wav\tunheard\n";
  const train::Result result = learn({"train.epochs=1"});
  for (const train::Figures& figures : {result.test, train::read_result(folder_ / "run").test}) {
    EXPECT_TRUE(std::isnan(figures.at("loss")));
    EXPECT_GE(figures.at("error_rate"), 1);
    EXPECT_EQ(train::doubt_of(figures, "test"), "");
  }
}

// What .trn files cannot hold must not end a run that was trained.
TEST_F(SpeechProblemsTest, TextsThatLookLikeCommentsAreScored) {
  test::write_tones(folder_ / "tones", 8, 2, 2, 2);
  uint64_t state = 3;
  test::write_recording(file("new.wav"), test::say({1}, state));
  std::ofstream(file("test.tsv"), std::ios::app) << "new.wav\t;; low\n";
  EXPECT_GT(learn({"train.epochs=1"}).test.at("error_rate"), 0);
  EXPECT_THAT(text_of(folder_ / "run" / "test.ref.trn"), HasSubstr("__ low ("));
}

// The columns of a real one are not those of a twin that joins its directions inside each component.
TEST_F(SpeechProblemsTest, ADenseLayerOfBothDirectionsIsNotConverted) {
  test::write_tones(folder_ / "tones", 8, 2, 2, 1);
  for (const std::string both : {"true", "false"}) {
    learn({"model.algebra=real", "model.dense=16", "model.bidirectional=" + both, "train.epochs=1"}, both);
    const auto model = load_run(folder_ / both);
    if (both == "true") {
      EXPECT_THAT([&] { model->in_algebra("quaternion"); },
                  testing::ThrowsMessage<RecipeError>(HasSubstr("train the network in quaternion anew")));
    } else {
      const auto twin = model->in_algebra("quaternion");
      EXPECT_EQ(nn::fill_nearest(model->module(), twin->module()).converted(), 3);
    }
  }
}

TEST_F(SpeechProblemsTest, WeightsOfOtherFeaturesAreRefused) {
  test::write_tones(folder_ / "tones", 8, 2, 2, 2);
  learn({"train.epochs=1"});
  const std::string weights = "train.weights=" + (folder_ / "run").string();
  const auto made = [&](const std::string& setting) {
    return what_is_said([&] {
      const auto data = load({weights, setting});
      make_task(data->recipe(), *data);
    });
  };
  EXPECT_EQ(made("features.band_masks=1"), "no error");
  EXPECT_THAT(made("features.preemphasis=0.5"), HasSubstr("hears other features (features.preemphasis)"));
}

// A small set lacks classes, which the run's last layer keeps; another language has others.
TEST_F(SpeechProblemsTest, OtherClassesGetALastLayerOfTheirOwn) {
  test::write_tones(folder_ / "tones", 8, 2, 2, 2);
  learn({"train.epochs=1"});
  const auto run = load_run(folder_ / "run");
  const auto trained = run->module().named_parameters();
  // Of the run's blank, high, low and mid.
  struct Case {
    std::string word, setting;
    int64_t classes;
    std::string note;
  };
  for (const auto& [word, setting, classes, note] :
       {Case{"low", "task.units=words", 4, "the classes are the 3 of"},
        {"other", "task.units=words", 2,
         "the last layer starts from random weights: the labels of these data, 1 in all"},
        {"low", "task.units=characters", 4,
         "the last layer starts from random weights: the labels of these data, 3 in all"},
        {"low", "task.objective=utterance", 1,
         "the last layer starts from random weights: the labels of these data, 1 in all"}}) {
    std::ofstream(file("train.tsv")) << "train0.wav\t" << word << "\ntrain1.wav\t" << word << "\n";
    const auto data = load({"train.weights=" + (folder_ / "run").string(), setting});
    EXPECT_THAT(data->notes(), testing::Contains(HasSubstr(note)));
    const auto resumed = load({setting}, {.vocabulary = folder_ / "run" / "best", .resumes = true});
    EXPECT_THAT(resumed->notes(), testing::Not(testing::Contains(HasSubstr(note))));
    const auto model = make_model(data->recipe(), *data);
    for (const auto& item : model->module().named_parameters()) {
      const bool anew = item.key().starts_with("output.") && note.starts_with("the last layer");
      const at::Tensor& before = trained[item.key()];
      EXPECT_EQ(before.sizes() == item.value().sizes() && at::equal(before, item.value()), !anew)
          << item.key() << " " << word << " " << setting;
    }
    EXPECT_EQ(model->module().named_parameters()["output.weight"].size(0), classes);
  }
}

TEST_F(SpeechProblemsTest, RefusesWhatDoesNotFit) {
  const auto error = [&](const std::vector<std::string>& settings) -> std::string {
    try {
      recipe_of(settings);
    } catch (const RecipeError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(error({"features.bands=15", "features.derivatives=0"}), HasSubstr("features.bands times 2"));
  EXPECT_THAT(error({"task.units=phones"}), HasSubstr("may be phones for timit alone"));
  EXPECT_THAT(error({"task.objective=frames"}), HasSubstr("timit and kaldi alone"));
  EXPECT_THAT(error({"features.speeds=fast"}), HasSubstr("must be factors from 0.1 to 10"));
  EXPECT_THAT(error({"decode.language=words.arpa"}), HasSubstr("needs a beam above 1"));
  EXPECT_THAT(error({"model.share_directions=true"}), HasSubstr("needs model.bidirectional"));
  EXPECT_THAT(error({"features.source=stored"}), HasSubstr("kaldi alone"));
  EXPECT_THAT(
      error({"features.source=stored", "task.data=kaldi", "features.bands=128"}),
      HasSubstr("features.bands=128: features.bands would do nothing: it needs features.source = audio"));
  // What the filter bank would refuse; half the rate is known from the recipe, or from the recordings.
  EXPECT_THAT(error({"features.rate=1"}), HasSubstr("features.rate must be at least 100, so that"));
  EXPECT_THAT(error({"features.rate=8000", "features.low=4000.0"}),
              HasSubstr("features.low must be below 4000 Hz, half the rate, got 4000"));
  EXPECT_THAT(error({"features.rate=8000", "features.high=-3990.0"}),
              HasSubstr("features.high must end the bands above features.low = 20 Hz"));
  EXPECT_EQ(error({"features.rate=8000", "features.high=4000.0"}), "no error");
  test::write_tones(folder_ / "tones", 4, 2, 2, 1);
  EXPECT_THROW(load({"features.high=99999.0"}), RecipeError);
  EXPECT_THROW(load({"features.bands=256"}), RecipeError);
}

// Their number is not the recipe's.
TEST_F(SpeechProblemsTest, NDividesTheColumnsOfStoredFeatures) {
  const auto place = folder_ / "tones" / "train";
  std::filesystem::create_directories(place);
  const auto write = [&](int64_t columns) {
    data::KaldiArchiveWriter features(place / "feats.ark", place / "feats.scp");
    features.write("one", torch::rand({4, columns}));
    features.close();
  };
  std::ofstream(place / "text") << "one word\n";
  const std::vector<std::string> settings{"task.data=kaldi",        "features.source=stored",
                                          "features.derivatives=0", "features.stack=1",
                                          "model.algebra=phm(5)",   "model.hidden=5"};
  write(15);
  EXPECT_EQ(error_of_load(settings), "no error");
  write(24);
  EXPECT_THAT(error_of_load(settings), HasSubstr("must be divisible by n = 5 (phm(5)), got 24"));
}

TEST_F(SpeechProblemsTest, PathsAreStoredFromTheRootOn) {
  test::write_tones(folder_ / "tones", 4, 2, 2, 1);
  const auto data = load({"decode.beam=2", "decode.language=words/../words.arpa", "train.weights=run"});
  const auto here = std::filesystem::current_path();
  EXPECT_EQ(find_value(data->recipe(), "decode.language"), (here / "words.arpa").string());
  EXPECT_EQ(find_value(data->recipe(), "train.weights"), (here / "run").string());
  EXPECT_EQ(find_value(load({})->recipe(), "decode.language"), "");
}

TEST_F(SpeechProblemsTest, NumbersThatAreNoBandsAreNoted) {
  test::write_tones(folder_ / "tones", 8, 2, 2, 2);
  const auto notes = [&](const std::vector<std::string>& settings) { return load(settings)->notes(); };
  EXPECT_THAT(
      notes({"features.derivatives=0"}),
      ElementsAre("features.derivatives = 0 gives 1 component of each band, and quaternion has 4: no "
                  "number is one band with all its derivatives; features.derivatives = 3 makes it so"));
  EXPECT_THAT(notes({"model.algebra=octonion"}),
              ElementsAre("features.derivatives = 3 gives 4 components of each band, and octonion has 8: no "
                          "number is one band with all its derivatives"));
  EXPECT_THAT(notes({}), testing::IsEmpty());
  EXPECT_THAT(notes({"features.derivatives=2", "model.algebra=phm(3)", "model.hidden=33"}),
              testing::IsEmpty());
  EXPECT_THAT(notes({"features.derivatives=0", "model.algebra=real"}), testing::IsEmpty());
}

TEST_F(SpeechProblemsTest, ADevSetThatIsMissingIsSaid) {
  test::write_tones(folder_ / "tones", 8, 2, 2, 2);
  std::filesystem::remove(file("dev.tsv"));
  const std::string dev = "there is no dev set: the last weights count as the best";
  EXPECT_THAT(notes_of_missing_sets(*load({})), ElementsAre(dev));
  std::filesystem::remove(file("test.tsv"));
  EXPECT_THAT(notes_of_missing_sets(*load({})),
              ElementsAre(dev, "there is no test set: nothing is scored at the end"));
  EXPECT_THAT(load({})->notes(), ElementsAre("task.test_speakers can name the speakers of a test set"));
}

// A run that must name a class says so; a transcript may be empty.
TEST_F(SpeechProblemsTest, ARecordingWithoutAFrameHasNoClass) {
  test::write_tones(folder_ / "tones", 8, 2, 2, 2);
  test::write_recording(folder_ / "one.wav", std::vector<int16_t>(1));
  for (const std::string by : {"training", "utterance"}) {
    learn({"task.objective=utterance", "features.stack=1", "train.epochs=1", "features.normalise=" + by}, by);
    const torch::NoGradGuard no_grad;
    const auto model = load_run(folder_ / by);
    EXPECT_THAT(
        [&] { model->predict({(folder_ / "one.wav").string()}); },
        testing::ThrowsMessage<LineError>(HasSubstr("one.wav is too short to be heard: it has 1 sample")));
    if (by != "training") continue;
    EXPECT_THAT([&] { model->listen(0)->finish(); },
                testing::ThrowsMessage<c10::Error>(HasSubstr("the sound is too short to be heard")));
  }
}

TEST_F(SpeechProblemsTest, FilesThatAreNoneAreNamed) {
  test::write_tones(folder_ / "tones", 8, 2, 2, 2);
  learn({"train.epochs=1"});
  const auto model = load_run(folder_ / "run");
  EXPECT_EQ(model->line_problem("nowhere.wav"), "there is no audio file \"nowhere.wav\"");
  EXPECT_THAT(model->line_problem(folder_.string()), HasSubstr("cannot be read: it is a folder"));
  EXPECT_THAT(model->line_problem("/dev/zero"), HasSubstr("cannot be read: it is a pipe or a device"));
  std::ofstream(folder_ / "text.wav") << "this is no sound";
  const torch::NoGradGuard no_grad;
  EXPECT_THAT([&] { model->predict({(folder_ / "text.wav").string()}); },
              testing::ThrowsMessage<LineError>(HasSubstr("text.wav")));
  test::write_recording(folder_ / "slow.wav", std::vector<int16_t>(100), 20);
  EXPECT_THAT([&] { model->predict({(folder_ / "slow.wav").string()}); },
              testing::ThrowsMessage<LineError>(
                  HasSubstr("slow.wav has 20 samples a second, and the run hears 8000 (features.rate)")));
  test::write_recording(folder_ / "one.wav", {5});
  test::write_recording(folder_ / "silent.wav", std::vector<int16_t>(8000));
  test::write_recording(folder_ / "clipped.wav", std::vector<int16_t>(8000, 32767));
  const auto answers = model->predict({(folder_ / "one.wav").string(), (folder_ / "silent.wav").string(),
                                       (folder_ / "clipped.wav").string()});
  EXPECT_EQ(answers[0], "");
}

TEST_F(SpeechProblemsTest, AlignmentsThatDoNotFitAreNamed) {
  const auto place = folder_ / "tones" / "train";
  std::filesystem::create_directories(place);
  std::ofstream list(place / "wav.scp"), text(place / "text"), labels(place / "ali.ark");
  for (const char* id : {"good", "long"}) {
    test::write_recording(place / (std::string(id) + ".wav"), std::vector<int16_t>(800));
    list << id << " " << id << ".wav\n";
    text << id << " word\n";
    labels << id << (id[0] == 'g' ? " 0 1 1 1 0 0 0 1 1 0\n" : " 0 1 1\n");
  }
  list.close(), text.close(), labels.close();
  const std::vector<std::string> settings{"task.data=kaldi", "task.objective=frames", "features.stack=1"};
  EXPECT_THAT(error_of_load(settings),
              testing::AllOf(HasSubstr("\"long\""), HasSubstr("a label for each of its 10 frames, got 3")));
  auto skipping = settings;
  skipping.push_back("task.skip_bad=true");
  EXPECT_THAT(load(skipping)->notes(),
              ElementsAre(HasSubstr("train set: 1 utterance left out (the alignment does not fit)"),
                          HasSubstr("task.test_speakers")));
  EXPECT_THAT(notes_of_missing_sets(*load(skipping)),
              ElementsAre(HasSubstr("no dev set"), HasSubstr("no test set")));
}

TEST_F(SpeechProblemsTest, AlignmentsOfOtherClassesAreNamed) {
  const auto write_set = [&](const std::string& set, const std::vector<std::string>& alignments) {
    const auto place = folder_ / "tones" / set;
    std::filesystem::create_directories(place);
    std::ofstream list(place / "wav.scp"), text(place / "text"), labels(place / "ali.ark");
    for (size_t i = 0; i < alignments.size(); ++i) {
      const std::string id = set + std::to_string(i);
      test::write_recording(place / (id + ".wav"), std::vector<int16_t>(400));
      list << id << " " << id << ".wav\n";
      text << id << " word\n";
      labels << id << " " << alignments[i] << "\n";
    }
  };
  const std::vector<std::string> settings{"task.data=kaldi", "task.objective=frames", "features.stack=1",
                                          "train.epochs=1"};
  write_set("train", {"0 1 1 1 0"});
  write_set("test", {"0 1 7 7 0", "7 8 8 7 7", "9 9 9 9 9"});
  EXPECT_THAT(
      load(settings)->notes(),
      ElementsAre("test set: 12 frames of classes that the training set does not have, which cannot be "
                  "recognised, the first \"7\"",
                  "test set: 2 utterances with such frames alone, which are scored but have no loss"));
  EXPECT_THAT(notes_of_missing_sets(*load(settings)), ElementsAre(HasSubstr("no dev set")));
  EXPECT_GT(learn(settings).test.at("loss"), 0);
  write_set("train", {"0 1 1 1 0", "0 1 40000 1 0"});  // Kaldi's transition ids are such
  EXPECT_THAT(error_of_load(settings),
              testing::AllOf(HasSubstr("train1 has the class 40000"), HasSubstr("ali-to-pdf")));
  write_set("train", {"0 1 1 1 0"});
  write_set("test", {"7 8 8 7 7", "9 9 9 9 9"});
  EXPECT_THAT(
      error_of_load(settings),
      HasSubstr("no frame of the test set is of a class that the training set has (the first is \"7\")"));
}

TEST_F(SpeechProblemsTest, ALanguageModelHasAllWordsOrIsRefusedAtOnce) {
  test::write_tones(folder_ / "tones", 8, 2, 2, 2);
  learn({"train.epochs=1"});
  std::ofstream(folder_ / "words.arpa")
      << "\\data\\\nngram 1=4\n\n\\1-grams:\n-1 <s>\n-1 </s>\n-1 low\n-1 mid\n\n\\end\\\n";
  const std::string language = "decode.language=" + (folder_ / "words.arpa").string();
  EXPECT_THAT(
      [&] {
        load_run(folder_ / "run", {Setting::parse("decode.beam=4"), Setting::parse(language)});
      },
      testing::ThrowsMessage<RecipeError>(HasSubstr("has neither \"high\"")));
  EXPECT_THROW(learn({"decode.beam=4", language}, "other"), RecipeError);
}

}  // namespace
}  // namespace quatrain::tasks
