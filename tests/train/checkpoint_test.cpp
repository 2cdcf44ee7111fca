// What checkpoints are worth: damage is named, what is sound is offered, and older ones are kept.

#include "quatrain/train/checkpoint.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "train/checksum.h"
#include "train/records.h"
#include "train/toy_task.h"

namespace quatrain::train {
namespace {

namespace fs = std::filesystem;
using testing::AllOf, testing::HasSubstr;

class CheckpointTest : public FolderTest {
 protected:
  static TrainerOptions options(int64_t keep = 3) {
    TrainerOptions options;
    options.steps = 20;
    options.optimizer.learning_rate = 0.01;
    options.evaluate_every = 8;
    options.checkpoint_every = 4;
    options.keep = keep;
    options.seed = 5;
    return options;
  }

  Result train(ToyTask& task, const TrainerOptions& options, const std::string& from = "last") const {
    RunOptions run;
    run.folder = folder_ / "run";
    run.existing = Existing::resume;
    run.from = from;
    return Trainer(task, options, run).run();
  }

  std::vector<std::string> checkpoints() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_ / "run"))
      if (entry.is_directory()) names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }

  static void overwrite(const fs::path& file, const std::string& text) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
  }
};

TEST_F(CheckpointTest, AsManyAreKeptAsAreWanted) {
  ToyTask task, more, fewer;
  train(task, options(3));
  EXPECT_EQ(checkpoints(), (std::vector<std::string>{"best", "last", "step-000012", "step-000016"}));
  const auto sound = sound_checkpoints(folder_ / "run");
  ASSERT_EQ(sound.size(), 3u);
  EXPECT_EQ(sound[0].name, "last");
  EXPECT_EQ(sound[0].step, 20);
  EXPECT_EQ(sound[1].name, "step-000016");
  TrainerOptions longer = options(1);
  longer.steps = 24;
  train(fewer, longer);
  EXPECT_EQ(checkpoints(), (std::vector<std::string>{"best", "last"}));
}

TEST_F(CheckpointTest, AnInterruptedRemovalLeavesNoDamage) {
  ToyTask task, more;
  train(task, options(2));
  ASSERT_EQ(checkpoints(), (std::vector<std::string>{"best", "last", "step-000016"}));
  fs::create_directory(folder_ / "run" / "step-000012.old");
  EXPECT_EQ(sound_checkpoints(folder_ / "run").size(), 2u);
  TrainerOptions longer = options(2);
  longer.steps = 24;
  train(more, longer);
  EXPECT_EQ(checkpoints(), (std::vector<std::string>{"best", "last", "step-000020"}));
}

TEST_F(CheckpointTest, AnOlderOneGivesTheSameBits) {
  ToyTask task, again;
  train(task, options());
  const std::string weights = contents(folder_ / "run" / "last" / "model.safetensors");
  const std::string moments = contents(folder_ / "run" / "last" / "training.safetensors");
  overwrite(folder_ / "run" / "last" / "training.safetensors", "torn");
  EXPECT_THAT(message_of([&] { train(again, options()); }),
              AllOf(HasSubstr("last' is damaged: training.safetensors has 4 bytes instead of"),
                    HasSubstr("the newest undamaged checkpoint to continue from is"), HasSubstr("of step 16"),
                    HasSubstr("--resume --from step-000016")));
  train(again, options(), "step-000016");
  EXPECT_EQ(contents(folder_ / "run" / "last" / "model.safetensors"), weights);
  EXPECT_EQ(contents(folder_ / "run" / "last" / "training.safetensors"), moments);
  EXPECT_EQ(checkpoints(), (std::vector<std::string>{"best", "last", "step-000012", "step-000016"}));
}

TEST_F(CheckpointTest, EveryFlippedBitAndEveryCutIsNoticed) {
  ToyTask task;
  train(task, options());
  for (const char* which : {"last", "best", "step-000012"})
    for (const auto& entry : fs::directory_iterator(folder_ / "run" / which)) {
      const std::string name = entry.path().filename().string(), text = contents(entry.path());
      for (size_t i = 0; i < text.size(); i += 1 + text.size() / 37) {
        std::string changed = text;
        changed[i] = static_cast<char>(changed[i] ^ (1 << (i % 8)));
        overwrite(entry.path(), changed);
        const std::string message = message_of([&] { find_checkpoint(folder_ / "run", which); });
        // White space between the manifest's words may change.
        if (name == "checkpoint.json" && message == "no error") continue;
        EXPECT_THAT(message, AllOf(HasSubstr("is damaged: " + name), HasSubstr("--from")))
            << which << " " << i;
        overwrite(entry.path(), text.substr(0, i));
        EXPECT_THAT(message_of([&] { find_checkpoint(folder_ / "run", which); }),
                    HasSubstr("is damaged: " + name));
      }
      overwrite(entry.path(), text);
      find_checkpoint(folder_ / "run", which);
    }
}

TEST_F(CheckpointTest, ForeignManifestsAreNoSurprise) {
  ToyTask task;
  train(task, options());
  const std::string deep(1'000'000, '[');
  for (const std::string& text : std::vector<std::string>{
           deep, "", "[]", "{}", "null", R"({"format": 2, "step": 1, "files": [], "checksum": ""})",
           R"({"format": 1, "step": 1, "files": {"model.safetensors": 3}})"}) {
    overwrite(folder_ / "run" / "last" / "checkpoint.json", text);
    EXPECT_THAT(message_of([&] { find_checkpoint(folder_ / "run", "last"); }),
                HasSubstr("checkpoint.json was changed"))
        << text;
  }
  fs::remove(folder_ / "run" / "last" / "checkpoint.json");
  EXPECT_THAT(message_of([&] { find_checkpoint(folder_ / "run", "last"); }),
              HasSubstr("checkpoint.json is missing"));
}

