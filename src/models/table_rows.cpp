#include "models/table_rows.h"

#include <torch/types.h>

#include <cstring>
#include <vector>

namespace quatrain::models {

at::Tensor table_rows(const at::Tensor& table, const at::Tensor& rows) {
  if (!table.is_cpu() || !table.is_contiguous() || !rows.is_cpu() || !rows.is_contiguous() ||
      rows.dim() != 1 || rows.scalar_type() != at::kLong)
    return table.index_select(0, rows);
  std::vector<int64_t> sizes = table.sizes().vec();
  sizes[0] = rows.size(0);
  const at::Tensor result = torch::empty(sizes, table.options());
  const int64_t count = table.size(0);
  const size_t bytes = count > 0 ? table.nbytes() / static_cast<size_t>(count) : 0;
  const auto* const from = static_cast<const char*>(table.const_data_ptr());
  auto* to = static_cast<char*>(result.mutable_data_ptr());
  const auto* const number = rows.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < sizes[0]; ++i, to += bytes) {
    TORCH_CHECK_INDEX(number[i] >= 0 && number[i] < count, "rows must be from 0 to ", count - 1, ", got ",
                      number[i]);
    if (bytes > 0) std::memcpy(to, from + static_cast<size_t>(number[i]) * bytes, bytes);
  }
  return result;
}

}  // namespace quatrain::models
