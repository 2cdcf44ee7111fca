#include "cli/json_file.h"

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "support/atomic_file.h"

namespace quatrain::cli {

void check_output(const std::string& file) {
  namespace fs = std::filesystem;
  const bool beside = !fs::exists(file) || fs::is_regular_file(file) || fs::is_directory(file);
  if (!file.empty() && file != "-" && beside) AtomicFile{file};  // leaves nothing
}

void write_json(const nlohmann::ordered_json& json, const std::string& file) {
  // A path may not be UTF-8.
  const std::string text = json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  if (file == "-")
    std::fputs(text.c_str(), stdout);
  else
    write_text(file, text);
}

}  // namespace quatrain::cli
