#pragma once

#include "ops/engine/planner.h"
#include "ops/map/call.h"

/// The planner's question about a map on a CPU.
namespace quatrain::ops {

Problem make_cpu_problem(const at::Tensor& S, const Call& call, int64_t rows, at::ScalarType type);

/// A learned A without factors of its own may have some that are followed while it trains.
bool may_follow(const Problem& problem, const Call& call);

}  // namespace quatrain::ops
