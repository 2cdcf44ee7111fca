#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "audio_files.h"

/// Values of Kaldi's archives, byte for byte, without the keys before them.
namespace quatrain::data {

template <class Number>
std::string kaldi_matrix(int32_t rows, int32_t columns, const std::vector<Number>& numbers) {
  std::string bytes("\0B", 2);
  bytes += std::is_same_v<Number, float> ? "FM \4" : "DM \4";
  bytes += bytes_of(rows) + '\4' + bytes_of(columns);
  for (const Number number : numbers) bytes += bytes_of(number);
  return bytes;
}

/// What comes before the numbers of a compressed matrix.
inline std::string kaldi_header(std::string_view type, float least, float range, int32_t rows,
                                int32_t columns) {
  return std::string("\0B", 2) + std::string(type) + ' ' + bytes_of(least, range, rows, columns);
}

inline std::string kaldi_integers(const std::vector<int32_t>& numbers) {
  std::string bytes = std::string("\0B\4", 3) + bytes_of(static_cast<int32_t>(numbers.size()));
  for (const int32_t number : numbers) bytes += '\4' + bytes_of(number);
  return bytes;
}

}  // namespace quatrain::data
