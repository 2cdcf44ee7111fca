#include "support/atomic_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <regex>
#include <stdexcept>
#include <string>

#include "support/atomic_file.h"

namespace quatrain {

namespace fs = std::filesystem;

namespace {

constexpr const char* kPart = ".part.";

// And a number.
std::string own_ending() {
  return kPart + std::to_string(::getpid()) + ".";
}

}  // namespace

AtomicFolder::AtomicFolder(const fs::path& place, bool replaces_empty)
    : place_(fs::absolute(place).lexically_normal()), replaces_empty_(replaces_empty) {
  if (!place_.has_filename()) place_ = place_.parent_path();
  refuse_existing();
  fs::create_directories(place_.parent_path());
  // Not mkdtemp(), whose folders are private: this one will be a folder like others.
  for (int number = 0;; ++number) {
    beside_ = place_.string() + own_ending() + std::to_string(number);
    if (::mkdir(beside_.c_str(), 0777) == 0) return;
    if (errno != EEXIST)
      throw std::runtime_error("cannot create a folder beside '" + name_of(place_) +
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

std::string AtomicFolder::name_of(const fs::path& path) {
  std::string name = path.string();
  const std::string ending = own_ending();
  for (size_t at = name.find(ending); at != name.npos; at = name.find(ending, at)) {
    const size_t number = at + ending.size();
    const size_t end = std::min(name.find_first_not_of("0123456789", number), name.size());
    const bool ends = end == name.size() || name[end] == '/' || name.compare(end, ending.size(), ending) == 0;
    if (end > number && ends)
      name.erase(at, end - at);
    else
      at = number;  // a name of the user's
  }
  return name;
}

void AtomicFolder::commit() {
  sync_path(beside_);
  refuse_existing();  // a rename would replace an empty folder
  if (::rename(beside_.c_str(), place_.c_str()) != 0)
    throw std::runtime_error("cannot create '" + name_of(place_) + "': " + std::strerror(errno));
  sync_path(place_.parent_path());
}

void AtomicFolder::refuse_existing() const {
  const auto status = fs::symlink_status(place_);
  const bool replaced = replaces_empty_ && fs::is_directory(status) && fs::is_empty(place_);
  if (fs::exists(status) && !replaced)
    throw std::runtime_error("'" + name_of(place_) + "' exists already: choose another folder");
}

}  // namespace quatrain
