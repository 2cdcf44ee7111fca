#pragma once

#include <ATen/Parallel.h>

namespace quatrain::test {

/// While one lives, operators run on so many threads.
class Threads {
 public:
  explicit Threads(int count) { at::set_num_threads(count); }
  ~Threads() { at::set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  const int before_ = at::get_num_threads();
};

}  // namespace quatrain::test
