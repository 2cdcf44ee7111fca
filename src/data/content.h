#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "quatrain/api.h"

struct z_stream_s;

namespace quatrain::data {

/// What a file holds, from its front, in portions: its bytes, or what they are decompressed where the first
/// two are those of gzip. Members of gzip may stand one behind the other, and nothing else: zlib's own reader
/// of files ends without a word where a second one is damaged.
class QUATRAIN_API Content {
 public:
  /// A file that is missing or may not be read is a c10::Error.
  explicit Content(std::filesystem::path file);

  const std::filesystem::path& file() const { return file_; }
  bool is_compressed() const { return inflate_ != nullptr; }

  /// The next portion, valid until the next call. Empty at the end and where something is wrong: check()
  /// then.
  std::string_view next();
  /// A c10::Error that names the file where something was wrong; `where`: "after line 17".
  void check(const std::string& where) const;
  /// Goes to a byte of a file that is not compressed. False, with errno, where the system cannot.
  bool seek(int64_t offset);

 private:
  struct Close {
    void operator()(std::FILE* stream) const;
    void operator()(z_stream_s* inflate) const;
  };
  bool refill();
  std::string_view decompressed();

  std::filesystem::path file_;
  std::unique_ptr<std::FILE, Close> stream_;
  std::unique_ptr<z_stream_s, Close> inflate_;
  std::vector<char> input_, output_;
  std::string_view read_;         // what was read and not handed on
  bool padded_ = false;           // by zeros, behind which nothing comes
  bool between_members_ = false;  // where the file may end
  int error_ = 0;                 // of reading
  std::string damage_;            // "cut off"
};

}  // namespace quatrain::data
