#include "support/text.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <utility>

namespace quatrain {
namespace {

bool continues(unsigned char byte) {
  return (byte & 0xC0) == 0x80;
}

/// Walks over TOML and knows what is a text or a comment.
class TomlWalk {
 public:
  enum Place { kPlain, kComment, kMark, kText, kLiteral };  // kMark: quotes around a text

  /// Where the character at the front stands; to be called for each.
  Place step(std::string_view rest) {
    if (skip_ > 0) {
      --skip_;
      return skipped_;
    }
    const char c = rest[0];
    const Place inside = inside_ == 0     ? kPlain
                         : inside_ == '#' ? kComment
                         : inside_ == '"' ? kText
                                          : kLiteral;
    if (inside == kPlain) {
      if (c != '"' && c != '\'' && c != '#') return kPlain;
      inside_ = c;
      if (c == '#') return kComment;
      long_ = rest.starts_with(std::string(3, c));
      return skip(long_ ? 2 : 0, kMark);
    }
    if (c == '\n' && !long_) {  // ends a comment; in a text it is an error that the parser finds
      inside_ = 0;
      return kPlain;
    }
    if (inside == kText && c == '\\') return skip(1, kText);
    if (c != inside_ || inside == kComment) return inside;
    if (!long_) {
      inside_ = 0;
      return kMark;
    }
    size_t run = 0;
    while (run < rest.size() && run < 5 && rest[run] == c) ++run;
    if (run < 3) return inside;
    inside_ = 0;
    return skip(static_cast<int>(std::min<size_t>(run, 5)) - 1,
                kMark);  // up to two of them belong to the text
  }

 private:
  Place skip(int more, Place place) {
    skip_ = more;
    return skipped_ = place;
  }

  char inside_ = 0;  // '#', the mark that opened the text, or 0
  bool long_ = false;
  int skip_ = 0;
  Place skipped_ = kPlain;
};

/// The code point that the text, which is UTF-8, begins with, and its length.
std::pair<uint32_t, size_t> code_point(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  uint32_t value = lead & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) value = value << 6 | (static_cast<unsigned char>(text[i]) & 0x3Fu);
  return {value, length};
}

/// Decided by its byte order mark, which is not valid UTF-8.
bool is_utf16(std::string_view text) {
  return text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF");
}

std::string hexadecimal(unsigned char byte) {
  std::array<char, 8> shown{};
  std::snprintf(shown.data(), shown.size(), "0x%02X", byte);
  return shown.data();
}

}  // namespace

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

std::string utf8_problem(std::string_view text) {
  const size_t bad = find_bad_utf8(text);
  if (bad == text.npos) return "";
  if (is_utf16(text))
    return "the text is UTF-16; convert it to UTF-8, for example with iconv -f utf16 -t utf8";
  return "the text must be UTF-8, but contains the byte " +
         hexadecimal(static_cast<unsigned char>(text[bad])) +
         "; convert it, for example with iconv -f latin1 -t utf8";
}

std::string line_problem(std::string_view line) {
  if (line.size() > kLongestLine)
    return "a line may have at most " + std::to_string(kLongestLine) +
           " bytes, this one has more; split or shorten it";
  if (is_utf16(line)) return utf8_problem(line);
  if (const size_t nul = line.find('\0'); nul != line.npos)
    return "the text must not contain NUL bytes, found one at byte " + std::to_string(nul + 1) +
           "; is this a text file?";
  if (const size_t bad = find_bad_utf8(line); bad != line.npos)
    return "the text must be UTF-8, but byte " + std::to_string(bad + 1) +
           " of the line is not; convert the file, for example with iconv -f latin1 -t utf8";
  return "";
}

void check_file(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  const auto refuse = [](const std::string& why) { throw std::invalid_argument(why); };
  if (status.type() == fs::file_type::not_found) refuse("there is no such file");
  if (error) throw UnreadableError(error.message());
  if (fs::is_directory(status)) refuse("it is a folder");
  if (!fs::is_regular_file(status)) refuse("it is a pipe or a device; save its content as a file first");
}

std::ifstream open_file(const std::filesystem::path& path) {
  check_file(path);
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) throw UnreadableError(std::strerror(errno ? errno : EIO));
  return file;
}

std::ifstream open_named(const std::filesystem::path& path) {
  try {
    return open_file(path);
  } catch (const std::invalid_argument& error) {
    throw std::runtime_error("cannot read '" + path.string() + "': " + error.what());
  }
}

