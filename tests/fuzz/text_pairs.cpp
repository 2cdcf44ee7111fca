#include <c10/util/Exception.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "fuzz/support.h"
#include "quatrain/data/text_pairs.h"

namespace {

struct PairReader {
  char first;  // the input's first byte
  const char* reader;
  std::vector<const char*> files;
};

const std::vector<PairReader> kPairReaders{
    {'n',
     "snli",
     {"snli_dev.tsv", "snli_test.tsv", "snli_train_1024.tsv", "cad/all_combined/train.tsv",
      "cad/all_combined/dev.tsv"}},
    {'s', "sick", {"SICK_train.txt", "SICK_trial.txt", "SICK_test_annotated.txt"}},
    {'w',
     "wikiqa",
     {"train/a.toks", "train/b.toks", "train/sim.txt", "train/id.txt", "dev/a.toks", "dev/b.toks",
      "dev/sim.txt", "dev/id.txt", "test/a.toks", "test/b.toks", "test/sim.txt", "test/id.txt"}},
    {'q',
     "trecqa",
     {"train/a.toks", "train/b.toks", "train/sim.txt", "train/id.txt", "clean-dev/a.toks", "clean-dev/b.toks",
      "clean-dev/sim.txt", "clean-dev/id.txt", "clean-test/a.toks", "clean-test/b.toks", "clean-test/sim.txt",
      "clean-test/id.txt"}},
    {'m', "msrp", {"msr-para-train.tsv", "msr-para-val.tsv", "msr-para-test.tsv"}},
    {'u', "twitter_url", {"Twitter_URL_Corpus_test.txt"}},
    {'t', "tsv", {"train.tsv", "dev.tsv", "test.tsv"}},
};

void check_pairs(const quatrain::data::TextPairSplits& splits) {
  using quatrain::fuzz::Finding;
  for (const auto* set : {&splits.train, &splits.dev, &splits.test}) {
    if (set->empty()) throw Finding("a set has no pair");
    for (const auto& pair : *set) {
      for (const auto* side : {&pair.first, &pair.second})
        if (!quatrain::data::word_problem(*side, splits.tokenizer).empty())
          throw Finding("a side of a pair has no word");
      if (pair.label < 0 || pair.label >= static_cast<int64_t>(splits.labels.size()))
        throw Finding("a label has no name");
      if (splits.ranked && (pair.group < 0 || pair.question.empty() || pair.document.empty()))
        throw Finding("an answer has no name");
    }
  }
}

}  // namespace

/// The readers of pairs of texts: the first byte chooses one, in upper case one that skips bad pairs. A line
/// `--` ends each of its files but the last. Compressed files are the target pairs'.
QUATRAIN_FUZZ_TARGET(text_pairs)(const uint8_t* data, size_t size) {
  using namespace quatrain;
  static const fuzz::Folder folder;
  if (size == 0) return 0;
  const char first = static_cast<char>(data[0] | 0x20);
  const auto target =
      std::find_if(kPairReaders.begin(), kPairReaders.end(), [&](const auto& t) { return t.first == first; });
  if (target == kPairReaders.end()) return 0;
  auto text = fuzz::text_of(data + 1, size - 1);
  data::TextPairSource source;
  source.reader = target->reader;
  source.folder = folder.path() / "text_pairs";  // other targets' files have the same names
  source.skip_bad = data[0] != static_cast<uint8_t>(first);
  constexpr std::string_view kCompressed = "\x1f\x8b";
  for (const std::string file : target->files) {
    const auto content = file == target->files.back() ? text : fuzz::next_file(text);
    if (content.starts_with(kCompressed)) return 0;
    std::filesystem::create_directories((source.folder / file).parent_path());
    folder.write("text_pairs/" + file, content);
  }
  fuzz::read_or_refuse<c10::Error>(size, 1000, [&] { check_pairs(data::load_text_pairs(source)); });
  return 0;
}
