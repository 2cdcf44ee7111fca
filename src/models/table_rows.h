#pragma once

#include <ATen/core/Tensor.h>

namespace quatrain::models {

/// table.index_select(0, rows). On a CPU, of a contiguous table with int64 rows, without ATen's preparations,
/// which take longer than the few numbers of a decoder's step.
at::Tensor table_rows(const at::Tensor& table, const at::Tensor& rows);

}  // namespace quatrain::models
