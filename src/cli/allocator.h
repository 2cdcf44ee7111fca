#pragma once

namespace quatrain::cli {

/// Tells the allocator of glibc to keep what is freed instead of giving it back to the system, unless the
/// environment says what it shall do (MALLOC_TRIM_THRESHOLD_, MALLOC_MMAP_THRESHOLD_, MALLOC_MMAP_MAX_). To
/// be called before large tensors are made. Other allocators go on as they are.
///
/// A training step makes and frees the same large tensors as the one before it. By default each of them is a
/// mapping of its own, whose pages the system clears again every time: a quarter of a language model's step.
void keep_freed_memory();

}  // namespace quatrain::cli
