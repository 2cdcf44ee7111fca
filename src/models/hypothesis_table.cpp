#include "quatrain/models/hypothesis_table.h"

#include <torch/types.h>

#include "models/table_rows.h"

namespace quatrain::models {

HypothesisTable::HypothesisTable(int64_t rows, int64_t capacity, at::Device device)
    : first_(torch::zeros({rows, capacity}, torch::TensorOptions(torch::kInt).device(device))),
      table_(first_) {}

void HypothesisTable::clear() {
  table_ = first_;
  length_ = 0;
}

void HypothesisTable::grow(const at::Tensor& parents) {
  const int64_t rows = parents.size(0);
  if (length_ > 0) table_ = table_rows(table_, parents);
  if (table_.size(0) != rows) table_ = table_.narrow(0, 0, rows).clone();
  if (table_.is_cpu()) {
    auto* slot = table_.mutable_data_ptr<int32_t>() + length_;
    for (int32_t row = 0; row < rows; ++row, slot += table_.stride(0)) *slot = row;
  } else {
    table_.select(1, length_).copy_(torch::arange(rows, table_.options()));
  }
  ++length_;
}

at::Tensor HypothesisTable::seen() const {
  return table_.narrow(1, 0, length_);
}

at::Tensor HypothesisTable::lengths() const {
  return torch::full({table_.size(0)}, length_, table_.options());
}

}  // namespace quatrain::models
