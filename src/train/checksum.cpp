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

#include "support/text.h"

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

constexpr size_t kDigits = 16;
constexpr const char* kMember = "\"checksum\":";

std::string digits_of(std::string_view bytes) {
  return checksum(bytes).substr(0, kDigits);
}

// Where an object's last member ends.
size_t end_of_members(std::string_view object) {
  const size_t brace = object.rfind('}');
  return brace == object.npos ? 0 : object.substr(0, brace).find_last_not_of(" \n") + 1;
}

}  // namespace

std::string checksum(std::string_view bytes) {
  return text_of(XXH3_128bits(bytes.data(), bytes.size()));
}

std::string checksum_of_file(const std::filesystem::path& path) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), &XXH3_freeState);
  XXH3_128bits_reset(state.get());
  std::ifstream file = open_named(path);
  std::vector<char> portion(1 << 20);
  while (file) {
    file.read(portion.data(), static_cast<std::streamsize>(portion.size()));
    XXH3_128bits_update(state.get(), portion.data(), static_cast<size_t>(file.gcount()));
  }
  if (!file.eof()) throw std::runtime_error("cannot read '" + path.string() + "': " + std::strerror(errno));
  return text_of(XXH3_128bits_digest(state.get()));
}

std::string with_checksum(std::string_view object) {
  const size_t end = end_of_members(object);
  const std::string_view rest = object.substr(end);
  std::string text(object.substr(0, end));
  text += rest.starts_with('\n') ? ",\n  " : ",";
  text += kMember;
  text += rest.starts_with('\n') ? " \"" : "\"";
  text += digits_of(text) + '"';
  return text.append(rest);
}

std::optional<bool> holds_checksum(std::string_view object) {
  const std::string_view members = object.substr(0, end_of_members(object));
  // The shape of the member, not its name: that may have changed.
  const size_t shape = std::string_view(kMember).size();
  if (members.size() < shape + kDigits + 2 || !members.ends_with('"')) return std::nullopt;
  const std::string_view digits = members.substr(members.size() - kDigits - 1, kDigits);
  const std::string_view before = members.substr(0, members.size() - kDigits - 1);
  std::string_view name = before.substr(0, before.size() - 1);
  if (name.ends_with(' ')) name.remove_suffix(1);
  if (!before.ends_with('"') || !name.ends_with(':') || name.size() < shape ||
      name[name.size() - shape] != '"')
    return std::nullopt;
  return digits == digits_of(before);
}

}  // namespace quatrain::train
