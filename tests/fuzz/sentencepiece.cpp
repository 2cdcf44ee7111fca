#include <c10/util/Exception.h>

#include "fuzz/support.h"
#include "quatrain/data/pieces.h"

/// A model of SentencePiece that others have trained. One that is taken is the same after it was stored, and
/// cuts any line into pieces that it has.
QUATRAIN_FUZZ_TARGET(sentencepiece)(const uint8_t* data, size_t size) {
  using namespace quatrain;
  static const fuzz::Folder folder;
  const auto content = fuzz::text_of(data, size);
  const auto file = folder.write("spm.model", content);
  fuzz::read_or_refuse<c10::Error>(size, 4000, [&] {
    const auto pieces = data::Pieces::load_sentencepiece(file);
    pieces.save(folder.path() / "pieces");
    if (!(data::Pieces::load(folder.path() / "pieces") == pieces))
      throw fuzz::Finding("the pieces that were saved are others");
    for (const std::string_view line : {std::string_view("a man \xEF\xAC\x81nds <unk>  DOGS"), content}) {
      const auto ids = pieces.encode(line);
      for (const int32_t id : ids)
        if (id < 0 || id >= pieces.size()) throw fuzz::Finding("a line has a piece that there is not");
      pieces.decode({ids.begin(), ids.end()});
    }
  });
  return 0;
}
