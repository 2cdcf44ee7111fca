#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "quatrain/api.h"

namespace quatrain::data {

/// Sequences of ids in a file that is mapped into memory, so that a corpus may be larger than memory. The
/// file is below $TMPDIR (or /tmp) and has no name there: nothing is left, whatever ends the process. In
/// memory are eight bytes a sequence. Movable, not copyable. Errors are c10::Error.
class QUATRAIN_API TokenStore {
 public:
  TokenStore();
  ~TokenStore();
  TokenStore(TokenStore&& other) noexcept;
  TokenStore& operator=(TokenStore&& other) noexcept;

  /// One more sequence, which may be empty.
  void append(std::span<const int32_t> ids);
  /// Adds to the last sequence, or to the first where there is none yet: for a sequence larger than memory.
  void extend(std::span<const int32_t> ids);
  /// To be called once, after the last append: from here on sequences can be read. A disk that is full is an
  /// error here or before.
  void finish();

  int64_t size() const;                                  ///< sequences
  int64_t tokens() const;                                ///< of all sequences together
  int64_t length(int64_t i) const;                       ///< of a sequence
  std::span<const int32_t> operator[](int64_t i) const;  ///< valid while the store lives

 private:
  void check_open() const;
  void flush();
  void release() noexcept;

  int fd_ = -1;
  std::vector<int32_t> waiting_;     // to be written
  std::vector<int64_t> offsets_{0};  // sequence i is ids offsets_[i] .. offsets_[i + 1]
  const int32_t* ids_ = nullptr;     // the mapped file, once finished
  bool finished_ = false;
};

}  // namespace quatrain::data
