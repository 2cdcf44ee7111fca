// A corpus may be larger than memory: of its text and its tokens nothing stays there.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "anonymous_memory.h"
#include "quatrain/tasks/run.h"
#include "tasks/settings.h"
#include "temporary_folder.h"

namespace quatrain::tasks {
namespace {

constexpr int64_t kLineLength = 10000;

class CorpusMemoryTest : public test::FolderTest {
 protected:
  void write(const std::string& name, int64_t lines) const {
    std::ofstream file(folder_ / name);
    std::string line(kLineLength, ' ');
    for (int64_t i = 0; i < lines; ++i) {
      for (size_t at = 0; at < line.size(); ++at)
        line[at] = at % 7 == 6 ? ' ' : static_cast<char>('a' + (at * at + static_cast<size_t>(i)) % 26);
      file << line << '\n';
    }
  }
  // Prepares the data, makes a task and gives it some batches. Returns by how many bytes memory grows.
  int64_t growth(const char* recipe_text, const std::vector<std::string>& settings) const {
    std::vector<std::string> all{"task.folder=" + folder_.string(), "vocabulary.pieces=characters"};
    all.insert(all.end(), settings.begin(), settings.end());
    const Recipe recipe = parse_recipe(recipe_text, "large.toml", "large", settings_of_tests(all));
    test::MemoryGrowth memory;
    const auto data = load_data(recipe);
    const auto task = make_task(data->recipe(), *data);
    EXPECT_EQ(data->inputs("train", data->recipe(), 2, 3).size(), 3U);
    EXPECT_GT(task->batches(), 3);
    return memory.most();
  }
  // Of few lines and of many: what the second one needs beyond the first.
  void expect_bounded(const char* recipe, const std::vector<std::string>& files, int64_t lines,
                      const std::vector<std::string>& settings) const {
#if defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "what is freed stays in memory for a while";
#endif
    for (const auto& file : files) write(file, 10);
    growth(recipe, settings);
    for (const auto& file : files) write(file, lines);
    const auto token_bytes =
        static_cast<int64_t>(sizeof(int32_t)) * kLineLength * lines * static_cast<int64_t>(files.size());
    ASSERT_GT(token_bytes, 40 << 20);
    EXPECT_LT(growth(recipe, settings), token_bytes / 10);
  }
};

TEST_F(CorpusMemoryTest, TokensOfPairsAreInAFile) {
  expect_bounded("[task]\nkind = \"seq2seq\"\ndata = \"parallel\"\n", {"train.de", "train.en"}, 600,
                 {"task.max_source=0", "task.max_target=0", "train.batch=2"});
}

TEST_F(CorpusMemoryTest, TokensOfATextAreInAFile) {
  expect_bounded("[task]\nkind = \"language_model\"\n", {"train.txt"}, 1200, {"train.batch=4"});
}

}  // namespace
}  // namespace quatrain::tasks
