#include "support/atomic_folder.h"

#include <gtest/gtest.h>

#include <fstream>

#include "temporary_folder.h"

namespace quatrain {
namespace {

namespace fs = std::filesystem;
using AtomicFolderTest = test::FolderTest;

TEST_F(AtomicFolderTest, IsSeenWholeOrNotAtAll) {
  const fs::path place = folder_ / "some" / "place", others = folder_ / "some" / "place.part";
  fs::create_directories(others / "rest");  // somebody's own
  const auto entries = [&] {
    return std::distance(fs::directory_iterator(folder_ / "some"), fs::directory_iterator());
  };
  {
    const AtomicFolder given_up(place);
    std::ofstream(given_up.path() / "file") << "x";
    EXPECT_FALSE(fs::exists(place));
  }
  EXPECT_EQ(entries(), 1);
  {
    AtomicFolder folder(place / "");  // as a shell completes it
    std::ofstream(folder.path() / "file") << "x";
    folder.commit();
  }
  EXPECT_TRUE(fs::exists(place / "file"));
  EXPECT_TRUE(fs::exists(others / "rest"));
  EXPECT_EQ(entries(), 2);
  const auto plain = folder_ / "plain";
  fs::create_directory(plain);
  EXPECT_EQ(fs::status(place).permissions(), fs::status(plain).permissions());
}

TEST_F(AtomicFolderTest, ReplacesNothing) {
  const fs::path place = folder_ / "place";
  AtomicFolder folder(place);
  fs::create_directory(place);
  EXPECT_THROW(folder.commit(), std::runtime_error);
  EXPECT_TRUE(fs::is_empty(place));
  EXPECT_THROW(AtomicFolder{place}, std::runtime_error);
  fs::remove(place);
  fs::create_symlink("nowhere", place);
  EXPECT_THROW(AtomicFolder{place}, std::runtime_error);
}

}  // namespace
}  // namespace quatrain
