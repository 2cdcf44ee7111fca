#include "tasks/seq2seq/bleu_counts.h"

#include <algorithm>
#include <stdexcept>

namespace quatrain::tasks {

using scores::BleuCounts;

namespace {
constexpr size_t kOrders = BleuCounts::kOrders;
}

scores::BleuTokenizer bleu_tokenizer(data::TextForm form) {
  return form == data::TextForm::raw ? scores::BleuTokenizer::v13a : scores::BleuTokenizer::none;
}

train::ExampleCounts bleu_columns() {
  std::vector<std::string> columns;
  for (const char* what : {"matched_", "total_"})
    for (size_t k = 1; k <= kOrders; ++k) columns.push_back(what + std::to_string(k));
  columns.insert(columns.end(), {"hypothesis_length", "reference_length"});
  return {columns, {}};
}

std::vector<int64_t> bleu_values(const BleuCounts& counts) {
  std::vector<int64_t> values(counts.matched.begin(), counts.matched.end());
  values.insert(values.end(), counts.total.begin(), counts.total.end());
  values.insert(values.end(), {counts.hypothesis_length, counts.reference_length});
  return values;
}

double bleu_of(const std::vector<int64_t>& sums) {
  if (sums.size() != 2 * kOrders + 2) throw std::invalid_argument("bleu_of: the sums must be those of BLEU");
  BleuCounts counts;
  std::copy_n(sums.begin(), kOrders, counts.matched.begin());
  std::copy_n(sums.begin() + kOrders, kOrders, counts.total.begin());
  counts.hypothesis_length = sums[2 * kOrders];
  counts.reference_length = sums[2 * kOrders + 1];
  return scores::bleu(counts);
}

}  // namespace quatrain::tasks
