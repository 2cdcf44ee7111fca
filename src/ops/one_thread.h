#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>

namespace quatrain::ops {

/// Runs small linear algebra on the calling thread, without autograd: inside a parallel region it stays
/// there. Matrices of some hundreds of rows gain nothing from a second thread and lose a lot to it on a busy
/// machine, and the result is the same for any number of threads.
template <class Work>
void on_one_thread(const Work& work) {
  at::parallel_for(0, 2, 1, [&](int64_t begin, int64_t) {
    if (begin != 0) return;
    const at::NoGradGuard no_grad;  // guards are a thread's own
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    work();
  });
}

}  // namespace quatrain::ops
