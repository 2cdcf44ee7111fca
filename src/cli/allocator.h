#pragma once

namespace quatrain::cli {

/// Tells the allocator of glibc to keep what is freed instead of giving it back to the system, unless the
/// environment says what it shall do (MALLOC_TRIM_THRESHOLD_, MALLOC_MMAP_THRESHOLD_, MALLOC_MMAP_MAX_,
/// GLIBC_TUNABLES). To be called before large tensors are made. Other allocators go on as they are.
///
/// A training step makes and frees the same large tensors as the one before it, and so does each batch that
/// is evaluated. By default large ones are mappings of their own, whose pages the system clears again every
/// time. A language model spends a quarter of a step in the system that way, and half of that is saved.
void keep_freed_memory();

}  // namespace quatrain::cli
