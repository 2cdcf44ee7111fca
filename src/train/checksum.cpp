#include "train/checksum.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace quatrain::train {
namespace {

std::string text_of(XXH128_hash_t hash) {
  XXH128_canonical_t bytes;
  XXH128_canonicalFromHash(&bytes, hash);
  std::string text;
  for (const unsigned char byte : bytes.digest)
    for (const int digit : {byte >> 4, byte & 15}) text += "0123456789abcdef"[digit];
  return text;
}

}  // namespace

std::string checksum(std::string_view bytes) {
  return text_of(XXH3_128bits(bytes.data(), bytes.size()));
}

std::string checksum_of_file(const std::filesystem::path& path) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), &XXH3_freeState);
  XXH3_128bits_reset(state.get());
  std::ifstream file(path, std::ios::binary);
  std::vector<char> portion(1 << 20);
  while (file) {
    file.read(portion.data(), static_cast<std::streamsize>(portion.size()));
    XXH3_128bits_update(state.get(), portion.data(), static_cast<size_t>(file.gcount()));
  }
  if (!file.eof()) throw std::runtime_error("cannot read '" + path.string() + "': " + std::strerror(errno));
  return text_of(XXH3_128bits_digest(state.get()));
}

}  // namespace quatrain::train
