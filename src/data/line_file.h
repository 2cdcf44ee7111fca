#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "data/content.h"
#include "quatrain/api.h"

namespace quatrain::data {

/// A file of lines, plain or compressed by gzip (its first bytes decide, not its name), read in portions.
/// Errors are c10::Error: a file that is missing, empty or cannot be read, a compressed one that is damaged
/// or cut off.
class QUATRAIN_API LineFile {
 public:
  /// `cuts`: a long line with spaces is read in several parts, none longer than kLongestLine.
  explicit LineFile(std::filesystem::path file, bool cuts = false);

  /// The next line without its end ("\n" or "\r\n") and, at the file's beginning, without a byte order mark;
  /// false at the end. Of a line longer than kLongestLine that is not cut only a beginning, longer than that,
  /// is kept. Valid until the next call.
  bool next(std::string_view& line);
  /// True where the last line was cut, and the next one is what follows in it.
  bool goes_on() const { return goes_on_; }

  int64_t number() const { return number_; }  ///< of the last line, from 1 on
  std::string place() const;                  ///< "FILE:LINE"
  const std::filesystem::path& file() const { return content_.file(); }

 private:
  bool refill();

  Content content_;
  bool cuts_;
  std::string_view rest_;  // of its portion
  std::string begun_;      // of a line that began in an earlier portion
  bool goes_on_ = false;
  int64_t number_ = 0;
};

}  // namespace quatrain::data
