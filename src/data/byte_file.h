#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "data/content.h"

namespace quatrain::data {

/// A file of bytes, plain or compressed by gzip (its first bytes decide, not its name), read from its front.
/// Errors are c10::Error and name the file: it is missing or cannot be read, or a compressed one is damaged
/// or cut off.
class ByteFile {
 public:
  explicit ByteFile(std::filesystem::path file);

  const std::filesystem::path& path() const { return content_.file(); }
  int64_t offset() const { return offset_; }  ///< of the byte that comes next; of the decompressed content
  /// How many bytes are left; not known of a compressed file.
  std::optional<int64_t> left() const;

  /// The next byte, which stays; -1 at the end.
  int peek();
  /// The next byte; -1 at the end.
  int get();
  /// The next bytes: `count`, or fewer at the end. Memory grows with what is there, not with `count`.
  std::string read(int64_t count);
  /// Goes on `count` bytes, but not beyond the end of a plain file.
  void skip(int64_t count);
  /// Goes to a byte of a plain file, which its size must allow; other files are an error.
  void seek(int64_t offset);

 private:
  bool refill();  // true where there is more

  Content content_;
  std::string_view rest_;  // of its portion
  int64_t offset_ = 0;
  std::optional<int64_t> size_;  // of a plain file
};

}  // namespace quatrain::data
