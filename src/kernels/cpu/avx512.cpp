#include "kernels/cpu/loops.h"

namespace quatrain::kernels::cpu {

extern const Table kAvx512;
constinit const Table kAvx512 = make_table("avx512");

}  // namespace quatrain::kernels::cpu
