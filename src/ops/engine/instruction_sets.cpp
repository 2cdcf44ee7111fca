#include "kernels/cpu/kernels.h"
#include "quatrain/ops.h"

namespace quatrain::ops {

std::vector<std::string> instruction_sets() {
  namespace cpu = kernels::cpu;
  std::vector<std::string> names{cpu::active().name};
  for (const auto* const* table = cpu::available(); *table; ++table)
    if (names.front() != (*table)->name) names.emplace_back((*table)->name);
  return names;
}

}  // namespace quatrain::ops
