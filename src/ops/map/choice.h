#pragma once

#include "ops/engine/planner.h"
#include "ops/map/call.h"
#include "ops/structure/structure.h"

/// The planner's questions about a map.
namespace quatrain::ops {

/// The planner's problem of one call; `engine` as on a device that has none.
Problem make_problem(const at::Tensor& S, const Call& call, int64_t rows, at::ScalarType type);
/// The same on a CPU.
Problem make_cpu_problem(const at::Tensor& S, const Call& call, int64_t rows, at::ScalarType type);

/// When a call with a learned A searches for factors of it.
structure::Search search_of(const Call& call);
/// A learned A without factors of its own may have some that are followed while it trains.
bool may_follow(const Problem& problem, const Call& call);

/// The way that the planner takes for a call, with the factors that are followed as far as they are known;
/// does no work.
Way foreseen_way(const at::Tensor& S, const Call& call, int64_t rows, at::ScalarType type);

/// True where products of bfloat16 are taken to be much faster than those of float32, as the processor has
/// them or a Bfloat16Guard says. Elsewhere bfloat16 is multiplied in float32.
bool has_fast_halves();

}  // namespace quatrain::ops
