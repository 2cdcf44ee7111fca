#include <c10/util/Exception.h>

#include <string>

#include "fuzz/support.h"
#include "quatrain/data/line_pair_source.h"
#include "quatrain/data/text_source.h"

/// The readers of pairs and of text. The first byte chooses: p parallel files, t columns, x lines of text,
/// and the same in upper case for readers that skip bad pairs. A line `--` ends the first of two files. Bytes
/// that gzip would write are decompressed.
QUATRAIN_FUZZ_TARGET(pairs)(const uint8_t* data, size_t size) {
  using namespace quatrain;
  static const fuzz::Folder folder;
  if (size == 0) return 0;
  auto text = fuzz::text_of(data + 1, size - 1);
  constexpr size_t kFactor = 4096;  // a few bytes of gzip's may be the longest line that there can be
  const char kind = static_cast<char>(data[0] | 0x20);
  if (kind == 'x') {
    folder.write("train.txt", text);
    fuzz::read_or_refuse<c10::Error>(size, kFactor, [&] {
      const auto reader = data::open_text({"text", folder.path()})->open("train");
      for (std::string line; reader->next(line);)
        if (line.find('\n') != line.npos) throw fuzz::Finding("a line has a line break");
    });
    return 0;
  }
  if (kind != 'p' && kind != 't') return 0;
  data::LinePairSource source;
  source.folder = folder.path();
  source.reader = kind == 'p' ? "parallel" : "tsv";
  source.skip_bad = data[0] != static_cast<uint8_t>(kind);
  if (kind == 'p') {
    source.source = "a";
    source.target = "b";
    folder.write("train.a", fuzz::next_file(text));
    folder.write("train.b", text);
  } else {
    folder.write("train.tsv", text);
  }
  fuzz::read_or_refuse<c10::Error>(size, kFactor, [&] {
    const auto reader = data::open_line_pairs(source)->open("train");
    for (data::LinePair pair; reader->next(pair);)
      if (pair.source.empty() || pair.target.empty()) throw fuzz::Finding("a side of a pair is empty");
  });
  return 0;
}
