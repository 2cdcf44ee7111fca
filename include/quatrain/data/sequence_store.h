#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "quatrain/api.h"

namespace quatrain::data {

/// Sequences of numbers in a file that is mapped into memory, so that a corpus may be larger than memory. The
/// file is below $TMPDIR (or /tmp) and has no name there: nothing is left, whatever ends the process. In
/// memory are eight bytes a sequence. Movable, not copyable. Errors are c10::Error.
template <class Number>
class QUATRAIN_API SequenceStore {
 public:
  SequenceStore();
  ~SequenceStore();
  SequenceStore(SequenceStore&& other) noexcept;
  SequenceStore& operator=(SequenceStore&& other) noexcept;

  /// One more sequence, which may be empty.
  void append(std::span<const Number> numbers);
  /// Adds to the last sequence, or to the first where there is none yet: for a sequence larger than memory.
  void extend(std::span<const Number> numbers);
  /// To be called once, after the last append: from here on sequences can be read. A disk that is full is an
  /// error here or before.
  void finish();

  int64_t size() const;                                 ///< sequences
  int64_t numbers() const;                              ///< of all sequences together
  int64_t length(int64_t i) const;                      ///< of a sequence
  std::span<const Number> operator[](int64_t i) const;  ///< valid while the store lives

 private:
  void check_open() const;
  void flush();
  void release() noexcept;

  int fd_ = -1;
  std::vector<Number> waiting_;      // to be written
  std::vector<int64_t> offsets_{0};  // sequence i is numbers offsets_[i] .. offsets_[i + 1]
  const Number* mapped_ = nullptr;   // the mapped file, once finished
  bool finished_ = false;
};

/// Sequences of tokens' ids.
using TokenStore = SequenceStore<int32_t>;

}  // namespace quatrain::data
