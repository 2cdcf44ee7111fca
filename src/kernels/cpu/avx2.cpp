#include "kernels/cpu/loops.h"

namespace quatrain::kernels::cpu {

extern const Table kAvx2;
constinit const Table kAvx2 = make_table("avx2");

}  // namespace quatrain::kernels::cpu
