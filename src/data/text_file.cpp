#include "data/text_file.h"

#include <charconv>
#include <fstream>

namespace quatrain::data {
namespace fs = std::filesystem;
namespace {

bool continues(unsigned char byte) {
  return (byte & 0xC0) == 0x80;
}

/// The place of the first byte that is not UTF-8 (RFC 3629: no overlong forms, no surrogates), or npos.
size_t find_bad_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t length = lead < 0x80   ? 1
                          : lead < 0xC2 ? 0
                          : lead < 0xE0 ? 2
                          : lead < 0xF0 ? 3
                          : lead < 0xF5 ? 4
                                        : 0;
    if (length == 0 || i + length > text.size()) return i;
    for (size_t j = 1; j < length; ++j) {
      if (!continues(static_cast<unsigned char>(text[i + j]))) return i;
    }
    if (length > 2) {
      const auto second = static_cast<unsigned char>(text[i + 1]);
      if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
          (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F)) {
        return i;
      }
    }
    i += length;
  }
  return std::string_view::npos;
}

}  // namespace

std::string place(const fs::path& file, int64_t line) {
  return file.string() + ":" + std::to_string(line);
}

std::string quote(std::string_view value) {
  constexpr size_t kLongest = 40;
  if (value.size() <= kLongest) return "\"" + std::string(value) + "\"";
  size_t end = kLongest;
  while (end > 0 && continues(static_cast<unsigned char>(value[end]))) --end;
  return "\"" + std::string(value.substr(0, end)) + "...\"";
}

std::string join(const std::vector<std::string>& names) {
  std::string all;
  for (const auto& name : names) all += (all.empty() ? "" : ", ") + name;
  return all;
}

void for_each_line(const fs::path& file, const std::function<void(std::string_view, int64_t)>& take) {
  TORCH_CHECK(fs::exists(file), "data: there is no file ", file.string());
  TORCH_CHECK(!fs::is_directory(file), "data: ", file.string(), " is a folder where a text file is needed");
  std::ifstream stream(file, std::ios::binary);
  TORCH_CHECK(stream, "data: ", file.string(), " cannot be opened for reading: check its permissions");
  std::string line;
  int64_t number = 0;
  while (std::getline(stream, line)) {
    std::string_view text = line;
    if (++number == 1 && text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    if (text.ends_with('\r')) text.remove_suffix(1);
    const size_t nul = text.find('\0');
    TORCH_CHECK(nul == std::string_view::npos, place(file, number),
                ": text must hold no NUL bytes, found one at byte ", nul + 1, "; is this a text file?");
    const size_t bad = find_bad_utf8(text);
    TORCH_CHECK(bad == std::string_view::npos, place(file, number), ": text must be UTF-8, byte ", bad + 1,
                " of the line is not; convert the file, for example with iconv -f latin1 -t utf8");
    take(text, number);
  }
  TORCH_CHECK(stream.eof(), "data: reading ", file.string(), " failed after line ", number);
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
  TORCH_CHECK(!folder.empty(), "data: the reader ", reader, " needs a folder that holds ", join(files),
              "; none was given");
  TORCH_CHECK(fs::exists(folder), "data: there is no folder ", folder.string(), "; the reader ", reader,
              " looks for ", join(files), " in it");
  TORCH_CHECK(fs::is_directory(folder), "data: ", folder.string(), " is a file; the reader ", reader,
              " needs the folder that holds ", join(files));
  std::vector<std::string> tried;
  for (const auto& sub : subs) {
    const fs::path here = sub.empty() ? folder : folder / sub;
    tried.push_back(here.string());
    if (!fs::exists(here / files[0])) continue;
    for (const auto& file : files) {
      TORCH_CHECK(fs::exists(here / file), "data: ", here.string(), " holds ", files[0], " but no ", file,
                  "; the reader ", reader, " needs ", join(files));
    }
    return here;
  }
  TORCH_CHECK(false, "data: the reader ", reader, " found no ", files[0], " in ", join(tried), "; it needs ",
              join(files), " there");
}

void replace_file(const fs::path& file, const std::function<void(std::ostream&)>& fill) {
  fs::path beside = file;
  beside += ".tmp";
  {
    std::ofstream stream(beside, std::ios::binary);
    TORCH_CHECK(stream, "data: ", beside.string(),
                " cannot be opened for writing: check the folder and its permissions");
    fill(stream);
    stream.flush();
    TORCH_CHECK(stream, "data: writing ", beside.string(), " failed: is the disk full?");
  }
  std::error_code error;
  fs::rename(beside, file, error);
  TORCH_CHECK(!error, "data: ", beside.string(), " cannot be renamed to ", file.string(), ": ",
              error.message());
}

}  // namespace quatrain::data
