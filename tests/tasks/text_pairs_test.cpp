// Pairs of texts: training, parts of the figures, ranking, resuming, answers, and what is refused.

#include <gmock/gmock.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <sstream>

#include "quatrain/data/vocabulary.h"
#include "quatrain/models/pair_attention.h"
#include "quatrain/nn/convert.h"
#include "quatrain/nn/parameters.h"
#include "quatrain/tasks/run.h"
#include "quatrain/train/trainer.h"
#include "tasks/changed_set.h"
#include "tasks/settings.h"
#include "temporary_folder.h"
#include "threads.h"

namespace quatrain::tasks {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kPairs = R"toml(
[task]
kind = "text_pairs"
data = "entailment"
[entailment]
train = 3000
dev = 100
test = 400
[model]
algebra = "quaternion"
width = 32
layers = 1
word_width = 32
train_words = true
classifier_width = 32
[train]
rate = 5e-3
warmup = 20
steps = 300
batch = 64
evaluate_every = 100
threads = 1
)toml";

class TextPairsKindTest : public test::FolderTest {
 protected:
  Recipe recipe_of(const std::vector<std::string>& settings = {}) {
    return parse_recipe(kPairs, "pairs.toml", "pairs", settings_of_tests(settings));
  }
  train::Result learn(const Recipe& recipe, const train::RunOptions& run) {
    const auto data = load_data(recipe, {});
    const auto task = make_task(data->recipe(), *data);
    return train::Trainer(*task, data->recipe().train, run).run();
  }
  train::Result learn(const std::vector<std::string>& settings) {
    return learn(recipe_of(settings), {.folder = folder_ / "run", .existing = train::Existing::overwrite});
  }
  train::Result learn_until(int64_t step, const Recipe& recipe, const fs::path& folder) {
    std::atomic<bool> stop = false;
    train::RunOptions run{.folder = folder};
    run.stop = &stop;
    run.on_progress = [&](const train::Progress& progress) { stop = progress.step >= step; };
    return learn(recipe, run);
  }
  void write(const std::string& name, const std::string& text) {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
  }
  std::string read(const std::string& name) {
    std::ostringstream text;
    text << std::ifstream(folder_ / name).rdbuf();
    return text.str();
  }
  // Five questions with four answers each, of which the one that has the question's word is right.
  std::vector<std::string> write_answers() {
    for (const char* set : {"train", "dev", "test"}) {
      std::string a, b, sim, id;
      for (int question = 0; question < 5; ++question)
        for (int i = 0; i < 4; ++i) {
          a += "where is word" + std::to_string(question) + "\n";
          b += "here is word" + std::to_string((question + i) % 5) + "\n";
          sim += i == 0 ? "1\n" : "0\n";
          id += "Q" + std::to_string(question) + "-D" + std::to_string(question) + "-" + std::to_string(i) +
                "\n";
        }
      const std::string to = "answers/" + std::string(set) + "/";
      write(to + "a.toks", a), write(to + "b.toks", b), write(to + "sim.txt", sim), write(to + "id.txt", id);
    }
    return {"task.data=wikiqa", "task.folder=" + (folder_ / "answers").string(), "train.batch=8"};
  }
  template <class Call>
  std::string what_is_said(const Call& call) {
    try {
      call();
    } catch (const c10::Error& error) {
      return error.what_without_backtrace();
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(TextPairsKindTest, AnLstmIsConvertedAndAttentionIsNot) {
  const torch::NoGradGuard no_grad;
  const auto recipe = recipe_of({"model.network=lstm", "model.algebra=quaternion"});
  const auto model = load_data(recipe, {})->make_model(recipe);
  const auto real = model->in_algebra("real");
  nn::fill_nearest(model->module(), real->module());
  model->module().eval();
  real->module().eval();
  const std::vector<at::Tensor> texts{torch::randint(2, 9, {3, 5}), torch::randint(2, 9, {3, 4})};
  EXPECT_TRUE(at::allclose(model->forward(texts), real->forward(texts), 1e-4, 1e-5));

  const auto attention = recipe_of({"model.algebra=real"});
  EXPECT_THAT(
      what_is_said([&] { load_data(attention, {})->make_model(attention)->in_algebra("quaternion"); }),
      HasSubstr("cannot be converted to another algebra"));
}

// Whoever looks at words alone is right in exactly half of the order part.
TEST_F(TextPairsKindTest, AttentionAlignsButDoesNotSeeOrder) {
  const auto result = learn(std::vector<std::string>{});
  EXPECT_GT(result.test.at("accuracy/part=alignment"), 0.55);
  EXPECT_NEAR(result.test.at("accuracy/part=order"), 0.5, 1e-9);
  EXPECT_NEAR(result.test.at("majority/part=order"), 0.5, 1e-9);
  EXPECT_NEAR(result.test.at("majority/part=alignment"), 1.0 / 3, 0.01);
  EXPECT_EQ(result.test.at("count/part=order"), 200);
  EXPECT_GT(result.test.at("f1"), 0.5);
  double right = 0;
  for (const char* label : {"entailment", "neutral", "contradiction"})
    right += result.test.at("accuracy/label=" + std::string(label)) *
             result.test.at("count/label=" + std::string(label));
  EXPECT_NEAR(right / 400, result.test.at("accuracy"), 1e-9);
}

TEST_F(TextPairsKindTest, AnLstmSeesOrder) {
  const auto result = learn({"model.network=lstm", "model.algebra=real", "entailment.order_share=1",
                             "train.steps=600", "entailment.train=4000"});
  EXPECT_GT(result.test.at("accuracy"), 0.7);
}

TEST_F(TextPairsKindTest, AnswersLinesOfTwoTextsInOrder) {
  learn({"train.steps=20"});
  const auto model = load_run(folder_ / "run");
  const torch::NoGradGuard no_grad;
  const std::vector<std::string> lines{"the old dog sleeps at night\tthe animal sleeps",
                                       "the cat\tthe animal", "the car moves\tthe unheard"};
  const auto answers = model->predict(lines);
  ASSERT_EQ(answers.size(), 3u);
  for (size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(model->predict({lines[i]})[0], answers[i]) << i;
  EXPECT_EQ(std::count(answers[0].begin(), answers[0].end(), '\t'), 3);
  EXPECT_EQ(model->line_problem("one text"), "a line must be two texts with one tab between, got 0 tabs");
  EXPECT_EQ(model->line_problem("a\tb\tc"), "a line must be two texts with one tab between, got 2 tabs");
  EXPECT_THAT(model->line_problem(" \tb"), HasSubstr("the first text must not be empty"));
  EXPECT_THAT(model->line_problem("a\t"), HasSubstr("the second text must not be empty"));
  EXPECT_EQ(model->line_problem("\xC2\xA0\tb"), "the first text must have a word, got \"\\xC2\\xA0\"");
  EXPECT_EQ(model->line_problem("a\t\x01"), "the second text must have a word, got \"\\x01\"");
  EXPECT_EQ(model->line_problem(lines[0]), "");
  // By the tokenizer of training: <br> is a word where white space alone cuts texts.
  EXPECT_EQ(model->line_problem("a\t<br>"), "");
  const auto data = load_data(recipe_of({"task.tokenizer=simple"}), {});
  EXPECT_EQ(data->make_model(data->recipe())->line_problem("a\t<br>"),
            "the second text must have a word, got \"<br>\"");
}

TEST_F(TextPairsKindTest, RanksAnswers) {
  auto settings = write_answers();
  settings.insert(settings.end(), {"train.steps=150", "train.evaluate_every=50"});
  const auto result = learn(settings);
  EXPECT_GT(result.test.at("map"), 0.9);
  EXPECT_EQ(result.test.at("questions"), 5);
  EXPECT_NEAR(result.test.at("majority"), 0.75, 1e-9);
  EXPECT_GE(result.test.at("mrr"), result.test.at("precision_at_1"));
  // What compare resamples are the questions, whose mean is the figure.
  for (const std::string figure : {"map", "mrr", "precision_at_1"}) {
    std::istringstream counts(read("run/" + figure + ".counts.tsv"));
    std::string line;
    std::getline(counts, line);
    double sum = 0, units = 0, questions = 0;
    for (double one, unit; counts >> one >> unit; ++questions) sum += one, units += unit;
    EXPECT_EQ(questions, 5) << figure;
    EXPECT_NEAR(sum / units, result.test.at(figure), 1e-8) << figure;
  }
  const std::string ranking = read("run/test.ranking.tsv");
  EXPECT_EQ(std::count(ranking.begin(), ranking.end(), '\n'), 21);
  EXPECT_THAT(ranking, HasSubstr("\nQ0\tQ0-D0-0\t1\t"));
  const torch::NoGradGuard no_grad;
  EXPECT_THAT(load_run(folder_ / "run")->predict({"where is word1\there is word1"})[0],
              testing::StartsWith("right\t0."));
}

TEST_F(TextPairsKindTest, ATestSetIsScoredWithoutATrainingSet) {
  const std::string lines = "yes\ta dog\tan animal\nno\ta dog\ta car\n";
  for (const char* set : {"train", "dev", "test"}) write("own/" + std::string(set) + ".tsv", lines);
  const std::vector<std::string> settings{"task.data=tsv", "task.folder=" + (folder_ / "own").string(),
                                          "train.steps=2", "train.evaluate_every=2"};
  const double accuracy = learn(settings).test.at("accuracy");
  for (const char* set : {"train", "dev"}) fs::remove(folder_ / "own" / (std::string(set) + ".tsv"));
  const torch::NoGradGuard no_grad;
  const std::shared_ptr<Model> model = load_run(folder_ / "run");
  const auto data = load_data(model->recipe(), {.split = "test", .model = model.get()});
  EXPECT_EQ(data->make_task(model)->evaluate("test", {}).figures.at("accuracy"), accuracy);
  EXPECT_THAT(changed_set(folder_ / "run", "test"), testing::IsEmpty());
  write("own/test.tsv", lines + lines);
  EXPECT_THAT(changed_set(folder_ / "run", "test"), testing::ElementsAre("test.tsv"));
}

TEST_F(TextPairsKindTest, NegativesAreForRankedAnswers) {
  auto settings = write_answers();
  settings.insert(settings.end(), {"train.steps=4", "task.negatives=1"});
  const auto data = load_data(recipe_of(settings), {});
  const auto task = make_task(data->recipe(), *data);
  EXPECT_EQ(task->batches(), 2);  // ten of twenty pairs
  EXPECT_THAT(what_is_said([&] { recipe_of({"task.negatives=1"}); }),
              HasSubstr("task.negatives is for data whose answers are ranked"));
}

TEST_F(TextPairsKindTest, ResumesBitForBitWithinAnEpoch) {
  const test::Threads threads(2);
  for (const std::string network : {"attention", "lstm"}) {
    auto settings = write_answers();
    settings.insert(settings.end(), {"train.steps=12", "train.evaluate_every=4", "model.dropout=0.1",
                                     "task.negatives=2", "model.network=" + network});
    const Recipe recipe = recipe_of(settings);
    learn(recipe, {.folder = folder_ / "whole"});
    EXPECT_FALSE(learn_until(5, recipe, folder_ / "half").finished);
    learn(recipe, {.folder = folder_ / "half", .existing = train::Existing::resume});
    for (const char* name : {"best/model.safetensors", "test.ranking.tsv"})
      EXPECT_EQ(read("whole/" + std::string(name)), read("half/" + std::string(name)))
          << network << " " << name;
    fs::remove_all(folder_ / "whole");
    fs::remove_all(folder_ / "half");
  }
}

TEST_F(TextPairsKindTest, DataThatWereReplacedAreRefused) {
  const Recipe recipe = recipe_of([&] {
    auto settings = write_answers();
    settings.push_back("train.steps=4");
    return settings;
  }());
  learn(recipe, {.folder = folder_ / "run"});
  EXPECT_TRUE(fs::exists(folder_ / "run" / "best" / "dev.sim.txt.checksum"));
  EXPECT_THAT(changed_set(folder_ / "run", "test"), testing::IsEmpty());
  learn_until(2, recipe, folder_ / "half");
  write("answers/dev/b.toks", read("answers/dev/b.toks").replace(0, 4, "were"));
  EXPECT_THAT(
      what_is_said([&] { learn(recipe, {.folder = folder_ / "half", .existing = train::Existing::resume}); }),
      HasSubstr("dev.b.toks.checksum"));
}

TEST_F(TextPairsKindTest, VectorsOfWordsAreLoadedAndStay) {
  write("vectors.txt", "dog 1 0 0 0\nanimal 0 1 0 0\n");
  const auto recipe = recipe_of({"task.vectors=" + (folder_ / "vectors.txt").string(),
                                 "model.train_words=false", "train.steps=5", "model.network=lstm"});
  const auto data = load_data(recipe, {});
  EXPECT_THAT(data->notes(), testing::Contains(HasSubstr("words with a vector in vectors.txt: 2 of")));
  learn(recipe, {.folder = folder_ / "run"});
  const auto model = load_run(folder_ / "run");
  bool found = false;
  for (const auto& one : model->module().named_parameters())
    if (one.key() == "words.embedding.weight") {
      found = true;
      EXPECT_EQ(one.value().size(1), 4);
      EXPECT_EQ(one.value().eq(torch::tensor({1.f, 0.f, 0.f, 0.f})).all(1).sum().item<int64_t>(), 1);
    }
  EXPECT_TRUE(found);
  EXPECT_THAT(what_is_said([&] {
                const auto phm = recipe_of({"task.vectors=" + (folder_ / "vectors.txt").string(),
                                            "model.network=lstm", "model.algebra=phm(8)"});
                load_data(phm, {})->make_model(phm);
              }),
              HasSubstr("must have an n that divides the width of the words' vectors, 4"));
}

// Vectors that nobody trains and that no file gives stay as they are drawn, and are short enough for a
// softmax that nothing scales.
TEST_F(TextPairsKindTest, VectorsThatAreNotTrainedAreDrawnShort) {
  const auto data = load_data(recipe_of({"model.train_words=false", "model.word_width=64"}), {});
  EXPECT_THAT(data->notes(), testing::Contains(HasSubstr("task.vectors names a file of pretrained ones")));
  const auto words = data->make_model(data->recipe())->module().named_parameters()["words.embedding.weight"];
  EXPECT_NEAR(words.slice(0, 1).square().sum(1).mean().item<double>(), 1, 0.1);
  EXPECT_EQ(words[data::Vocabulary::kPad].abs().sum().item<double>(), 0);
  const auto others = data->make_model(data->recipe())->module().named_parameters()["words.embedding.weight"];
  EXPECT_TRUE(words.equal(others));
  EXPECT_THAT(load_data(recipe_of(), {})->notes(),
              testing::ElementsAre(testing::MatchesRegex(
                  "labels: entailment [0-9,]+, neutral [0-9,]+, contradiction [0-9,]+ of 3,000 pairs")));
}

// Nothing could be learned, or selected by.
TEST_F(TextPairsKindTest, RankedSetsNeedRightAnswersAndWrongOnes) {
  const auto settings = write_answers();
  const auto said = [&](const std::string& set, const std::string& relevance) {
    const std::string file = "answers/" + set + "/sim.txt", before = read(file);
    std::string changed;
    for (int i = 0; i < 20; ++i) changed += relevance + "\n";
    write(file, changed);
    const std::string sentence = what_is_said([&] { load_data(recipe_of(settings), {}); });
    write(file, before);
    return sentence;
  };
  EXPECT_THAT(said("train", "0"),
              HasSubstr("answers/train/sim.txt must have right answers (1) and wrong ones "
                        "(0) to train on, got only 0"));
  EXPECT_THAT(said("train", "1"), HasSubstr("to train on, got only 1"));
  EXPECT_THAT(said("dev", "0"), HasSubstr("answers/dev/sim.txt must have a right answer (1), because MAP on "
                                          "it selects the checkpoint, got only 0"));
  EXPECT_EQ(said("dev", "1"), "");
  EXPECT_EQ(said("test", "0"), "");
}

// Before any of them is trained.
TEST_F(TextPairsKindTest, TwinsThatCannotShareTheirWordsAreRefused) {
  write("vectors.txt", "dog 1 0 0 0\nanimal 0 1 0 0\n");
  const auto said = [&](const std::string& twin, const std::vector<std::string>& settings) {
    const Recipe recipe =
        parse_recipe(kPairs + ("[[twins]]\nname = \"real\"\n[[twins]]\nname = \"other\"\n" + twin),
                     "pairs.toml", "pairs", settings_of_tests(settings));
    return what_is_said([&] { load_data(recipe, {}); });
  };
  EXPECT_THAT(said("train_words = false\n", {}),
              HasSubstr("model.train_words must be the same for all twins, which share their words"));
  const std::vector<std::string> vectors{"task.vectors=" + (folder_ / "vectors.txt").string()};
  EXPECT_THAT(said("network = \"lstm\"\nalgebra = \"phm(8)\"\n", vectors),
              HasSubstr("must have an n that divides the width of the words' vectors, 4, got phm(8)"));
  EXPECT_EQ(said("network = \"lstm\"\n", vectors), "");
}

TEST_F(TextPairsKindTest, KeysOfTheOtherNetworkAreRefused) {
  for (const auto& [network, setting] : std::map<std::string, std::string>{
           {"lstm", "model.attention=real"}, {"attention", "model.bidirectional=true"}}) {
    EXPECT_THAT(what_is_said([&] {
                  recipe_of({"model.network=" + network, setting});
                }),
                HasSubstr(setting.substr(0, setting.find('=')) + " is for model.network = '"));
  }
  EXPECT_THAT(what_is_said([&] { recipe_of({"model.compared=false"}); }),
              HasSubstr("model.compared is for model.network = 'lstm', got model.network = 'attention'"));
}

TEST_F(TextPairsKindTest, WordsOfTheTestSetAreKnownWhereNoVectorIsTrained) {
  const auto words = [&](const char* trained) {
    auto settings = write_answers();
    write("answers/test/a.toks", [&] {
      std::string text = read("answers/test/a.toks");
      return "seldom" + text.substr(text.find(' '));
    }());
    settings.push_back(std::string("model.train_words=") + trained);
    learn(settings);
    return read("run/best/vocabulary.txt");
  };
  EXPECT_THAT(words("false"), HasSubstr("seldom"));
  EXPECT_THAT(words("true"), Not(HasSubstr("seldom")));
}

// Vectors that are trained go with their vocabulary. Those that are not belong to the data's words; where the
// run has a word it has its vector.
TEST_F(TextPairsKindTest, OtherPairsAreTrainedOnWithTheWordsOfTheRun) {
  const auto write_pairs = [&](const std::string& lines) {
    for (const char* set : {"train", "dev", "test"}) write(std::string("own/") + set + ".tsv", lines);
  };
  for (const std::string trained : {"true", "false"}) {
    write_pairs("yes\ta dog\tan animal\nno\ta dog\ta stone\n");
    std::vector<std::string> settings{"task.data=tsv", "task.folder=" + (folder_ / "own").string(),
                                      "model.train_words=" + trained, "train.steps=3", "train.epochs=0"};
    learn(recipe_of(settings), {.folder = folder_ / ("run-" + trained)});
    const auto run = load_run(folder_ / ("run-" + trained));
    const auto known = data::Vocabulary::load(folder_ / ("run-" + trained) / "best" / "vocabulary.txt");
    write_pairs("good\ta cat\tan animal\nbad\ta cat\ta dog\nworse\ta cat\ta cat\n");
    settings.push_back("train.weights=" + (folder_ / ("run-" + trained)).string());
    const auto data = load_data(recipe_of(settings));
    EXPECT_THAT(data->notes(), testing::Contains(HasSubstr("the last layer starts from random weights")));
    EXPECT_THAT(data->notes(),
                testing::Contains(AllOf(
                    HasSubstr(trained == "true" ? "the vocabulary is that of" : "words with the vector of"),
                    HasSubstr(trained == "true" ? "" : ": 4 of 5; the others' are drawn"))));
    const auto made = make_model(data->recipe(), *data);
    fs::create_directories(folder_ / "made");
    made->store(folder_ / "made");
    const auto words = data::Vocabulary::load(folder_ / "made" / "vocabulary.txt");
    EXPECT_EQ(words.id("cat") != data::Vocabulary::kUnknown, trained == "false");
    EXPECT_EQ(words.id("stone") != data::Vocabulary::kUnknown, trained == "true");
    const auto before = run->module().named_parameters();
    for (const auto& item : made->module().named_parameters()) {
      SCOPED_TRACE(item.key() + " " + trained);
      const at::Tensor& old = before[item.key()];
      if (item.key().starts_with("head")) {
        EXPECT_FALSE(old.sizes() == item.value().sizes() && old.equal(item.value()));
      } else if (item.key() != "words.embedding.weight" || trained == "true") {
        EXPECT_TRUE(old.equal(item.value()));
      } else {
        for (int64_t id = 0; id < words.size(); ++id) {
          const int64_t there = known.id(words.word(id));
          if (there == data::Vocabulary::kUnknown && id != there) continue;
          EXPECT_TRUE(item.value()[id].equal(old[there])) << words.word(id);
        }
      }
    }
  }
}

// Of the recipes as they are, over generated pairs, which need no files.
TEST_F(TextPairsKindTest, TwinsOfTheRecipesAreWhatTheirNamesSay) {
  for (const std::string name : {"entailment_generated", "snli", "sick", "wikiqa", "trecqa", "paraphrase"}) {
    SCOPED_TRACE(name);
    const Recipe recipe = read_recipe(QUATRAIN_RECIPES "/" + name + ".toml",
                                      settings_of_tests({"task.data=entailment", "entailment.train=100",
                                                         "entailment.dev=20", "entailment.test=20"}));
    const auto data = load_data(recipe, {});
    struct Size {
      nn::AttentionKind kind;
      int64_t n, parameters;  // without words' vectors
    };
    const auto twin = [&](const char* twin_name) {
      const auto made = data->make_model(twin_recipe(data->recipe(), find_twin(data->recipe(), twin_name)));
      const auto& model = dynamic_cast<models::PairAttentionImpl&>(made->module());
      const nn::ParameterReport report = nn::parameter_report(model);
      return Size{model.kind(), model.options.algebra().n, report.total - report.embeddings};
    };
    const Size deatt = twin("deatt"), narrow = twin("deatt-narrow"), q_att = twin("q-att"),
               real_attention = twin("q-att-real-attention");
    EXPECT_EQ(deatt.n, 1);
    EXPECT_EQ(narrow.n, 1);
    EXPECT_EQ(q_att.n, 4);
    EXPECT_EQ(q_att.kind, nn::AttentionKind::componentwise);
    EXPECT_EQ(real_attention.n, 4);
    EXPECT_EQ(real_attention.kind, nn::AttentionKind::real);
    EXPECT_EQ(real_attention.parameters, q_att.parameters);
    EXPECT_NEAR(static_cast<double>(narrow.parameters) / static_cast<double>(q_att.parameters), 1, 0.02);
    EXPECT_LT(q_att.parameters, deatt.parameters / 2);
    if (name == "entailment_generated") continue;
    EXPECT_EQ(q_att.parameters, 212003);  // with three labels, as in the results
    EXPECT_EQ(narrow.parameters, 208443);
    EXPECT_EQ(deatt.parameters, 662003);
  }
}

TEST_F(TextPairsKindTest, SizesMustFitTheAlgebra) {
  EXPECT_THAT(what_is_said([&] { recipe_of({"model.width=30"}); }),
              HasSubstr("model.width must be divisible by n = 4 (quaternion), got 30 (nearest: 28, 32)"));
  EXPECT_THAT(what_is_said([&] {
                recipe_of({"model.network=lstm", "model.word_width=30"});
              }),
              HasSubstr("model.word_width must be divisible by n = 4"));
}

}  // namespace
}  // namespace quatrain::tasks
