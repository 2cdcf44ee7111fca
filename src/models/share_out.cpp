#include "models/share_out.h"

#include <ATen/Parallel.h>
#include <ATen/ThreadLocalState.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>

#include "quatrain/ops.h"

namespace quatrain::models {

void share_out(int64_t count, const std::function<void(int64_t)>& work,
               const std::function<void()>& after_round) {
  const int64_t threads = std::max(1, at::get_num_threads());
  const at::ThreadLocalState caller;  // autocast among it
  for (int64_t first = 0; first < count; first += threads) {
    const int64_t end = std::min(count, first + threads);
    // At least two pieces: a single one would be run outside a parallel region, with all threads inside.
    at::parallel_for(first, std::max(end, first + 2), 1, [&](int64_t begin, int64_t stop) {
      const at::ThreadLocalStateGuard as_caller(caller);
      const torch::NoGradGuard no_grad;
      const ops::PlannedRowsGuard planned(static_cast<ops::PlannedRows>(kExactRows));
      for (int64_t i = begin; i < std::min(stop, end); ++i) work(i);
    });
    if (after_round) after_round();
  }
}

}  // namespace quatrain::models
