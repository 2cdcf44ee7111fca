#pragma once

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "kernels/cpu/kernels.h"

/// Every instruction set of this machine, and sizes that meet every edge of its loops.
namespace quatrain::kernels::cpu::test {

/// 0 .. 33, 64, 100: every tail of every vector length, and more than one block.
inline std::vector<int64_t> sizes() {
  std::vector<int64_t> result(34);
  std::iota(result.begin(), result.end(), 0);
  result.insert(result.end(), {64, 100});
  return result;
}

inline std::vector<const Table*> tables() {
  std::vector<const Table*> result;
  for (const Table* const* table = available(); *table; ++table) result.push_back(*table);
  return result;
}

/// Calls `check(table, rows, cols)` for every table and size.
template <class Check>
void for_all_sizes(const Check& check) {
  for (const Table* k : tables())
    for (const int64_t rows : sizes())
      for (const int64_t cols : sizes()) {
        SCOPED_TRACE(std::string(k->name) + ", " + std::to_string(rows) + " x " + std::to_string(cols));
        check(*k, rows, cols);
        if (testing::Test::HasFatalFailure()) return;
      }
}

}  // namespace quatrain::kernels::cpu::test
