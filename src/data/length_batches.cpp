#include "quatrain/data/length_batches.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "data/random.h"

namespace quatrain::data {

LengthBatches::LengthBatches(const std::vector<Lengths>& lengths, const LengthBatchOptions& options)
    : shuffle_(options.shuffle), seed_(options.seed) {
  TORCH_CHECK(options.most >= 0 && options.room >= 0 && options.most + options.room > 0,
              "LengthBatches: most or room must be positive, and the other may be 0 for no limit, got ",
              options.most, " and ", options.room);
  order_.resize(lengths.size());
  std::iota(order_.begin(), order_.end(), 0);
  if (shuffle_) Random(seed_).shuffle(order_);
  const auto of = [&](int64_t i) { return lengths[static_cast<size_t>(i)]; };
  std::stable_sort(order_.begin(), order_.end(), [&](int64_t a, int64_t b) { return of(a) > of(b); });

  const auto no_limit = std::numeric_limits<int64_t>::max();
  const int64_t most = options.most > 0 ? options.most : no_limit;
  const int64_t room = options.room > 0 ? options.room : no_limit;
  for (int64_t begin = 0; begin < examples();) {
    const int64_t longest = of(order_[static_cast<size_t>(begin)])[0];
    TORCH_CHECK(longest > 0, "LengthBatches: a length must be positive, got ", longest);
    starts_.push_back(begin);
    begin += std::min({most, std::max<int64_t>(room / longest, 1), examples() - begin});
  }
  starts_.push_back(examples());
  shuffled_.resize(starts_.size() - 1);
  std::iota(shuffled_.begin(), shuffled_.end(), 0);
}

void LengthBatches::arrange(int64_t epoch) {
  if (!shuffle_ || epoch_ == epoch) return;
  constexpr uint64_t kEpochStreams = 1;  // after the one that arranged the examples
  std::iota(shuffled_.begin(), shuffled_.end(), 0);
  Random(seed_, kEpochStreams + static_cast<uint64_t>(epoch)).shuffle(shuffled_);
  epoch_ = epoch;
}

std::span<const int64_t> LengthBatches::batch(int64_t epoch, int64_t index) {
  TORCH_CHECK(epoch >= 0, "LengthBatches::batch: epoch must not be negative, got ", epoch);
  TORCH_CHECK(index >= 0 && index < batches(), "LengthBatches::batch: index must be from 0 to ",
              batches() - 1, ", got ", index);
  arrange(epoch);
  const auto number = static_cast<size_t>(shuffled_[static_cast<size_t>(index)]);
  const auto begin = static_cast<size_t>(starts_[number]), end = static_cast<size_t>(starts_[number + 1]);
  return {order_.data() + begin, end - begin};
}

}  // namespace quatrain::data
