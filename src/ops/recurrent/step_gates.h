#pragma once

#include <vector>

#include "ops/recurrent/gate_maps.h"

namespace quatrain::ops {

/// The inputs' part of the gates, step by step. It stands in memory for all steps; or it is made of inputs a
/// few steps at a time, right before them, and never leaves the second level cache.
class StepGates {
 public:
  /// The most rows that are made at a time.
  static int64_t rows_at_once(const Steps& steps);

  /// rows: (N, n gates p), or the inputs (N, n d) that `maps` are applied to. All live longer than this.
  StepGates(const at::Tensor& rows, const GateMaps* maps, int64_t width, const Steps& steps,
            const Split& split, bool reverse);

  /// One thread's way through the steps.
  class Reader {
   public:
    Reader(const StepGates& gates, const engine::Team::Member& member);

    /// Gates of rows one after the other, from row `first` of their step on: of the i-th step in the order in
    /// which they are taken. Threads that share what is made wait for each other.
    struct Rows {
      const float* data;
      int64_t first;
    };
    Rows step(int64_t i);

   private:
    void make(int64_t i);
    Range rows(int64_t i) const;

    const StepGates& gates_;
    const engine::Team::Member& member_;
    std::vector<float> gathered_;  // inputs that do not lie one after the other
    std::vector<int64_t> at_;      // first rows of the steps that are made
    int64_t begin_ = 0;            // the first of these steps
    float* made_ = nullptr;
  };

 private:
  at::Tensor rows_, made_;
  const GateMaps* maps_;
  const Steps& steps_;
  const Split& split_;
  int64_t width_, most_ = 0;  // rows in memory at a time
  bool reverse_;
};

}  // namespace quatrain::ops
