#include "quatrain/data/audio.h"
#include "quatrain/data/tokenizer.h"
#include "quatrain/scores/transcripts.h"
#include "tasks/speech/report.h"
#include "tasks/speech_runs.h"
#include "train/score.h"

namespace quatrain::tasks {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

using SpeechSearchTest = SpeechRuns;

// A language model that takes nothing off a word, but forbids pairs.
void write_language(const std::filesystem::path& file, const std::vector<std::string>& words,
                    const std::vector<std::string>& forbidden_pairs) {
  std::ofstream out(file);
  out << "\\data\\\nngram 1=" << words.size() + 2 << "\nngram 2=" << forbidden_pairs.size()
      << "\n\n\\1-grams:\n-99 <s> 0\n-0.001 </s>\n";
  for (const auto& word : words) out << "-0.001 " << word << " 0\n";
  out << "\n\\2-grams:\n";
  for (const auto& pair : forbidden_pairs) out << "-99 " << pair << "\n";
  out << "\n\\end\\\n";
}

// All pairs that end with a word.
std::vector<std::string> pairs_into(const std::string& word, std::vector<std::string> words) {
  words.emplace_back("<s>");
  for (auto& before : words) before += " " + word;
  return words;
}

std::vector<std::string> answers_of(const std::filesystem::path& run, const std::vector<std::string>& files,
                                    const std::vector<std::string>& settings) {
  const torch::NoGradGuard no_grad;
  return load_run(run, settings_of_tests(settings))->predict(files);
}

// That word goes, and answers that do not have it stay: each class has the language model's own word.
void expect_forbidden(const std::vector<std::string>& free, const std::vector<std::string>& bound,
                      const std::string& forbidden) {
  int with = 0;
  ASSERT_EQ(free.size(), bound.size());
  for (size_t i = 0; i < free.size(); ++i) {
    EXPECT_THAT(bound[i], testing::Not(HasSubstr(forbidden)));
    if (free[i].find(forbidden) != std::string::npos) {
      ++with;
    } else {
      EXPECT_EQ(bound[i], free[i]);
    }
  }
  EXPECT_GT(with, 0);
  EXPECT_LT(with, static_cast<int>(free.size()));
}

TEST_F(SpeechSearchTest, ALanguageModelForbidsAWord) {
  test::write_tones(folder_ / "tones", 120, 4, 12, 3);
  const auto arpa = folder_ / "words.arpa";
  const std::vector<std::string> words{"high", "low", "mid"};
  write_language(arpa, words, pairs_into("mid", words));
  const std::string language = "decode.language=" + arpa.string();
  const train::Result result = learn({language, "decode.beam=8", "decode.language_weight=1.0"});
  EXPECT_GT(result.test.at("error_rate"), 0.1);
  EXPECT_THAT(text_of(folder_ / "run" / "test.ref.trn"), HasSubstr("mid"));
  EXPECT_THAT(text_of(folder_ / "run" / "test.hyp.trn"), testing::Not(HasSubstr("mid")));

  std::vector<std::string> files;
  for (int i = 0; i < 12; ++i) files.push_back(file("test" + std::to_string(i) + ".wav"));
  const auto free = answers_of(folder_ / "run", files, {"decode.language="});
  expect_forbidden(free, answers_of(folder_ / "run", files, {}), "mid");
  EXPECT_EQ(answers_of(folder_ / "run", files, {"decode.language_weight=0.0"}), free);
  const auto said = scores::read_trn(folder_ / "run" / "test.ref.trn");
  for (size_t i = 0; i < files.size(); ++i)
    EXPECT_EQ(data::split(free[i], data::Tokenizer::whitespace), said[i].tokens);
}

TEST_F(SpeechSearchTest, ALanguageModelOfCharactersKnowsTheSpace) {
  test::write_tones(folder_ / "tones", 120, 4, 12, 3);
  learn({"task.units=characters", "features.stack=1", "train.epochs=10", "decode.beam=8"});
  const auto arpa = folder_ / "characters.arpa";
  write_language(arpa, {"<space>", "d", "g", "h", "i", "l", "m", "o", "w"}, {"<space> m"});
  std::vector<std::string> files;
  for (int i = 0; i < 12; ++i) files.push_back(file("test" + std::to_string(i) + ".wav"));
  const auto free = answers_of(folder_ / "run", files, {});
  const auto bound =
      answers_of(folder_ / "run", files, {"decode.language=" + arpa.string(), "decode.language_weight=1.0"});
  expect_forbidden(free, bound, " m");
  EXPECT_THAT(bound, testing::Contains(StartsWith("mid")));  // behind nothing it may stand
}

TEST_F(SpeechSearchTest, ALanguageModelOfPhonesForbidsOne) {
  test::write_phones(folder_ / "tones");
  learn({"task.data=timit", "task.units=phones", "features.stack=1", "task.test_speakers=mdave0",
         "train.epochs=60", "train.batch=2", "decode.beam=8"});
  const auto arpa = folder_ / "phones.arpa";
  const std::vector<std::string> phones{"aa", "iy", "s", "sil"};
  write_language(arpa, phones, pairs_into("iy", phones));
  std::vector<std::string> files;
  for (const char* speaker : {"fanna0", "mbert0", "fcleo0", "mdave0"})
    for (const char* sentence : {"si1", "sx2"})
      files.push_back(file("dr1/" + std::string(speaker) + "/" + sentence + ".wav"));
  uint64_t state = 8;
  test::write_recording(file("without.wav"), test::say({0, 2, 2, 0}, state));
  files.push_back(file("without.wav"));
  const auto free = answers_of(folder_ / "run", files, {});
  const auto bound =
      answers_of(folder_ / "run", files, {"decode.language=" + arpa.string(), "decode.language_weight=1.0"});
  expect_forbidden(free, bound, "iy");
}

// Five words in the places of five others are six edits for sclite, where two of them are right elsewhere.
TEST_F(SpeechSearchTest, ErrorsAreAlignedAsSclitesWhereAsked) {
  test::write_tones(folder_ / "tones", 120, 4, 4, 3);
  uint64_t state = 3;
  test::write_recording(file("long.wav"), test::say({0, 1, 2, 2, 2}, state));
  std::ofstream(file("test.tsv")) << "long.wav\tnever said these low mid\n";
  learn({"decode.alignment=sclite"});
  const auto run = folder_ / "run";
  ASSERT_THAT(text_of(run / "test.hyp.trn"), StartsWith("low mid high high high ("));
  EXPECT_THAT(text_of(run / "test.errors.txt"), StartsWith("%WER 120.00 [ 6 / 5, 3 ins, 3 del, 0 sub ]\n"));
  const auto lines = [&](const std::vector<std::string>& settings) {
    const std::shared_ptr<Model> model = load_run(run, settings_of_tests(settings), Use::scores);
    const auto data = load_data(model->recipe(), {(folder_ / "tones").string(), "test", model.get()});
    return train::score(*data->make_task(model), "test", false, {}).lines;
  };
  EXPECT_EQ(lines({})[0], "%WER 120.00 [ 6 / 5, 3 ins, 3 del, 0 sub ]");
  EXPECT_EQ(lines({"decode.alignment=fewest_edits"})[0], "%WER 100.00 [ 5 / 5, 0 ins, 0 del, 5 sub ]");
}

// Words that characters spell are aligned as the characters are.
TEST(SpeechReportTest, WordsOfCharactersAreAlignedAsAsked) {
  const auto spelled = [](const std::string& text) {
    std::vector<std::string> characters;
    for (const char c : text) characters.push_back(c == ' ' ? SpeechClasses::kSpace : std::string(1, c));
    return characters;
  };
  std::vector<HeardToken> heard;
  for (const auto& character : spelled("low mid high high high")) heard.emplace_back().text = character;
  data::Utterance utterance;
  utterance.id = "one", utterance.rate = 8000;
  SpeechTaskOptions options;
  options.objective = Objective::ctc;
  options.units = Units::characters;
  const auto words = [&](scores::AlignmentRule rule) {
    options.decode.alignment = rule;
    SpeechReport report(options);
    report.add(utterance, spelled("never said these low mid"), heard);
    return report.lines()[1];
  };
  EXPECT_EQ(words(scores::AlignmentRule::sclite), "%WER 120.00 [ 6 / 5, 3 ins, 3 del, 0 sub ]");
  EXPECT_EQ(words(scores::AlignmentRule::fewest_edits), "%WER 100.00 [ 5 / 5, 0 ins, 0 del, 5 sub ]");
}

// What a file .trn cannot hold is replaced, and names that differ still differ.
TEST(SpeechReportTest, NamesStayApart) {
  SpeechTaskOptions options;
  options.objective = Objective::ctc;
  SpeechReport report(options);
  const auto add = [&](const std::string& speaker, const std::string& id) {
    data::Utterance utterance;
    utterance.speaker = speaker, utterance.id = id, utterance.rate = 8000;
    report.add(utterance, {"low"}, {});
  };
  add("x-1", "a b.wav");
  add("x_1", "a_b.wav");
  add("x-1", "a(b.wav");
  add("x-1", "c-d");
  EXPECT_EQ(report.files("test").at("test.ref.trn"),
            "low (x_1-a_b.wav)\nlow (x_1_2-a_b.wav_2)\nlow (x_1-a_b.wav_3)\nlow (x_1-c-d)\n");
}

std::vector<std::string> fields_of(const std::string& answer) {
  std::vector<std::string> fields;
  std::istringstream stream(answer);
  for (std::string field; std::getline(stream, field, '\t');) fields.push_back(field);
  return fields;
}

TEST_F(SpeechSearchTest, SeveralAnswersComeWithTheirScores) {
  test::write_tones(folder_ / "tones", 40, 4, 4, 3);
  learn({"train.epochs=3"});
  learn({"train.epochs=2", "task.units=characters", "features.stack=1"}, "characters");
  const std::vector<std::string> files{file("test0.wav")};
  for (const char* run : {"run", "characters"}) {
    SCOPED_TRACE(run);
    const std::string one = answers_of(folder_ / run, files, {"decode.beam=8"})[0];
    const auto three = fields_of(answers_of(folder_ / run, files, {"decode.beam=8", "decode.best=3"})[0]);
    ASSERT_EQ(three.size(), 3);
    EXPECT_EQ(three[0], one);
    EXPECT_EQ(std::set(three.begin(), three.end()).size(), 3);
    const std::vector<std::string> all{"decode.beam=8", "decode.best=3", "decode.scores=true",
                                       "decode.times=true"};
    const std::string answer = answers_of(folder_ / run, files, all)[0];
    const auto fields = fields_of(answer);
    ASSERT_EQ(fields.size(), 9) << answer;
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_THAT(fields[3 * i], testing::MatchesRegex("-[0-9]+\\.[0-9]{4}"));
      EXPECT_EQ(fields[3 * i + 1], three[i]);
      if (i > 0) {
        EXPECT_LE(std::stod(fields[3 * i]), std::stod(fields[3 * i - 3]));
      }
      const auto words = data::split(fields[3 * i + 1], data::Tokenizer::whitespace);
      EXPECT_EQ(data::split(fields[3 * i + 2], data::Tokenizer::whitespace).size(), words.size()) << answer;
    }
    const torch::NoGradGuard no_grad;
    const auto model = load_run(folder_ / run, settings_of_tests(all));
    const auto live = model->listen(0);
    live->push(data::read_audio(files[0]).samples[0]);
    EXPECT_EQ(live->finish(), answer);
  }
  // The best path has a score of its own.
  EXPECT_THAT(answers_of(folder_ / "run", files, {"decode.scores=true"})[0],
              testing::MatchesRegex("-[0-9]+\\.[0-9]{4}\t[a-z ]*"));
  EXPECT_THAT(
      [&] {
        answers_of(folder_ / "run", files, {"decode.best=3", "decode.beam=2"});
      },
      testing::ThrowsMessage<RecipeError>(HasSubstr("must be at most decode.beam = 2, got 3")));
  learn({"task.objective=utterance", "train.epochs=1"}, "label");
  for (const char* setting : {"decode.best=1", "decode.scores=true"})
    EXPECT_THAT([&] { answers_of(folder_ / "label", files, {setting}); },
                testing::ThrowsMessage<RecipeError>(HasSubstr("task.objective = ctc")));
}

}  // namespace
}  // namespace quatrain::tasks
