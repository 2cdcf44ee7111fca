#include <c10/util/Exception.h>

#include <cmath>

#include "fuzz/support.h"
#include "quatrain/data/back_off_model.h"

/// A back-off language model in ARPA's format, and the scores that it gives.
QUATRAIN_FUZZ_TARGET(arpa)(const uint8_t* data, size_t size) {
  using namespace quatrain;
  static const fuzz::Folder folder;
  const auto file = folder.write("model.arpa", fuzz::text_of(data, size));
  constexpr size_t kFactor = 16384;  // gzip's thousand, and a node for each line
  fuzz::read_or_refuse<c10::Error>(size, kFactor, [&] {
    const data::BackOffModel model(file);
    auto state = model.start();
    for (int64_t word = 0; word < model.words(); ++word) {
      if (std::isnan(model.advance(state, word))) throw fuzz::Finding("the score of a word is no number");
      if (std::isnan(model.end(state))) throw fuzz::Finding("the score of an end is no number");
      model.advance(state, model.word("the"));
    }
  });
  return 0;
}