TEST_F(CheckpointTest, WhereNothingIsSoundItSaysSo) {
  ToyTask task, again;
  train(task, options(1));
  fs::remove(folder_ / "run" / "last" / "training.json");
  EXPECT_THAT(
      message_of([&] { train(again, options(1)); }),
      AllOf(HasSubstr("training.json is missing"), HasSubstr("no undamaged checkpoint to continue from")));
  EXPECT_THAT(message_of([&] { train(again, options(1), "step-000004"); }),
              HasSubstr("has no checkpoint 'step-000004'"));
}

// Sizes alone tell what is missing or cut short, and nothing is read for them.
TEST_F(CheckpointTest, ALookAtSizesReadsNoWeights) {
  ToyTask task;
  train(task, options());
  const fs::path last = folder_ / "run" / "last", weights = last / "model.safetensors";
  overwrite(weights, std::string(fs::file_size(weights), 'x'));
  EXPECT_EQ(sound_checkpoints(folder_ / "run", Look::sizes).front().name, "last");
  EXPECT_EQ(sound_checkpoints(folder_ / "run").front().name, "step-000016");
  overwrite(weights, "torn");
  EXPECT_EQ(sound_checkpoints(folder_ / "run", Look::sizes).front().name, "step-000016");
}

TEST_F(CheckpointTest, EveryBitOfTheResultThatChangesIsNoticed) {
  ToyTask task;
  const Result result = train(task, options());
  EXPECT_TRUE(result_is_sealed(folder_ / "run"));
  const fs::path file = folder_ / "run" / "result.json";
  const std::string whole = contents(file);
  const auto read = [&](const std::string& text) {
    overwrite(file, text);
    return message_of([&] { read_result(folder_ / "run"); });
  };
  for (size_t i = 0; i < whole.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = whole;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      EXPECT_THAT(read(changed), HasSubstr("is not what a trainer wrote")) << i << " " << bit;
    }
  EXPECT_EQ(read(whole), "no error");
  EXPECT_EQ(result.predictions, checksum_of_file(folder_ / "run" / "predictions.tsv"));
  // As older versions wrote it.
  auto old = nlohmann::ordered_json::parse(whole);
  for (const char* key : {"checksum", "figure", "predictions"}) old.erase(key);
  EXPECT_EQ(read(old.dump(2) + "\n"), "no error");
  EXPECT_FALSE(result_is_sealed(folder_ / "run"));
  EXPECT_EQ(read_result(folder_ / "run").test, result.test);
}

TEST_F(CheckpointTest, AResultBelongsToItsWeights) {
  ToyTask task, other, again;
  const fs::path run = folder_ / "run", elsewhere = folder_ / "elsewhere";
  train(task, options());
  fs::rename(run, elsewhere);
  TrainerOptions o = options();
  o.seed = 6;
  const Result result = train(other, o);
  EXPECT_EQ(result.weights, checksum_of_file(run / "best" / "model.safetensors"));
  const std::string foreign = contents(elsewhere / "result.json");
  overwrite(run / "result.json", foreign);
  const auto wrong = AllOf(HasSubstr("result.json' is of other weights than those of 'best'"),
                           HasSubstr("delete it and resume the run"));
  EXPECT_THAT(message_of([&] { read_result(run); }), wrong);
  EXPECT_THAT(message_of([&] { train(again, o); }), wrong);
  EXPECT_EQ(contents(run / "result.json"), foreign);
  fs::remove(run / "result.json");
  EXPECT_EQ(train(again, o).test, result.test);
  // Older versions did not say whose figures they are.
  auto old = nlohmann::ordered_json::parse(foreign);
  for (const char* key : {"checksum", "weights"}) old.erase(key);
  overwrite(run / "result.json", old.dump(2) + "\n");
  EXPECT_EQ(message_of([&] { read_result(run); }), "no error");
}

// The answers of the xxhash package of Python.
TEST(Checksum, IsXxh128) {
  EXPECT_EQ(checksum(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(checksum("quatrain"), "52a08fb54e917bbc6673229b544639af");
}

TEST(Checksum, IsAnObjectsLastMember) {
  for (const std::string text :
       {R"({"a":1})", "{\n  \"a\": {\n    \"b\": []\n  }\n}\n", R"({"a":{"b":{}}})"}) {
    const std::string sealed = with_checksum(text);
    EXPECT_EQ(holds_checksum(text), std::nullopt) << text;
    EXPECT_EQ(holds_checksum(sealed), true) << sealed;
    auto json = nlohmann::ordered_json::parse(sealed);
    EXPECT_EQ((--json.end()).key(), "checksum");
    json.erase("checksum");
    EXPECT_EQ(json, nlohmann::ordered_json::parse(text));
  }
  EXPECT_EQ(with_checksum(R"({"a":1})"),
            R"({"a":1,"checksum":")" + checksum(R"({"a":1,"checksum":")").substr(0, 16) + "\"}");
  for (const char* text : {"", "}", "{}", "null", "\"0123456789abcdef\"}"})
    EXPECT_EQ(holds_checksum(text), std::nullopt) << text;
}

}  // namespace
}  // namespace quatrain::train
