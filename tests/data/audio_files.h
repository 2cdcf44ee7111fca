#pragma once

#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace quatrain::data {

/// Whole numbers as a little-endian machine stores them, and so does a WAV file.
template <class... Numbers>
std::string bytes_of(Numbers... numbers) {
  std::string bytes;
  const auto append = [&](auto number) {
    std::string part(sizeof number, '\0');
    std::memcpy(part.data(), &number, sizeof number);
    bytes += part;
  };
  (append(numbers), ...);
  return bytes;
}

/// What stands in a WAV file beside its samples.
struct WavFormat {
  uint16_t tag = 1;  ///< 1: whole numbers, 3: floats
  uint16_t channels = 1;
  uint32_t rate = 8000;
  uint16_t bits = 16;
};

inline std::string chunk(std::string_view name, std::string_view content) {
  std::string bytes = std::string(name) + bytes_of(static_cast<uint32_t>(content.size()));
  bytes += content;
  return bytes + (content.size() % 2 ? std::string(1, '\0') : "");
}

/// A WAV file, byte for byte. `promised`: the length that its header gives, of the samples' bytes;
/// `between`: chunks before the samples.
inline std::string wav(std::string_view samples, const WavFormat& format = {}, int64_t promised = -1,
                       std::string_view between = "") {
  const auto frame = static_cast<uint16_t>(format.channels * format.bits / 8);
  std::string data = chunk("data", samples);
  if (promised >= 0) data.replace(4, 4, bytes_of(static_cast<uint32_t>(promised)));
  std::string body = "WAVE" +
                     chunk("fmt ", bytes_of(format.tag, format.channels, format.rate, format.rate * frame,
                                            frame, format.bits)) +
                     std::string(between) + data;
  return "RIFF" + bytes_of(static_cast<uint32_t>(body.size())) + body;
}

inline std::string sixteen_bits(const std::vector<int16_t>& samples) {
  return {reinterpret_cast<const char*>(samples.data()), samples.size() * 2};
}

/// A WAV file of 16 bits whose samples count from 0 on.
inline std::string recording(int16_t samples, uint32_t rate = 8000) {
  std::vector<int16_t> all(static_cast<size_t>(samples));
  std::iota(all.begin(), all.end(), int16_t{0});
  return wav(sixteen_bits(all), {.rate = rate});
}

/// A SPHERE file of 16 bits, low byte first.
inline std::string sphere(std::string_view samples, int64_t promised, const std::string& coding = "pcm") {
  std::string header =
      "NIST_1A\n   1024\nchannel_count -i 1\nsample_rate -i 16000\nsample_n_bytes -i 2\n"
      "sample_byte_format -s2 01\nsample_sig_bits -i 16\nsample_coding -s" +
      std::to_string(coding.size()) + " " + coding + "\nsample_count -i " + std::to_string(promised) +
      "\nend_head\n";
  header.resize(1024, ' ');
  return header + std::string(samples);
}

}  // namespace quatrain::data
