#include "quatrain/data/tokenizer.h"

#include <c10/util/Exception.h>
#include <utf8proc.h>

#include <algorithm>

#include "data/text_file.h"
#include "support/text.h"

namespace quatrain::data {
namespace {

// Of ASCII alone, whatever the locale.
char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         static_cast<unsigned char>(c) > 127;
}

std::vector<std::string> split_at_spaces(std::string_view line) {
  std::vector<std::string> words;
  for (size_t i = 0; i < line.size();) {
    if (is_space(line[i])) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < line.size() && !is_space(line[end])) ++end;
    words.emplace_back(line.substr(i, end - i));
    i = end;
  }
  return words;
}

/// Bytes of the line break mark (<br>, <br/>, <br />, in either case) that begins the text, or 0.
size_t line_break(std::string_view text) {
  if (text.size() < 4 || text[0] != '<' || lower(text[1]) != 'b' || lower(text[2]) != 'r') return 0;
  size_t i = 3;
  while (i < text.size() && text[i] == ' ') ++i;
  if (i < text.size() && text[i] == '/') ++i;
  return i < text.size() && text[i] == '>' ? i + 1 : 0;
}

std::vector<std::string> split_simply(std::string_view line) {
  std::vector<std::string> words;
  for (size_t i = 0; i < line.size();) {
    if (const size_t mark = line_break(line.substr(i))) {
      i += mark;
    } else if (is_letter(line[i])) {
      std::string word;
      const auto inside = [&](size_t at) {
        return is_letter(line[at]) || (line[at] == '\'' && at + 1 < line.size() && is_letter(line[at + 1]));
      };
      for (; i < line.size() && inside(i); ++i) word += lower(line[i]);
      words.push_back(std::move(word));
    } else {
      if (static_cast<unsigned char>(line[i]) > ' ') words.emplace_back(1, line[i]);
      ++i;
    }
  }
  return words;
}

/// Whether there is a character to see in it. What is not UTF-8 counts as one.
bool is_seen(std::string_view word) {
  while (!word.empty()) {
    utf8proc_int32_t character = -1;
    const auto bytes = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(word.data()),
                                        static_cast<utf8proc_ssize_t>(word.size()), &character);
    if (bytes <= 0) return true;
    switch (utf8proc_category(character)) {
      case UTF8PROC_CATEGORY_CC:
      case UTF8PROC_CATEGORY_CF:
      case UTF8PROC_CATEGORY_ZS:
      case UTF8PROC_CATEGORY_ZL:
      case UTF8PROC_CATEGORY_ZP:
        word.remove_prefix(static_cast<size_t>(bytes));
        break;
      default:
        return true;
    }
  }
  return false;
}

}  // namespace

const char* name(Tokenizer tokenizer) {
  switch (tokenizer) {
    case Tokenizer::whitespace:
      return "whitespace";
    case Tokenizer::lowercase:
      return "lowercase";
    case Tokenizer::simple:
      return "simple";
  }
  TORCH_CHECK(false, "name: no tokenizer has the number ", static_cast<int>(tokenizer));
}

Tokenizer parse_tokenizer(std::string_view text) {
  std::string known;
  for (const auto tokenizer : kTokenizers) {
    if (text == name(tokenizer)) return tokenizer;
    known += (known.empty() ? "" : ", ") + std::string(name(tokenizer));
  }
  TORCH_CHECK(false, "tokenizer: must be one of ", known, ", got \"", text, "\"");
}

std::vector<std::string> split(std::string_view line, Tokenizer tokenizer) {
  if (tokenizer == Tokenizer::simple) return split_simply(line);
  auto words = split_at_spaces(line);
  if (tokenizer == Tokenizer::lowercase) {
    for (auto& word : words) {
      for (auto& c : word) c = lower(c);
    }
  }
  return words;
}

std::string word_problem(std::string_view text, Tokenizer tokenizer) {
  if (is_blank(text)) return "must not be empty";
  const auto words = split(text, tokenizer);
  if (std::any_of(words.begin(), words.end(), is_seen)) return {};
  return "must have a word, got " + readable(shorten(text));
}

}  // namespace quatrain::data
