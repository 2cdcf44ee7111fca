#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cli/program.h"

/// What docs/errors.md is made of.
namespace quatrain::cli {

struct Case {
  std::string what;   ///< what is wrong, for the page
  std::string words;  ///< the command
  int code = 1;
  std::function<void(const Workplace&)> prepare = nullptr;  ///< what spoils the place, where anything must
  std::string input = "";                                   ///< on the standard input
  bool goes_on = false;  ///< the answer to it is an empty line, and a second sentence counts such answers
};

struct Section {
  std::string title;
  std::vector<Case> cases;
};

using Prepare = std::function<void(const Workplace&)>;

inline Prepare file(const std::string& name, const std::string& text) {
  return [=](const Workplace& place) { place.write(name, text); };
}

inline Prepare no_file(const std::string& name) {
  return [=](const Workplace& place) { std::filesystem::remove(place.path(name)); };
}

inline Prepare edit(const std::string& name, const std::function<std::string(std::string)>& change) {
  return [=](const Workplace& place) { place.write(name, change(place.read(name))); };
}

inline Prepare more(const std::string& name, const std::string& text) {
  return edit(name, [=](const std::string& old) { return old + text; });
}

inline Prepare named_pipe(const std::string& name) {
  return [=](const Workplace& place) { mkfifo(place.path(name).c_str(), 0600); };
}

/// Recordings, and runs that were trained on them.
Section speech_errors();
/// Folders of pictures, and runs that were trained on them.
Section image_errors();

}  // namespace quatrain::cli
