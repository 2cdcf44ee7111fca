// The C++ side of test_features.py: the features of each audio file as float32 in FILE.f32, row after row.
#include <torch/types.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <string_view>

#include "quatrain/data/audio.h"
#include "quatrain/data/derivatives.h"
#include "quatrain/data/filter_bank.h"

namespace data = quatrain::data;

int main(int count, char** arguments) try {
  if (count < 9) {
    std::puts(
        "usage: quatrain_write_features WINDOW SNIP_EDGES BANDS LOW HIGH PREEMPHASIS REMOVE_DC_OFFSET "
        "FILE.wav ...");
    return 2;
  }
  data::FilterBankOptions options;
  options.window = data::parse_window_shape(arguments[1]);
  options.snip_edges = arguments[2] == std::string_view("1");
  options.bands = std::atoi(arguments[3]);
  options.low = std::atof(arguments[4]);
  options.high = std::atof(arguments[5]);
  options.preemphasis = std::atof(arguments[6]);
  options.remove_dc_offset = arguments[7] == std::string_view("1");
  for (int i = 8; i < count; ++i) {
    const auto audio = data::read_audio(arguments[i]);
    options.rate = audio.rate;
    const auto features = data::Derivatives()(data::FilterBank(options)(audio.samples[0]));
    std::ofstream(std::string(arguments[i]) + ".f32", std::ios::binary)
        .write(static_cast<const char*>(features.data_ptr()),
               static_cast<std::streamsize>(features.nbytes()));
  }
} catch (const std::exception& error) {
  std::puts(error.what());
  return 1;
}
