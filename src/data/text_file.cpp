#include "data/text_file.h"

#include <array>
#include <charconv>
#include <fstream>

namespace quatrain::data {
namespace fs = std::filesystem;

std::string place(const fs::path& file, int64_t line) {
  return file.string() + ":" + std::to_string(line);
}

void for_each_line(const fs::path& file, const std::function<void(std::string_view, int64_t)>& take) {
  try {
    check_file(file);
  } catch (const std::invalid_argument& error) {
    TORCH_CHECK(false, "data: ", file.string(), " cannot be read: ", error.what());
  }
  std::ifstream stream(file, std::ios::binary);
  TORCH_CHECK(stream, "data: ", file.string(), " cannot be opened for reading: check its permissions");
  int64_t number = 0;
  const auto hand_over = [&](std::string_view line) {
    if (++number == 1 && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::string problem = line_problem(line);
    TORCH_CHECK(problem.empty(), place(file, number), ": ", problem);
    take(line, number);
  };
  std::array<char, 1 << 14> portion;
  std::string begun;  // of a line that goes on in the next portion; never much longer than a line may be
  while (stream.read(portion.data(), portion.size()) || stream.gcount() > 0) {
    std::string_view rest(portion.data(), static_cast<size_t>(stream.gcount()));
    for (size_t end = 0; (end = rest.find('\n')) != rest.npos; rest.remove_prefix(end + 1)) {
      hand_over(begun.empty() ? rest.substr(0, end) : begun.append(rest.substr(0, end)));
      begun.clear();
    }
    begun += rest;
    if (begun.size() > kLongestLine + 1) hand_over(begun);  // which refuses it
  }
  if (!begun.empty()) hand_over(begun);
  TORCH_CHECK(!stream.bad(), "data: reading ", file.string(), " failed after line ", number);
  TORCH_CHECK(number > 0, "data: ", file.string(), " is empty");
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

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

fs::path find_folder(const std::string& reader, const fs::path& folder, const std::vector<std::string>& subs,
                     const std::vector<std::string>& files) {
  TORCH_CHECK(!folder.empty(), "data: the ", reader, " format needs a folder that contains ", join(files),
              ", but none was given");
  TORCH_CHECK(fs::exists(folder), "data: there is no folder ", folder.string(), "; the ", reader,
              " format needs ", join(files), " in it");
  TORCH_CHECK(fs::is_directory(folder), "data: ", folder.string(), " is a file; the ", reader,
              " format needs the folder that contains ", join(files),
              reader == "tsv" ? ", or a split of this file, such as 80/10/10" : "");
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
