#include "support/atomic_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

namespace quatrain {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::ThrowsMessage;

class AtomicFiles : public testing::Test {
 protected:
  AtomicFiles() {
    std::string name = (fs::temp_directory_path() / "quatrain-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~AtomicFiles() override { fs::remove_all(folder_); }

  fs::path path(const std::string& name) const { return folder_ / name; }
  std::string read(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
};

TEST_F(AtomicFiles, without_commit_nothing_changes) {
  write_text(path("file"), "old");
  {
    AtomicFile file(path("file"));
    file.write("new", 3);
    EXPECT_EQ(read("file"), "old");
  }
  EXPECT_EQ(read("file"), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFiles, what_a_killed_writer_left_is_written_over) {
  std::ofstream(path("file.part")) << "much more than what follows";
  write_text(path("file"), "new");
  EXPECT_EQ(read("file"), "new");
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFiles, a_link_stays_a_link) {
  fs::create_directory(path("there"));
  write_text(path("there/file"), "old");
  fs::create_symlink("there/file", path("link"));
  fs::create_symlink("link", path("second"));
  write_text(path("second"), "new");
  EXPECT_TRUE(fs::is_symlink(path("second")) && fs::is_symlink(path("link")));
  EXPECT_EQ(read("there/file"), "new");
  fs::create_symlink("there/none", path("dangling"));
  write_text(path("dangling"), "made");
  EXPECT_EQ(read("there/none"), "made");
  fs::create_symlink("self", path("self"));
  EXPECT_THAT([&] { write_text(path("self"), ""); },
              ThrowsMessage<std::runtime_error>(HasSubstr("Too many levels of symbolic links")));
}

TEST_F(AtomicFiles, devices_pipes_and_folders_stay_what_they_are) {
  write_text("/dev/null", "gone");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_THAT([] { write_text("/dev/full", "no"); },
              ThrowsMessage<std::runtime_error>(HasSubstr("cannot write '/dev/full': No space left")));
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  const int reader = ::open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  write_text(path("pipe"), "through");
  std::string text(16, ' ');
  EXPECT_EQ(::read(reader, text.data(), text.size()), 7);
  ::close(reader);
  EXPECT_TRUE(fs::is_fifo(path("pipe")));
  fs::create_directory(path("folder"));
  EXPECT_THAT([&] { write_text(path("folder"), ""); },
              ThrowsMessage<std::runtime_error>(HasSubstr("Is a directory")));
  EXPECT_EQ(files(), 2);
}

TEST_F(AtomicFiles, a_name_ends_nowhere_before_its_end) {
  EXPECT_THAT([&] { write_text(path(std::string("cut\0here", 8)), ""); },
              ThrowsMessage<std::runtime_error>(HasSubstr("contains the character 0")));
  EXPECT_EQ(files(), 0);
}

// As the ranks of a distributed run that all save to one path.
TEST_F(AtomicFiles, several_writers_of_one_file_wait_for_each_other) {
  std::vector<std::thread> writers;
  for (int i = 0; i < 8; ++i)
    writers.emplace_back([&, i] {
      for (int k = 0; k < 20; ++k)
        write_text(path("file"), std::string(10000 + 100 * i, static_cast<char>('a' + i)));
    });
  for (auto& writer : writers) writer.join();
  const std::string text = read("file");
  ASSERT_FALSE(text.empty());
  EXPECT_EQ(text, std::string(10000 + 100 * (text[0] - 'a'), text[0]));
  EXPECT_EQ(files(), 1);
}

}  // namespace
}  // namespace quatrain
