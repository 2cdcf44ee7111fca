#pragma once

#include "kernels/cpu/kernels.h"

/// What differs between processor families: targets_x86.cpp or targets_other.cpp, whichever is built.
namespace quatrain::kernels::cpu {

struct Target {
  const Table* table;
  bool (*runs_here)();
};

/// The tables that are built in, the best one first; ends with a null table.
const Target* targets();

/// True on a processor that Intel made; MKL serves others otherwise.
bool is_of_intel();

}  // namespace quatrain::kernels::cpu
