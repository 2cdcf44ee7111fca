// What runs that make lines of lines answer, by what [decode] asks for.

#include <gmock/gmock.h>

#include <cmath>

#include "tasks/seq2seq_runs.h"

namespace quatrain::tasks {
namespace {

using testing::AllOf, testing::HasSubstr, testing::Not, testing::StartsWith;

class Seq2SeqPredictTest : public Seq2SeqKindTest {
 protected:
  std::unique_ptr<Model> model(const std::vector<std::string>& settings = {},
                               const std::string& run = "run") {
    return load_run(folder_ / run, settings_of_tests(settings));
  }
  std::vector<std::string> answers(const std::vector<std::string>& lines,
                                   const std::vector<std::string>& settings) {
    return model(settings)->predict(lines);
  }
  std::string refusal(const std::vector<std::string>& settings) {
    try {
      model(settings);
    } catch (const RecipeError& error) {
      return error.what();
    }
    return "no error";
  }
  // Words backwards, learned well.
  void learn_words(const std::vector<std::string>& more = {}, const std::string& run = "run") {
    std::vector<std::string> settings{"vocabulary.pieces=words"};
    settings.insert(settings.end(), more.begin(), more.end());
    learn(recipe(settings), {.folder = folder_ / run});
  }
  // What a model does not answer, and the answers before it.
  static std::string problem_of(Model& model, const std::vector<std::string>& lines, size_t answered) {
    const auto [answers, problem] = answer(model, lines);
    EXPECT_EQ(answers.size(), answered);
    return problem;
  }
};

TEST_F(Seq2SeqPredictTest, SeveralHypothesesWithScores) {
  learn(recipe({"train.steps=30", "decode.beam=4", "decode.best=3", "decode.scores=true"}));
  const auto model = load_run(folder_ / "run");
  const std::string answer = model->predict({"a b c"}).front();
  EXPECT_EQ(std::count(answer.begin(), answer.end(), '\t'), 5) << answer;
  const double first = std::stod(answer), third = std::stod(answer.substr(answer.find_last_of('-')));
  EXPECT_GE(first, third);
}

TEST_F(Seq2SeqPredictTest, RepeatsAndPhrasesAreBanned) {
  learn(recipe({"train.steps=1", "vocabulary.pieces=words"}));
  const auto answer = [&](const std::vector<std::string>& settings) {
    std::vector<std::string> all{"decode.shortest=6", "decode.beam=1"};
    all.insert(all.end(), settings.begin(), settings.end());
    return load_run(folder_ / "run", settings_of_tests(all))->predict({"a b c"}).front();
  };
  // Of a model that knows nothing, one letter again and again.
  std::istringstream free(answer({}));
  std::string letter, second;
  free >> letter >> second;
  ASSERT_EQ(letter, second);
  EXPECT_THAT(answer({"decode.no_repeat=2"}), testing::Not(HasSubstr(letter + " " + letter + " " + letter)));
  EXPECT_THAT(answer({"decode.banned=" + letter}), testing::Not(HasSubstr(letter)));
  const std::string pair = letter + " " + letter;
  EXPECT_THAT(answer({"decode.banned=" + pair + " | <unk>"}),
              testing::AllOf(testing::StartsWith(letter), testing::Not(HasSubstr(pair))));
  const auto refused = [&](const std::string& phrases) -> std::string {
    try {
      answer({"decode.banned=" + phrases});
    } catch (const RecipeError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(refused("a | Q"), HasSubstr("decode.banned has \"Q\", which the target's vocabulary"));
  EXPECT_THAT(refused("a |  | b"), HasSubstr("decode.banned must have phrases"));
}

TEST_F(Seq2SeqPredictTest, LongLinesAreCutAndCounted) {
  learn(recipe({"train.steps=4", "task.max_source=6"}));
  const auto model = load_run(folder_ / "run");
  std::string line;
  for (int i = 0; i < 100000; ++i) line += "a ";
  EXPECT_EQ(model->predict({line, "a"}).size(), 2U);
  EXPECT_THAT(model->summary(), HasSubstr("1 line cut at 6 tokens"));
}

TEST_F(Seq2SeqPredictTest, BeginningsAreGoneOnWith) {
  learn_words();
  const std::vector<std::string> lines{"a b c\tc", "a b c\t", "\ta", "a b c\tg"};
  const auto found = answers(lines, {"decode.reads=beginning", "decode.beam=3"});
  EXPECT_EQ(found[0], "c b a");
  EXPECT_EQ(found[1], "c b a");
  EXPECT_EQ(found[2], "");
  EXPECT_THAT(found[3], StartsWith("g"));
  // Several hypotheses: each begins with it.
  const std::string best =
      answers({"a b c\tg f"}, {"decode.reads=beginning", "decode.beam=3", "decode.best=3"})[0];
  std::istringstream stream(best);
  int count = 0;
  for (std::string one; std::getline(stream, one, '\t'); ++count) EXPECT_THAT(one, StartsWith("g f"));
  EXPECT_EQ(count, 3) << best;

  // What the vocabulary does not have stays, whatever else is replaced. A model that never met such a
  // beginning rambles on where the search goes on.
  for (const char* replaces : {"false", "true"}) {
    const auto given = answers({"a b c\tQ  b "}, {"decode.reads=beginning", "decode.patience=1",
                                                  std::string("decode.replace_unknown=") + replaces})[0];
    EXPECT_THAT(given, AllOf(StartsWith("Q  b"), Not(testing::EndsWith(" ")), Not(HasSubstr("<unk>"))));
  }
  EXPECT_THAT(answers({"a b\tb", "", " ", "c\tc"}, {"decode.reads=beginning"}),
              testing::ElementsAre("b a", "", "", "c"));

  EXPECT_THAT(answers({"a b\tb\r\x01 c"}, {"decode.reads=beginning"})[0], StartsWith("b   c"));
  // Of characters a space at the end is one.
  learn(recipe(), {.folder = folder_ / "characters"});
  EXPECT_THAT(model({"decode.reads=beginning"}, "characters")->predict({"a b c\tc ", "a b c\tc"}),
              testing::ElementsAre("c b a", "c b a"));

  const auto asking = model({"decode.reads=beginning", "decode.longest=4"});
  EXPECT_THAT(
      problem_of(*asking, {"a\tb", "a b", "c\td"}, 1),
      HasSubstr("a line must have a source, a tab and a beginning (decode.reads = beginning), this one "
                "has no tab"));
  EXPECT_THAT(problem_of(*asking, {"a\tb", "a\tb\tc"}, 1),
              HasSubstr("a line must have one tab (decode.reads = beginning), this one has more"));
  EXPECT_THAT(problem_of(*asking, {"a\tb b b b", "a\tb b b b b"}, 1),
              HasSubstr("a beginning may have at most 4 tokens (decode.longest), this one has 5"));
}

TEST_F(Seq2SeqPredictTest, LinesWithoutAWordHaveEmptyAnswers) {
  const std::vector<std::string> lines{"", "  ", "\xC2\xA0", " \xE3\x80\x80", "a b"};
  for (const char* pieces : {"characters", "words"}) {
    learn(recipe({"train.steps=1", std::string("vocabulary.pieces=") + pieces, "decode.shortest=2"}),
          {.folder = folder_ / pieces});
    EXPECT_THAT(model({}, pieces)->predict(lines),
                testing::ElementsAre("", "", "", "", Not(testing::IsEmpty())));
    EXPECT_THAT(model({"decode.reads=pair"}, pieces)->predict({" \ta", "a\t"}),
                testing::ElementsAre("", Not(testing::IsEmpty())));
  }
}

TEST_F(Seq2SeqPredictTest, PairsAreScored) {
  learn_words({"train.steps=60"});
  // Without a length penalty a score is the sum of log-probabilities.
  const std::vector<std::string> search{"decode.beam=3", "decode.best=3", "decode.scores=true",
                                        "decode.alpha=0"};
  std::istringstream found(answers({"a b c"}, search)[0]);
  std::vector<std::string> lines{"\ta"};
  std::vector<double> expected;
  for (std::string score, text; std::getline(found, score, '\t') && std::getline(found, text, '\t');) {
    expected.push_back(std::stod(score));
    lines.push_back("a b c\t" + text);
  }
  ASSERT_EQ(expected.size(), 3U);
  const auto scoring = model({"decode.reads=pair"});
  const auto scores = scoring->predict(lines);
  EXPECT_EQ(scores[0], "");  // nothing is made of an empty source
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(std::stod(scores[i + 1]), expected[i], 2e-4) << lines[i + 1];
    const auto words = static_cast<size_t>(std::count(lines[i + 1].begin(), lines[i + 1].end(), ' ')) - 1;
    EXPECT_THAT(scores[i + 1], testing::EndsWith("\t" + std::to_string(words + 1)));  // and the end mark
  }
  EXPECT_THAT(scoring->summary(), HasSubstr(" tokens scored, "));
  EXPECT_THAT(scoring->predict({"", "a\ta"}), testing::ElementsAre("", Not(testing::IsEmpty())));
  // What is given is not searched for, so that no limit of a search counts.
  const std::string longer = "a b c\ta b c d e f";
  EXPECT_EQ(problem_of(*model({"decode.reads=pair", "decode.longest=4"}), {longer}, 1), "");
  EXPECT_THAT(problem_of(*scoring, {"a b"}, 0),
              HasSubstr("a source, a tab and a target (decode.reads = pair)"));
}

// One head that can do nothing else than look where the word is.
const std::vector<std::string> kOneHead{"model.attention=real", "model.heads=1", "reverse.shortest=3"};

TEST_F(Seq2SeqPredictTest, AlignmentsAreWhereWordsComeFrom) {
  learn_words(kOneHead);
  const std::vector<std::string> settings{"decode.alignments=true"};
  EXPECT_EQ(answers({"a b c", "", "e f g a"}, settings),
            (std::vector<std::string>{"c b a\t2-0 1-1 0-2", "", "a g f e\t3-0 2-1 1-2 0-3"}));
  const std::string pair = "a b c\tc b a";
  EXPECT_EQ(answers({pair}, {"decode.alignments=true", "decode.reads=pair"})[0],
            answers({pair}, {"decode.reads=pair"})[0] + "\t2-0 1-1 0-2");
  const std::string two = answers(
      {"a b c"}, {"decode.alignments=true", "decode.best=2", "decode.beam=2", "decode.scores=true"})[0];
  EXPECT_EQ(std::count(two.begin(), two.end(), '\t'), 5) << two;
}

TEST_F(Seq2SeqPredictTest, UnknownWordsAreCopied) {
  auto settings = kOneHead;
  settings.insert(settings.end(), {"vocabulary.size=8", "train.steps=700"});  // four of the seven letters
  learn_words(settings);
  const std::vector<std::string> lines{"a b c d", "e f g a", "c e g", "z y x"};
  const auto aligned = answers(lines, {"decode.alignments=true"});
  const auto copied = answers(lines, {"decode.replace_unknown=true"});
  int unknown = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    const size_t tab = aligned[i].find('\t');
    std::istringstream tokens(aligned[i].substr(0, tab)), places(aligned[i].substr(tab));
    std::string expected, token;
    for (size_t place; tokens >> token && places >> place; places.ignore(2)) {
      unknown += token == "<unk>";
      expected += (expected.empty() ? "" : " ") + (token == "<unk>" ? lines[i].substr(2 * place, 1) : token);
    }
    EXPECT_EQ(copied[i], expected) << aligned[i];
  }
  EXPECT_GT(unknown, 2);
  EXPECT_EQ(answers(lines, {"decode.replace_unknown=true", "decode.alignments=true"})[1],
            copied[1] + aligned[1].substr(aligned[1].find('\t')));
  // The figures are those of what is written.
  const auto exact = [&](const std::vector<std::string>& more) {
    const std::shared_ptr<Model> scored = model(more);
    const auto data = load_data(scored->recipe(), {"", "test", scored.get()});
    return data->make_task(scored)->evaluate("test", [] {}).figures.at("exact");
  };
  EXPECT_GT(exact({"decode.replace_unknown=true"}), exact({}) + 0.3);
}

TEST_F(Seq2SeqPredictTest, SeveralRunsAnswerWithTheMeanOfTheirProbabilities) {
  learn_words({"train.steps=40"}, "first");
  learn_words({"train.steps=60", "train.seed=5", "model.algebra=real", "model.width=16"}, "second");
  const auto probability = [](Model& model) { return std::exp(std::stod(model.predict({"a b c\t"})[0])); };
  const auto first = model({"decode.reads=pair"}, "first"), second = model({"decode.reads=pair"}, "second");
  const double one = probability(*first), other = probability(*second);
  ASSERT_GT(std::abs(one - other), 1e-4);
  first->answer_with(*second);
  EXPECT_NEAR(probability(*first), (one + other) / 2, 1e-4 * (one + other));

  // Sets are scored so, too: no worse than the mean of the losses, and alone as before.
  const auto loss = [&](const std::string& run, const Model* with) {
    const std::shared_ptr<Model> scored = model({}, run);
    if (with) scored->answer_with(*with);
    const auto data = load_data(scored->recipe(), {"", "test", scored.get()});
    return data->make_task(scored)->evaluate("test", [] {}).figures.at("loss");
  };
  const double both = loss("first", second.get()),
               mean = (loss("first", nullptr) + loss("second", nullptr)) / 2;
  EXPECT_LT(both, mean);
  EXPECT_NEAR(loss("first", model({}, "first").get()), loss("first", nullptr), 1e-5);

  learn(recipe({"train.steps=1"}), {.folder = folder_ / "characters"});
  try {
    first->answer_with(*model({}, "characters"));
    FAIL() << "no error";
  } catch (const RecipeError& error) {
    EXPECT_THAT(error.what(), HasSubstr("their pieces differ"));
  }
}

TEST_F(Seq2SeqPredictTest, RunsThatAnswerTogetherLimitTheShortest) {
  learn(recipe({"train.steps=1"}), {.folder = folder_ / "one"});
  learn(recipe({"train.steps=1", "model.positions=learned", "model.max_positions=32"}),
        {.folder = folder_ / "two"});
  const auto first = model({"decode.shortest=40"}, "one"), second = model({}, "two");
  EXPECT_THAT([&] { first->answer_with(*second); },
              testing::ThrowsMessage<RecipeError>(
                  HasSubstr("decode.shortest must be below model.max_positions = 32")));
}

// Where positions are learned, a model has no others.
TEST_F(Seq2SeqPredictTest, LearnedPositionsLimitLines) {
  learn(recipe({"train.steps=2", "model.positions=learned", "model.max_positions=32"}));
  const auto asking = model({"decode.reads=beginning"});
  const std::string long_line = "a b c d e f g a b c d e f g a b c";  // 33 characters
  EXPECT_EQ(asking->predict({long_line + "\ta b"}).size(), 1U);
  EXPECT_THAT(asking->summary(), HasSubstr("1 line cut at 31 tokens"));
  EXPECT_THAT(problem_of(*asking, {"a\t" + long_line}, 0), HasSubstr("at most 31 tokens"));
}

}  // namespace
}  // namespace quatrain::tasks
