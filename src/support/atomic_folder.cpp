#include "support/atomic_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <regex>
#include <stdexcept>
#include <string>

#include "support/atomic_file.h"

namespace quatrain {

namespace fs = std::filesystem;

namespace {
constexpr const char* kPart = ".part.";
}  // namespace

AtomicFolder::AtomicFolder(const fs::path& place, bool replaces_empty)
    : place_(fs::absolute(place).lexically_normal()), replaces_empty_(replaces_empty) {
  if (!place_.has_filename()) place_ = place_.parent_path();
  refuse_existing();
  fs::create_directories(place_.parent_path());
  // Not mkdtemp(), whose folders are private: this one will be a folder like others.
  for (int number = 0;; ++number) {
    beside_ = place_.string() + kPart + std::to_string(::getpid()) + "." + std::to_string(number);
    if (::mkdir(beside_.c_str(), 0777) == 0) return;
    if (errno != EEXIST)
      throw std::runtime_error("cannot create a folder beside '" + place_.string() +
                               "': " + std::strerror(errno));
  }
}

AtomicFolder::~AtomicFolder() {
  std::error_code ignored;
  fs::remove_all(beside_, ignored);
}

bool AtomicFolder::is_unfinished(const fs::path& folder) {
  static const std::regex numbers(R"(\d+\.\d+)");
  const std::string name = (folder.has_filename() ? folder : folder.parent_path()).filename().string();
  const size_t part = name.rfind(kPart);
  return part != std::string::npos && std::regex_match(name.substr(part + std::strlen(kPart)), numbers);
}

void AtomicFolder::commit() {
  sync_path(beside_);
  refuse_existing();  // a rename would replace an empty folder
  fs::rename(beside_, place_);
  sync_path(place_.parent_path());
}

void AtomicFolder::refuse_existing() const {
  const auto status = fs::symlink_status(place_);
  const bool replaced = replaces_empty_ && fs::is_directory(status) && fs::is_empty(place_);
  if (fs::exists(status) && !replaced)
    throw std::runtime_error("'" + place_.string() + "' exists already: choose another folder");
}

}  // namespace quatrain