std::string read_file(const std::filesystem::path& path, size_t most) {
  const auto refuse = [](const std::string& why) { throw std::invalid_argument(why); };
  std::ifstream file = open_file(path);
  const auto size = std::filesystem::file_size(path);
  if (size > most)
    refuse("it has " + std::to_string(size) + " bytes, but may have at most " + std::to_string(most));
  std::string text(size, '\0');
  file.read(text.data(), static_cast<std::streamsize>(size));
  if (file.gcount() != static_cast<std::streamsize>(size)) refuse("it changed while it was read");
  return text;
}

int64_t line_at(std::string_view text, size_t byte) {
  return 1 +
         std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(std::min(byte, text.size())), '\n');
}

std::string shorten(std::string_view text) {
  constexpr size_t kLongest = 40;
  if (text.size() <= kLongest) return std::string(text);
  size_t end = kLongest;
  while (end > 0 && continues(static_cast<unsigned char>(text[end]))) --end;
  return std::string(text.substr(0, end)) + "...";
}

std::string escaped(char byte) {
  std::array<char, 8> escape{};
  std::snprintf(escape.data(), escape.size(), "\\x%02X", static_cast<unsigned char>(byte));
  return escape.data();
}

std::string quote(std::string_view text) {
  const std::string shown = shorten(text);
  std::string quoted = "\"";
  std::string_view rest = shown;
  for (size_t bad = find_bad_utf8(rest); bad != rest.npos; bad = find_bad_utf8(rest)) {
    quoted.append(rest.substr(0, bad)).append(escaped(rest[bad]));
    rest.remove_prefix(bad + 1);
  }
  return quoted.append(rest) + '"';
}

std::string lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

std::string join(const std::vector<std::string>& names) {
  std::string all;
  for (const auto& name : names) all += (all.empty() ? "" : ", ") + name;
  return all;
}

std::string plain_toml(std::string_view text) {
  const auto refuse = [&](size_t byte, const std::string& why) { throw TextError(line_at(text, byte), why); };
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  if (const std::string problem = utf8_problem(text); !problem.empty()) refuse(find_bad_utf8(text), problem);
  constexpr int kMostDots = 16;
  constexpr int kDeepest = 20;
  constexpr int kMostHeaders = 1000;  // the parser's time grows with their square
  int dots = 0, depth = 0, headers = 0;
  bool begins = true;  // a line
  std::string plain;
  plain.reserve(text.size());
  TomlWalk walk;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const bool line_end = c == '\n' || (c == '\r' && text.substr(i + 1).starts_with('\n'));
    if ((c < ' ' && c != '\t' && !line_end) || c == 0x7F)
      refuse(i, "the text must not contain control characters, but contains " + hexadecimal(c));
    const auto place = walk.step(text.substr(i));
    if (place == TomlWalk::kPlain) {
      if (c > 0x7F)
        refuse(i, "outside strings and comments only ASCII is allowed; put other text in double quotes");
      if (c == '.' && ++dots > kMostDots)
        refuse(i, "a name may have at most " + std::to_string(kMostDots + 1) + " parts separated by dots");
      if (c == '[' && depth == 0 && begins && ++headers > kMostHeaders)
        refuse(i, "a file may have at most " + std::to_string(kMostHeaders) + " tables");
      if (c == '[' || c == '{') ++depth;
      if (c == ']' || c == '}') --depth;
      if (depth > kDeepest)
        refuse(i, "lists and tables may be nested at most " + std::to_string(kDeepest) + " deep");
      if (std::string_view(",[]{}=\n").find(text[i]) != std::string_view::npos) dots = 0;
    }
    if (c != ' ' && c != '\t') begins = c == '\n';
    // A text in single quotes becomes one in double quotes, which has escapes.
    const bool literal = place == TomlWalk::kLiteral;
    if (c > 0x7F) {
      const auto [value, length] = code_point(text.substr(i));
      std::array<char, 16> escape{};
      std::snprintf(escape.data(), escape.size(), "\\U%08X", value);
      plain += place == TomlWalk::kComment ? "?" : escape.data();
      for (size_t more = 1; more < length; ++more) walk.step(text.substr(++i));
    } else if (c == '\'' && place == TomlWalk::kMark) {
      plain += '"';
    } else {
      if (literal && (c == '"' || c == '\\')) plain += '\\';
      plain += text[i];
    }
  }
  return plain;
}

}  // namespace quatrain
