#include "quatrain/data/recent_rows.h"

#include <torch/types.h>

#include <algorithm>
#include <vector>

namespace quatrain::data {

RecentRows::RecentRows() : memory_(torch::empty({0}, torch::kFloat)) {}

RecentRows::RecentRows(int64_t columns) : memory_(torch::empty({0, columns}, torch::kFloat)) {}

void RecentRows::append(const at::Tensor& rows) {
  const int64_t needed = count_ + rows.size(0), room = memory_.size(0);
  if (needed > room) {
    std::vector<int64_t> sizes = memory_.sizes().vec();
    sizes[0] = std::max(needed, room + room / 2);
    const at::Tensor before = kept();
    memory_ = torch::empty(sizes, memory_.options());
    memory_.narrow(0, 0, count_).copy_(before);
  }
  memory_.narrow(0, count_, rows.size(0)).copy_(rows);
  count_ = needed;
}

void RecentRows::forget_before(int64_t number) {
  const int64_t rows = std::clamp<int64_t>(number - begin_, 0, count_);
  if (rows == 0) return;
  const int64_t row = memory_.stride(0);
  float* const values = memory_.mutable_data_ptr<float>();
  std::copy_n(values + rows * row, (count_ - rows) * row, values);  // to the front: they may overlap
  begin_ += rows, count_ -= rows;
}

}  // namespace quatrain::data
