#include "kernels/cpu/loops.h"

namespace quatrain::kernels::cpu {

extern const Table kBaseline;
constinit const Table kBaseline = make_table("baseline");

}  // namespace quatrain::kernels::cpu
