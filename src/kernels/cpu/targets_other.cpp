#include "kernels/cpu/targets.h"

namespace quatrain::kernels::cpu {

extern const Table kBaseline;

const Target* targets() {
  static const Target all[] = {{&kBaseline, [] { return true; }}, {nullptr, nullptr}};
  return all;
}

bool is_of_intel() {
  return false;
}

}  // namespace quatrain::kernels::cpu
