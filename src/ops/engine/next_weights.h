#pragma once

#include "quatrain/api.h"

/// Which weights a thread reads after which.
namespace quatrain::ops::engine {

/// Told of the weights that a pass reads first, in each thread by itself. Returns those that the thread read
/// after them the last time, or null: a model's layers follow each other in the same order again and again,
/// so the last products of one can fetch what the next one begins with. The address may be of memory that is
/// freed by now; it may be fetched, never read.
QUATRAIN_API const void* next_weights(const void* first);
template <class T>
const T* next_weights(const T* first) {
  return static_cast<const T*>(next_weights(static_cast<const void*>(first)));
}

}  // namespace quatrain::ops::engine
