#include "data/text_file.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "data/line_file.h"
#include "support/text.h"

namespace quatrain::data {
namespace fs = std::filesystem;

std::string place(const fs::path& file, int64_t line) {
  return file.string() + ":" + std::to_string(line);
}

void for_each_line(const fs::path& file, const std::function<void(std::string_view, int64_t)>& take) {
  LineFile lines(file);
  for (std::string_view line; lines.next(line);) {
    const std::string problem = line_problem(line);
    TORCH_CHECK(problem.empty(), lines.place(), ": ", problem);
    take(line, lines.number());
  }
}

std::vector<std::string_view> columns(std::string_view line) {
  std::vector<std::string_view> all;
  for (size_t begin = 0;;) {
    const size_t tab = line.find('\t', begin);
    all.push_back(line.substr(begin, tab - begin));
    if (tab == std::string_view::npos) return all;
    begin = tab + 1;
  }
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kSpace);
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

bool is_header(std::string_view column, const std::vector<std::string>& names) {
  return std::ranges::find(names, lower_case(std::string(trimmed(column)))) != names.end();
}

std::string readable(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    const auto value = static_cast<uint8_t>(byte);
    text += value >= 0x20 && value < 0x7f && byte != '"' ? std::string(1, byte) : escaped(byte);
  }
  return '"' + text + '"';
}

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_there(const fs::path& file) {
  std::error_code error;
  const bool there = fs::exists(file, error);
  if (error && error != std::errc::filename_too_long) throw fs::filesystem_error("exists", file, error);
  return there;
}

void check_folder(const std::string& reader, const fs::path& folder, const std::string& files,
                  const std::string& otherwise) {
  TORCH_CHECK(!folder.empty(), "data: the ", reader, " format needs a folder that contains ", files,
              ", but none was given");
  TORCH_CHECK(fs::exists(folder), "data: there is no folder ", folder.string(), "; the ", reader,
              " format needs ", files, " in it");
  TORCH_CHECK(fs::is_directory(folder), "data: ", folder.string(), " is a file; the ", reader,
              " format needs the folder that contains ", files, otherwise);
}

fs::path find_folder(const std::string& reader, const fs::path& folder, const std::vector<std::string>& subs,
                     const std::vector<std::string>& files, const std::string& otherwise) {
  check_folder(reader, folder, join(files), otherwise);
  std::vector<std::string> tried;
  for (const auto& sub : subs) {
    const fs::path here = sub.empty() ? folder : folder / sub;
    tried.push_back(here.string());
    if (!fs::exists(here / files[0])) continue;
    for (const auto& file : files) {
      TORCH_CHECK(fs::exists(here / file), "data: the folder ", here.string(), " contains ", files[0],
                  " but no ", file, "; the ", reader, " format needs ", join(files));
    }
    return here;
  }
  TORCH_CHECK(false, "data: there is no ", files[0], " in ", join(tried), "; the ", reader, " format needs ",
              join(files), " in one folder");
}

}  // namespace quatrain::data
