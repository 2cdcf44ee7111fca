#include "quatrain/nn/safetensors.h"

#include "fuzz/support.h"

/// A file of tensors.
QUATRAIN_FUZZ_TARGET(safetensors)(const uint8_t* data, size_t size) {
  using namespace quatrain;
  static const fuzz::Folder folder;
  const auto file = folder.write("weights.safetensors", fuzz::text_of(data, size));
  fuzz::read_or_refuse<std::runtime_error>(size, 40, [&] { nn::read_safetensors(file); });
  return 0;
}
