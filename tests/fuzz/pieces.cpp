#include "quatrain/data/pieces.h"

#include <c10/util/Exception.h>
#include <zlib.h>

#include <array>
#include <cstdio>
#include <string>

#include "fuzz/support.h"

namespace {

/// What a file of these bytes begins with where it is whole.
std::string title_of(const char* kind, std::string_view content) {
  const auto sum = crc32_z(0, reinterpret_cast<const unsigned char*>(content.data()), content.size());
  std::array<char, 120> line{};
  std::snprintf(line.data(), line.size(), "quatrain pieces 1 %s %zu %08lx\n", kind, content.size(),
                static_cast<unsigned long>(sum));
  return line.data();
}

}  // namespace

/// A file of pieces. The first byte chooses: c characters, w words, b basic_english, with a first line that
/// fits what follows; everything else is the file as it stands. Models of SentencePiece are not tried: their
/// checksum finds accidents, and their parser is not ours.
QUATRAIN_FUZZ_TARGET(pieces)(const uint8_t* data, size_t size) {
  using namespace quatrain;
  static const fuzz::Folder folder;
  if (size == 0) return 0;
  const auto content = fuzz::text_of(data + 1, size - 1);
  const char* kind = data[0] == 'c'   ? "characters"
                     : data[0] == 'w' ? "words"
                     : data[0] == 'b' ? "basic_english"
                                      : nullptr;
  const auto file =
      folder.write("pieces", kind ? title_of(kind, content) + std::string(content) : std::string(content));
  fuzz::read_or_refuse<c10::Error>(size, 400, [&] {
    const auto pieces = data::Pieces::load(file);
    pieces.save(folder.path() / "again");
    if (!(data::Pieces::load(folder.path() / "again") == pieces))
      throw fuzz::Finding("the pieces that were saved are others");
    for (int64_t id = 4; id < pieces.size(); ++id)
      if (pieces.encode(pieces.piece(id)) != std::vector<int32_t>{static_cast<int32_t>(id)})
        throw fuzz::Finding("piece " + std::to_string(id) + " becomes something else");
  });
  return 0;
}
