#include "quatrain/data/vocabulary.h"

#include <c10/util/Exception.h>

#include "fuzz/support.h"

/// A vocabulary, a word a line.
QUATRAIN_FUZZ_TARGET(vocabulary)(const uint8_t* data, size_t size) {
  using namespace quatrain;
  static const fuzz::Folder folder;
  const auto file = folder.write("vocabulary.txt", fuzz::text_of(data, size));
  fuzz::read_or_refuse<c10::Error>(size, 100, [&] {
    const auto words = data::Vocabulary::load(file);
    words.save(folder.path() / "again.txt");
    const auto again = data::Vocabulary::load(folder.path() / "again.txt");
    if (again.size() != words.size()) throw fuzz::Finding("the vocabulary that was saved has another size");
    for (int64_t i = 0; i < words.size(); ++i)
      if (again.id(words.word(i)) != i) throw fuzz::Finding("the vocabulary that was saved has other words");
  });
  return 0;
}
