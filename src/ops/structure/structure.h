#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "ops/structure/factors.h"

/// Factors of learned structure tensors, followed from step to step while A trains.
///
/// A layer whose A is learned runs on factors A[i, a, b] = sum_r U[i, r] W[a, r] V[b, r] that are held beside
/// A, by its storage: whoever shares A shares them. After an optimizer step a few Newton iterations make them
/// exact again, and the gradient of A follows from theirs, which the passes give almost free. Where they are
/// lost, new ones are searched for; if none are found, the step runs on H and is counted.
namespace quatrain::ops::structure {

/// A small tensor's values, row-major.
std::vector<double> values_of(const at::Tensor& t);
/// Whether they are equal to these as numbers, whatever their type; takes no memory in the usual cases.
bool has_values(const at::Tensor& t, const std::vector<double>& values);

/// The generic rank of n x n x n where factors are followed (n = 2 .. 8), else 0.
int64_t followed_rank(int64_t n);

/// When factors are searched for: never, in eval mode; in training at some steps where those that were
/// followed are lost; or now, where the caller insists.
enum class Search { never, at_times, now };

/// Factors for A's present values, moved there; null where this call must run on H. A tensor that is met for
/// the first time runs on H, since temporaries never come again; not so where the caller insists. With
/// `Search::never` what training gets is as if this had not been called.
std::shared_ptr<const Factors> follow(const at::Tensor& A, Search search);

/// What `follow` holds, if it fits A's present values; neither moves it nor asks for memory. `visited`: what
/// it holds for eval mode counts too.
std::shared_ptr<const Factors> find(const at::Tensor& A, bool visited);

/// The rank of what `follow` would give for A's present values, 0 for H; nothing where that is not known
/// before it is tried. With `Search::never` it is the rank of factors that can be expected to get there.
std::optional<int64_t> foreseen_rank(const at::Tensor& A, Search search);

/// Counts, once for each of A's values, that a pass which `follow` gave factors for ran on H all the same.
void count_on_H(const at::Tensor& A);

}  // namespace quatrain::ops::structure
