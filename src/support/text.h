#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "quatrain/api.h"

/// Text of any origin, before a parser sees it.
namespace quatrain {

/// What is wrong with a text, and in which of its lines.
class QUATRAIN_API TextError : public std::invalid_argument {
 public:
  TextError(int64_t line, const std::string& what) : std::invalid_argument(what), line_(line) {}
  int64_t line() const { return line_; }

 private:
  int64_t line_;
};

/// The place of the first byte that is not UTF-8 (RFC 3629: no overlong forms, no surrogates), or npos.
QUATRAIN_API size_t find_bad_utf8(std::string_view text);

/// Why a text is not UTF-8, as "the text is UTF-16; convert it ..."; empty where it is UTF-8.
QUATRAIN_API std::string utf8_problem(std::string_view text);

/// White space, as isspace has it in the locale "C".
inline constexpr std::string_view kSpace = " \t\n\v\f\r";

inline bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
inline bool is_blank(std::string_view text) {
  return text.find_first_not_of(kSpace) == text.npos;
}

/// Longest line of a text; words and their numbers take many times its room.
inline constexpr size_t kLongestLine = 1 << 20;

/// Why a line cannot be read as text: too long, NUL bytes, not UTF-8; empty where it can.
QUATRAIN_API std::string line_problem(std::string_view line);

/// The system's reason for refusing to read a file, such as missing permission. A missing file is another
/// error.
class QUATRAIN_API UnreadableError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// The content of a file of at most `most` bytes. What is wrong with it otherwise, as "it is a folder", is
/// the message of a std::invalid_argument: the caller names the file.
QUATRAIN_API std::string read_file(const std::filesystem::path& path, size_t most);

/// Opens a file to be read in portions; throws as read_file, and never waits: a pipe or a device is refused.
QUATRAIN_API std::ifstream open_file(const std::filesystem::path& path);
/// The same for a file of a run or a model: the std::runtime_error names it.
QUATRAIN_API std::ifstream open_named(const std::filesystem::path& path);

/// Throws as read_file does where the path is not a regular file: missing, a folder, a pipe or a device.
QUATRAIN_API void check_file(const std::filesystem::path& path);

/// The line of a byte, from 1 on.
QUATRAIN_API int64_t line_at(std::string_view text, size_t byte);

/// The text, or its first 40 bytes and "...": what a message shows of a value of any length.
QUATRAIN_API std::string shorten(std::string_view text);
/// What stands for a byte that is no text: \xFF.
QUATRAIN_API std::string escaped(char byte);
/// The first 40 bytes and "..." in double quotes, with bytes that are not UTF-8 escaped.
QUATRAIN_API std::string quote(std::string_view text);

/// With ASCII's letters in lower case, whatever the locale.
QUATRAIN_API std::string lower_case(std::string text);

/// Names in one line: "a, b, c".
QUATRAIN_API std::string join(const std::vector<std::string>& names);

/// The same TOML in ASCII, with escapes. Refuses what toml++ cannot handle, most of which TOML forbids too:
/// other bytes than UTF-8, control characters, other characters than ASCII outside texts and comments, and
/// lists, tables or names (`a.b.c`) that are nested too deep for the stack. Throws TextError.
QUATRAIN_API std::string plain_toml(std::string_view text);

}  // namespace quatrain
