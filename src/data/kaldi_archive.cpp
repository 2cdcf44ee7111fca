#include "quatrain/data/kaldi_archive.h"

#include <algorithm>
#include <utility>

#include "data/kaldi_values.h"
#include "data/text_file.h"

namespace quatrain::data {
namespace fs = std::filesystem;
namespace {

constexpr size_t kLongestKey = 4096;  // bytes

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

int64_t number_of(std::string_view digits, std::string_view location) {
  const auto number = is_number(digits) ? whole_number(digits) : std::nullopt;
  TORCH_CHECK(
      number,
      "kaldi: a location must be FILE, FILE:OFFSET or either with [ROWS] or [ROWS,COLUMNS] behind it, "
      "where these are FIRST:LAST or \":\", got ",
      quote(location));
  return *number;
}

/// Of "FIRST:LAST"; nothing of ":", which means all.
std::optional<KaldiRange> range_of(std::string_view range, const std::string& what,
                                   std::string_view location) {
  if (range == ":") return std::nullopt;
  const size_t colon = range.find(':');
  const auto last = colon == range.npos ? "" : range.substr(colon + 1);
  const KaldiRange found{number_of(range.substr(0, colon), location), number_of(last, location)};
  TORCH_CHECK(found.first <= found.last, "kaldi: the ", what, " of ", quote(location),
              " must not end before they begin");
  return found;
}

/// An opened location.
struct Opened {
  explicit Opened(const std::string& text)
      : location(parse_location(text)),
        file(location.file),
        entry(location.offset ? "the entry at byte " + std::to_string(*location.offset) : "its only value") {
    if (location.offset) file.seek(*location.offset);
  }
  KaldiLocation location;
  ByteFile file;
  std::string entry;
};

}  // namespace

KaldiLocation parse_location(std::string_view text) {
  text = trimmed(text);
  TORCH_CHECK(!text.starts_with('|') && !text.ends_with('|'), "kaldi: ", quote(text),
              " is a command, and commands are never run; write what it prints to a file and name that file");
  TORCH_CHECK(text != "-", "kaldi: \"-\" is the standard input, which is not read; name a file");
  KaldiLocation location;
  std::string_view rest = text;
  if (rest.ends_with(']')) {
    const size_t open = rest.rfind('[');
    const auto range = open == rest.npos ? "" : rest.substr(open + 1, rest.size() - open - 2);
    const size_t comma = range.find(',');
    location.range.rows = range_of(range.substr(0, comma), "rows", text);
    if (comma != range.npos) location.range.columns = range_of(range.substr(comma + 1), "columns", text);
    rest = rest.substr(0, open);
  }
  if (const size_t colon = rest.rfind(':'); colon != rest.npos && is_number(rest.substr(colon + 1))) {
    location.offset = number_of(rest.substr(colon + 1), text);
    rest = rest.substr(0, colon);
  }
  TORCH_CHECK(!rest.empty(), "kaldi: the location ", quote(text), " names no file");
  location.file = rest;
  return location;
}

std::string resolve_location(std::string_view text, const fs::path& folder) {
  const fs::path file = parse_location(text).file;
  const fs::path beside = folder / file;
  const auto behind = trimmed(text).substr(file.native().size());
  return (is_there(beside) || !is_there(file) ? beside : file).string() + std::string(behind);
}

std::string key_problem(std::string_view key) {
  if (key.empty()) return "is empty";
  if (key.size() > kLongestKey) return "has more than " + std::to_string(kLongestKey) + " bytes";
  if (find_bad_utf8(key) != key.npos) return "is not UTF-8";
  const auto hidden = [](unsigned char byte) { return byte <= ' ' || byte == 0x7f; };
  return std::any_of(key.begin(), key.end(), hidden) ? "has white space or control characters" : "";
}

KaldiArchive::KaldiArchive(const fs::path& file) : file_(std::make_unique<ByteFile>(file)) {}

KaldiArchive::~KaldiArchive() = default;

bool KaldiArchive::next_key(std::string& key) {
  const auto is_space = [](int byte) { return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n'; };
  while (is_space(file_->peek())) file_->get();
  const std::string where = "what begins at byte " + std::to_string(file_->offset());
  if (file_->peek() < 0) {
    TORCH_CHECK(!keys_.empty(), "kaldi: ", file_->path().string(), " is empty; write it again");
    return false;
  }
  key.clear();
  while (file_->peek() >= 0 && !is_space(file_->peek()) && key.size() <= kLongestKey)
    key += static_cast<char>(file_->get());
  if (const auto problem = key_problem(key); !problem.empty())
    fail_value(*file_, where, "is no key of an entry, since it " + problem);
  const std::string entry = "the entry " + quote(key);
  if (is_space(file_->peek()) && file_->peek() != '\n') file_->get();
  if (file_->peek() < 0) fail_value(*file_, entry, "has no value; the file is cut off");
  const bool binary = file_->peek() == 0;
  if (keys_.empty()) binary_ = binary;
  if (binary != binary_)
    fail_value(*file_, entry,
               binary_ ? "is text, but the entries before it are binary: something else was appended"
                       : "is binary, but the entries before it are text: something else was appended");
  if (!keys_.insert(key).second)
    fail_value(*file_, entry, "occurs twice, again before byte " + std::to_string(file_->offset()));
  return true;
}

bool KaldiArchive::next(std::string& key, at::Tensor& matrix) {
  if (!next_key(key)) return false;
  matrix = read_matrix(*file_, "the entry " + quote(key));
  return true;
}

bool KaldiArchive::next(std::string& key, std::vector<int32_t>& values) {
  if (!next_key(key)) return false;
  values = read_integers(*file_, "the entry " + quote(key));
  return true;
}

std::vector<KaldiEntry> read_kaldi_script(const fs::path& file) {
  std::vector<KaldiEntry> entries;
  std::unordered_set<std::string> keys;
  for_each_line(file, [&](std::string_view line, int64_t number) {
    line = trimmed(line);
    if (line.empty()) return;
    const size_t end = std::min(line.find_first_of(" \t"), line.size());
    KaldiEntry entry{std::string(line.substr(0, end)), std::string(trimmed(line.substr(end)))};
    TORCH_CHECK(!entry.location.empty(), place(file, number), ": the entry ", quote(entry.key),
                " has no file behind it; a line must be a key, a space and a location");
    TORCH_CHECK(keys.insert(entry.key).second, place(file, number), ": the entry ", quote(entry.key),
                " occurs twice; remove one of them");
    try {
      entry.location = resolve_location(entry.location, file.parent_path());
    } catch (const c10::Error& error) {
      TORCH_CHECK(false, place(file, number), ": the entry ", quote(entry.key), ": ",
                  error.what_without_backtrace());
    }
    entries.push_back(std::move(entry));
  });
  return entries;
}

at::Tensor read_kaldi_matrix(const std::string& location) {
  Opened opened(location);
  return read_matrix(opened.file, opened.entry, opened.location.range);
}

std::vector<int32_t> read_kaldi_integers(const std::string& location) {
  Opened opened(location);
  TORCH_CHECK(!location.ends_with(']'), "kaldi: ", quote(location),
              " asks for rows, but whole numbers have none; leave the range away");
  return read_integers(opened.file, opened.entry);
}

KaldiSize read_kaldi_size(const std::string& location) {
  Opened opened(location);
  return read_matrix_size(opened.file, opened.entry, opened.location.range);
}

}  // namespace quatrain::data
