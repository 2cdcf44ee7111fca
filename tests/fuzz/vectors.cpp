#include "quatrain/data/vectors.h"

#include <c10/util/Exception.h>

#include "fuzz/support.h"

/// Word vectors. The first byte `b`: bfloat16, whose list of words goes up to the first NUL byte; any other:
/// text.
QUATRAIN_FUZZ_TARGET(vectors)(const uint8_t* data, size_t size) {
  using namespace quatrain;
  static const fuzz::Folder folder;
  static const data::Vocabulary vocabulary({"the", "a", "film", "good", "b\xC3\xA9", "1"});
  if (size == 0) return 0;
  auto text = fuzz::text_of(data + 1, size - 1);
  auto file = folder.path() / "vectors.bf16";
  if (data[0] == 'b') {
    const size_t end = text.find('\0');
    folder.write("vectors.vocab", text.substr(0, end));
    folder.write("vectors.bf16", end == text.npos ? "" : text.substr(end + 1));
  } else {
    file = folder.write("vectors.txt", text);
  }
  fuzz::read_or_refuse<c10::Error>(size, 100, [&] { data::load_vectors(file, vocabulary); });
  return 0;
}
