#include <algorithm>
#include <cstdint>
#include <optional>

#include "data/image_decoders.h"

namespace quatrain::data {
namespace {

/// Whole numbers of a TIFF header, whose first bytes say which of theirs comes first.
class TiffNumbers {
 public:
  TiffNumbers(std::string_view bytes, bool low_first) : bytes_(bytes), low_first_(low_first) {}

  std::optional<uint32_t> at(size_t offset, size_t width) const {
    if (offset > bytes_.size() || bytes_.size() - offset < width) return std::nullopt;
    uint32_t value = 0;
    for (size_t i = 0; i < width; ++i)
      value = value << 8 | static_cast<uint8_t>(bytes_[offset + (low_first_ ? width - 1 - i : i)]);
    return value;
  }

 private:
  std::string_view bytes_;
  bool low_first_;
};

int tiff_orientation(std::string_view tiff) {
  constexpr uint32_t kOrientation = 0x0112;
  constexpr size_t kEntry = 12;  // bytes: tag, type, count, value
  const bool low_first = tiff.starts_with(std::string_view("II*\0", 4));
  if (!low_first && !tiff.starts_with(std::string_view("MM\0*", 4))) return 1;
  const TiffNumbers numbers(tiff, low_first);
  const size_t directory = numbers.at(4, 4).value_or(0);
  const uint32_t entries = numbers.at(directory, 2).value_or(0);
  for (size_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + i * kEntry;
    const auto tag = numbers.at(entry, 2), value = numbers.at(entry + 8, 2);
    if (!tag || !value) return 1;
    if (*tag == kOrientation) return *value >= 1 && *value <= 8 ? static_cast<int>(*value) : 1;
  }
  return 1;
}

}  // namespace

int exif_orientation(std::string_view jpeg) {
  constexpr std::string_view kExif("Exif\0\0", 6);
  constexpr uint32_t kApp1 = 0xFFE1, kScan = 0xFFDA;
  const TiffNumbers numbers(jpeg, /*low_first=*/false);
  for (size_t at = 2;;) {
    while (numbers.at(at, 2) == 0xFFFFu) ++at;  // bytes that fill up before a marker
    const auto marker = numbers.at(at, 2), length = numbers.at(at + 2, 2);
    if (!marker || !length || *marker >> 8 != 0xFF || *marker == kScan || *length < 2) return 1;
    const auto content = jpeg.substr(at + 4, std::min<size_t>(*length - 2, jpeg.size() - at - 4));
    if (*marker == kApp1 && content.starts_with(kExif)) return tiff_orientation(content.substr(kExif.size()));
    at += 2 + *length;
  }
}

}  // namespace quatrain::data
