#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

/// What opens a target: the function that libFuzzer calls. In the test that replays inputs each has a name of
/// its own.
#ifdef QUATRAIN_CORPUS
#define QUATRAIN_FUZZ_TARGET(name) extern "C" int fuzz_##name
#else
#define QUATRAIN_FUZZ_TARGET(name) extern "C" int LLVMFuzzerTestOneInput
#endif

/// What every target does: hands bytes to a reader and watches what it does with them.
namespace quatrain::fuzz {

/// Something a reader must not do.
class Finding : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

inline std::string_view text_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Takes one of several files off the front of an input: what stands before a line `--`, or all of it.
inline std::string_view next_file(std::string_view& text) {
  constexpr std::string_view kEnd = "\n--\n";
  const size_t end = text.find(kEnd);
  const std::string_view file = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + kEnd.size());
  return file;
}

/// A folder of this process, in memory where the machine has such a place; removed at the end.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Writes a file anew and returns its path.
  std::filesystem::path write(const std::string& name, std::string_view bytes) const;

 private:
  std::filesystem::path path_;
};

/// The memory asked for between its making and the check. It counts under AddressSanitizer alone.
class Memory {
 public:
  Memory();
  /// A finding if the most that was held at once is above 4 MiB and `factor` times the input's size.
  void check(size_t input, size_t factor) const;
};

/// A finding if it is more than a sentence.
void check_message(std::string_view message);

/// Reads an input of `size` bytes. What is no `Promised` exception escapes, and is a finding for the caller.
template <typename Promised, typename Read>
void read_or_refuse(size_t size, size_t factor, const Read& read) {
  const Memory memory;
  try {
    read();
  } catch (const Promised& error) {
    if constexpr (requires { error.what_without_backtrace(); })
      check_message(error.what_without_backtrace());
    else
      check_message(error.what());
  }
  memory.check(size, factor);
}

}  // namespace quatrain::fuzz
