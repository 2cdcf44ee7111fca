#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

/// Pictures in files, made without a library: PNGs that are not compressed.
namespace quatrain::test {

using Pixel = std::array<uint8_t, 3>;

/// `rows`: of each row a zero, since no filter is used, and its values.
inline std::string png_of_rows(int width, int height, char bits, char colour_type, const std::string& rows) {
  const auto number = [](uint32_t value) {
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xFF);
    return bytes;
  };
  const auto chunk = [&](const std::string& type, const std::string& content) {
    uint32_t crc = ~0u;
    for (const char byte : type + content) {
      crc ^= static_cast<uint8_t>(byte);
      for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    }
    return number(static_cast<uint32_t>(content.size())) + type + content + number(~crc);
  };
  uint32_t a = 1, b = 0;  // Adler's sums
  for (const char byte : rows) a = (a + static_cast<uint8_t>(byte)) % 65521, b = (b + a) % 65521;
  std::string stream("\x78\x01", 2);
  constexpr size_t kBlock = 65535;
  for (size_t begin = 0; begin < rows.size(); begin += kBlock) {
    const size_t size = std::min(kBlock, rows.size() - begin);
    stream += begin + size == rows.size() ? '\1' : '\0';
    for (const size_t length : {size, ~size})
      stream += static_cast<char>(length & 0xFF), stream += static_cast<char>(length >> 8 & 0xFF);
    stream += rows.substr(begin, size);
  }
  stream += number(b << 16 | a);
  const std::string header = number(static_cast<uint32_t>(width)) + number(static_cast<uint32_t>(height)) +
                             std::string{bits, colour_type, 0, 0, 0};
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR", header) + chunk("IDAT", stream) + chunk("IEND", "");
}

inline std::string plain_png(int width, int height, const std::function<Pixel(int row, int column)>& pixel) {
  constexpr char kThreeColours = 2;
  std::string rows;
  for (int row = 0; row < height; ++row) {
    rows += '\0';
    for (int column = 0; column < width; ++column)
      for (const uint8_t value : pixel(row, column)) rows += static_cast<char>(value);
  }
  return png_of_rows(width, height, 8, kThreeColours, rows);
}

inline constexpr std::array kColours{"leaf", "sea", "sun"};

/// A picture of one of the classes: its colour, under noise.
inline std::string colour_png(size_t colour, uint64_t seed, int width = 12, int height = 12) {
  constexpr std::array<Pixel, 3> kPixels{{{40, 160, 60}, {30, 60, 180}, {220, 200, 40}}};
  uint64_t state = seed * 3 + colour + 1;
  return plain_png(width, height, [&](int, int) {
    Pixel pixel = kPixels[colour];
    for (uint8_t& value : pixel) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      value = static_cast<uint8_t>(value + static_cast<int>(state >> 33) % 60 - 30);
    }
    return pixel;
  });
}

inline void write_bytes(const std::filesystem::path& file, const std::string& bytes) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << bytes;
}

/// So many pictures of each class in train, dev and test: FOLDER/train/leaf/0.png ...
inline void write_colours(const std::filesystem::path& folder, int train, int dev, int test) {
  uint64_t seed = 0;
  for (const auto& [name, count] :
       {std::pair{"train", train}, std::pair{"dev", dev}, std::pair{"test", test}})
    for (int i = 0; i < count; ++i)
      for (size_t colour = 0; colour < kColours.size(); ++colour)
        write_bytes(folder / name / kColours[colour] / (std::to_string(i) + ".png"),
                    colour_png(colour, seed++));
}

}  // namespace quatrain::test
