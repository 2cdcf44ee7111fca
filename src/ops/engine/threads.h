#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>

#include <cstdint>

/// MKL's; null where ATen was built with another library.
extern "C" int MKL_Set_Num_Threads_Local(int) __attribute__((weak));

namespace quatrain::ops {

/// The threads that a parallel region which begins here would have.
inline int64_t threads_at_hand() {
  return at::in_parallel_region() ? 1 : at::get_num_threads();
}

/// Holds MKL to one thread on the calling thread while it lives. After at::set_num_threads it would divide
/// its work by that number inside a parallel region too, and round otherwise.
class OneMklThread {
 public:
  OneMklThread() : before_(MKL_Set_Num_Threads_Local ? MKL_Set_Num_Threads_Local(1) : 0) {}
  ~OneMklThread() {
    if (MKL_Set_Num_Threads_Local) MKL_Set_Num_Threads_Local(before_);
  }
  OneMklThread(const OneMklThread&) = delete;
  OneMklThread& operator=(const OneMklThread&) = delete;

 private:
  int before_;
};

/// Runs small linear algebra on the calling thread, without autograd: inside a parallel region it stays
/// there. Matrices of some hundreds of rows gain nothing from a second thread and lose a lot to it on a busy
/// machine, and the result is the same for any number of threads.
template <class Work>
void on_one_thread(const Work& work) {
  at::parallel_for(0, 2, 1, [&](int64_t begin, int64_t) {
    if (begin != 0) return;
    const OneMklThread one;
    const at::NoGradGuard no_grad;  // guards are a thread's own
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    work();
  });
}

}  // namespace quatrain::ops
