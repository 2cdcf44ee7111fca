#include "quatrain/data/audio.h"

#include <c10/util/Exception.h>

#include "fuzz/support.h"

/// An audio file, read in pieces: a FLAC file of silence may become any length.
QUATRAIN_FUZZ_TARGET(audio)(const uint8_t* data, size_t size) {
  using namespace quatrain;
  static const fuzz::Folder folder;
  const auto file = folder.write("audio", fuzz::text_of(data, size));
  // libFLAC sets aside what two blocks of metadata say that they need, of at most 2^24 bytes each, before it
  // finds that the file ends.
  constexpr size_t kMetadata = 40 << 20, kFactor = 100;
  fuzz::read_or_refuse<c10::Error>(size + kMetadata / kFactor, kFactor, [&] {
    data::AudioFile audio(file);
    while (audio.read(256).size(1) > 0) {
    }
  });
  return 0;
}
