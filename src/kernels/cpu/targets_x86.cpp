#include "kernels/cpu/targets.h"

namespace quatrain::kernels::cpu {

extern const Table kBaseline, kAvx2, kAvx512;

const Target* targets() {
  static const Target all[] = {
      {&kAvx512,
       [] {
         return 0 != __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
       }},
      {&kAvx2, [] { return 0 != __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }},
      {&kBaseline, [] { return true; }},
      {nullptr, nullptr}};
  return all;
}

bool is_of_intel() {
  return 0 != __builtin_cpu_is("intel");
}

}  // namespace quatrain::kernels::cpu
