#include "support/atomic_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>
#include <string>

#include "support/atomic_file.h"
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

// Of a folder in the place of another, too, as an exported model is written.
TEST_F(AtomicFolderTest, MessagesNameWhatWillBeThere) {
  const auto message_of = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "no error";
  };
  const fs::path place = folder_ / "place.part.0.0";  // somebody's own name
  const AtomicFolder outer(place);
  AtomicFolder again(outer.path(), /*replaces_empty=*/true);
  const AtomicFolder inner(again.path() / "inner");
  EXPECT_EQ(AtomicFolder::name_of(inner.path() / "file"), place / "inner" / "file");
  const std::string own = "x.part." + std::to_string(::getpid());
  for (const std::string& name :
       {own + ".json", own + ".1.json", own + ".", own + ".1a/y"})  // somebody's own
    EXPECT_EQ(AtomicFolder::name_of(name), name);
  EXPECT_EQ(AtomicFolder::name_of(own + ".json/" + own + ".2/y"), own + ".json/x/y");
  fs::create_directory(inner.path() / "file");
  EXPECT_EQ(message_of([&] { write_text(inner.path() / "file", ""); }),
            "cannot write '" + (place / "inner" / "file").string() + "': Is a directory");
  EXPECT_EQ(message_of([&] { AtomicFolder{inner.path()}; }),
            "'" + (place / "inner").string() + "' exists already: choose another folder");
  fs::remove_all(again.path());
  EXPECT_EQ(message_of([&] { again.commit(); }),
            "cannot open '" + place.string() + "': No such file or directory");
}

}  // namespace
}  // namespace quatrain
