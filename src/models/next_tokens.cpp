#include "models/next_tokens.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/cpu/kernels.h"

namespace quatrain::models {
namespace {

using kernels::cpu::kTopBlock;

// What a row's log-probabilities are its scores less of; and the highest score of each block of columns.
double log_sum(const float* scores, int64_t count, std::vector<float>& tops) {
  const double sum = kernels::cpu::active().exp_sum(scores, count, tops.data());
  return *std::max_element(tops.begin(), tops.end()) + std::log(sum);
}
double log_sum(const double* scores, int64_t count, std::vector<double>& tops) {
  for (size_t block = 0; block < tops.size(); ++block) {
    const double* first = scores + static_cast<int64_t>(block) * kTopBlock;
    tops[block] = *std::max_element(first, std::min(first + kTopBlock, scores + count));
  }
  const double top = *std::max_element(tops.begin(), tops.end());
  double sum = 0;
  for (int64_t token = 0; token < count; ++token) sum += std::exp(scores[token] - top);
  return top + std::log(sum);
}

// The `k` highest of a row's scores, the highest first, equal ones by their token. Few blocks of a large
// vocabulary have a score that exceeds what was found before them: the others are passed over.
template <class T>
void find_best(const T* scores, int64_t count, const std::vector<T>& tops, int64_t k, double* best,
               int64_t* tokens) {
  int64_t found = 0;
  T least = -std::numeric_limits<T>::infinity();  // of those found, once there are k
  for (size_t block = 0; block < tops.size(); ++block) {
    if (found == k && !(tops[block] > least)) continue;
    const int64_t first = static_cast<int64_t>(block) * kTopBlock;
    for (int64_t token = first; token < std::min(first + kTopBlock, count); ++token) {
      const T score = scores[token];
      if (found == k && !(score > least)) continue;
      int64_t place = found < k ? found++ : k - 1;
      for (; place > 0 && score > best[place - 1]; --place) {
        best[place] = best[place - 1];
        tokens[place] = tokens[place - 1];
      }
      best[place] = score;
      tokens[place] = token;
      if (found == k) least = static_cast<T>(best[k - 1]);
    }
  }
}

}  // namespace

NextTokens::NextTokens(const at::Tensor& logits, int64_t most,
                       const std::vector<std::vector<int64_t>>& banned, Buffers& buffers)
    : logits_((logits.scalar_type() == at::kDouble ? logits : logits.to(at::kFloat)).cpu().contiguous()),
      count_(std::min(most, logits_.size(1))),
      buffers_(buffers) {
  const auto rows = static_cast<size_t>(logits_.size(0)), found = rows * static_cast<size_t>(count_);
  buffers_.total.resize(rows);
  buffers_.best.resize(found);
  buffers_.tokens.resize(found);
  logits_.scalar_type() == at::kDouble ? find(logits_.mutable_data_ptr<double>(), banned, buffers_.doubles)
                                       : find(logits_.mutable_data_ptr<float>(), banned, buffers_.floats);
}

template <class T>
void NextTokens::find(T* logits, const std::vector<std::vector<int64_t>>& banned,
                      std::vector<Buffers::Scratch<T>>& scratch) {
  const int64_t rows = logits_.size(0), vocabulary = logits_.size(1), k = count_;
  const auto threads = static_cast<size_t>(at::get_num_threads());
  if (scratch.size() < threads) scratch.resize(threads);
  at::parallel_for(0, rows, 4, [&](int64_t begin, int64_t end) {
    auto& [tops, hidden] = scratch[static_cast<size_t>(at::get_thread_num())];
    tops.resize(static_cast<size_t>((vocabulary + kTopBlock - 1) / kTopBlock));
    for (int64_t row = begin; row < end; ++row) {
      T* const scores = logits + row * vocabulary;
      buffers_.total[static_cast<size_t>(row)] = log_sum(scores, vocabulary, tops);
      const auto& never = banned[static_cast<size_t>(row)];
      hidden.clear();
      for (const int64_t token : never)
        hidden.push_back(std::exchange(scores[token], -std::numeric_limits<T>::infinity()));
      find_best(scores, vocabulary, tops, k, buffers_.best.data() + row * k,
                buffers_.tokens.data() + row * k);
      // Backwards, since a token may be banned twice.
      for (size_t i = never.size(); i-- > 0;) scores[never[i]] = hidden[i];
    }
  });
}

double NextTokens::log_probability_of(int64_t row, int64_t token) const {
  const int64_t at = row * logits_.size(1) + token;
  const double score = logits_.scalar_type() == at::kDouble ? logits_.const_data_ptr<double>()[at]
                                                            : logits_.const_data_ptr<float>()[at];
  return score - total(row);
}

}  // namespace quatrain::models
