#include <c10/util/Exception.h>

#include <algorithm>
#include <vector>

#include "fuzz/support.h"
#include "quatrain/data/dataset.h"

namespace {

struct Reader {
  char first;  // the input's first byte
  const char* reader;
  std::vector<const char*> files;
};

const std::vector<Reader> kReaders{
    {'2', "sst", {"stsa.binary.train", "stsa.binary.dev", "stsa.binary.test"}},
    {'5', "sst5", {"stsa.fine.train", "stsa.fine.dev", "stsa.fine.test"}},
    {'i', "imdb", {"train.tsv", "test.tsv"}},
    {'s', "sva", {"subj_agr_filtered.text", "subj_agr_filtered.gold"}},
    {'t', "tsv", {"train.tsv", "dev.tsv", "test.tsv"}},
};

}  // namespace

/// The readers of data: the first byte chooses one, a line `--` ends each of its files but the last.
QUATRAIN_FUZZ_TARGET(readers)(const uint8_t* data, size_t size) {
  using namespace quatrain;
  static const fuzz::Folder folder;
  if (size == 0) return 0;
  const auto target =
      std::find_if(kReaders.begin(), kReaders.end(), [&](const auto& t) { return t.first == data[0]; });
  if (target == kReaders.end()) return 0;
  auto text = fuzz::text_of(data + 1, size - 1);
  data::Source source;
  source.reader = target->reader;
  source.folder = folder.path();
  for (const char* file : target->files)
    folder.write(file, file == target->files.back() ? text : fuzz::next_file(text));
  fuzz::read_or_refuse<c10::Error>(size, 100, [&] { data::load(source); });
  return 0;
}
