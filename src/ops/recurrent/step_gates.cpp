#include "ops/recurrent/step_gates.h"

#include <algorithm>

#include "ops/memory/recycled.h"

namespace quatrain::ops {

namespace {

// Made at a time: a tile of the engine's. With fewer the inputs' weights would be read too often, with more
// the gates would leave the second level cache.
constexpr int64_t kRows = 64;

}  // namespace

int64_t StepGates::rows_at_once(const Steps& steps) {
  return std::min(steps.first.back() + steps.sizes.back(), std::max(kRows, steps.sizes[0]));
}

StepGates::StepGates(const at::Tensor& rows, const GateMaps* maps, int64_t width, const Steps& steps,
                     const Split& split, bool reverse)
    : rows_(rows.contiguous()), maps_(maps), steps_(steps), split_(split), width_(width), reverse_(reverse) {
  if (!maps_) return;
  most_ = rows_at_once(steps);
  made_ = recycled_empty({split.by_rows() ? split.threads() : 1, most_, width_});
}

StepGates::Reader::Reader(const StepGates& gates, const engine::Team::Member& member)
    : gates_(gates), member_(member) {
  if (gates.maps_)
    made_ = gates.made_.mutable_data_ptr<float>() +
            (gates.split_.by_rows() ? member.parts().begin * gates.most_ * gates.width_ : 0);
}

Range StepGates::Reader::rows(int64_t i) const {
  const Steps& steps = gates_.steps_;
  return gates_.split_.part(member_, steps.sizes[static_cast<size_t>(steps.at(i, gates_.reverse_))]).rows;
}

StepGates::Reader::Rows StepGates::Reader::step(int64_t i) {
  if (!gates_.maps_)
    return {
        gates_.rows_.const_data_ptr<float>() +
            gates_.steps_.first[static_cast<size_t>(gates_.steps_.at(i, gates_.reverse_))] * gates_.width_,
        0};
  if (i >= begin_ + static_cast<int64_t>(at_.size())) make(i);
  return {made_ + at_[static_cast<size_t>(i - begin_)] * gates_.width_, rows(i).begin};
}

void StepGates::Reader::make(int64_t i) {
  const Steps& steps = gates_.steps_;
  int64_t count = 0;
  begin_ = i, at_.clear();
  for (; i < steps.count(); ++i) {
    const Range range = rows(i);
    if (count > 0 && count + range.end - range.begin > kRows) break;
    at_.push_back(count);
    count += range.end - range.begin;
  }
  const int64_t in = gates_.rows_.size(1);
  const auto x = [&](int64_t of_step) {
    return gates_.rows_.const_data_ptr<float>() +
           (steps.first[static_cast<size_t>(steps.at(of_step, gates_.reverse_))] + rows(of_step).begin) * in;
  };
  const float* from = x(begin_);
  if (i > begin_ + 1 && (gates_.reverse_ || gates_.split_.by_rows())) {
    gathered_.resize(static_cast<size_t>(gates_.most_ * in));
    for (int64_t step = begin_; step < i; ++step)
      std::copy_n(x(step), (rows(step).end - rows(step).begin) * in,
                  gathered_.data() + at_[static_cast<size_t>(step - begin_)] * in);
    from = gathered_.data();
  }
  gates_.maps_->apply({0, count}, gates_.split_.share(member_, gates_.maps_->blocks()), from, made_);
  gates_.split_.wait(member_);
}

}  // namespace quatrain::ops
