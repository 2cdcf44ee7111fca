#include "quatrain/data/dataset.h"

#include <charconv>
#include <cmath>
#include <stdexcept>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "data/random.h"
#include "data/readers.h"
#include "data/text_file.h"

namespace quatrain::data {
namespace {

struct Entry {
  Reader reader;
  Splits (*read)(const Source&);
};

const std::vector<Entry>& entries() {
  static const std::vector<Entry> all{
      {{"sst", "Stanford Sentiment Treebank, negative or positive (stsa.binary.train, .dev, .test)", true},
       read_sst},
      {{"sst5", "Stanford Sentiment Treebank, five classes (stsa.fine.train, .dev, .test)", true}, read_sst5},
      {{"imdb", "IMDb reviews (train.tsv, test.tsv: id, label, text); a tenth of train is dev", true},
       read_imdb},
      {{"sva", "subject-verb agreement, real sentences (subj_agr_filtered.text, .gold); split 80/10/10",
        true},
       read_sva},
      {{"tsv", "your texts (train.tsv, dev.tsv, test.tsv, or one file and shares: label, tab, text)", true},
       read_tsv},
      {{"agreement", "subject-verb agreement, generated", false, true},
       [](const Source& source) { return generate_agreement(source.agreement); }},
  };
  return all;
}

}  // namespace

const std::vector<Reader>& readers() {
  static const std::vector<Reader> all = [] {
    std::vector<Reader> list;
    for (const auto& entry : entries()) list.push_back(entry.reader);
    return list;
  }();
  return all;
}

Splits load(const Source& source) {
  std::vector<std::string> known;
  for (const auto& entry : entries()) {
    known.emplace_back(entry.reader.name);
    if (source.reader != entry.reader.name) continue;
    TORCH_CHECK(!source.shares || source.reader == "tsv",
                "data: only 'tsv' data are split by shares, the sets of '", source.reader, "' are fixed");
    Splits splits = entry.read(source);
    if (source.tokenizer) splits.tokenizer = *source.tokenizer;
    return splits;
  }
  TORCH_CHECK(false, "data: the reader must be one of ", join(known), ", got ", quote(source.reader));
}

Shares Shares::parse(std::string_view text) {
  Shares shares;
  double sum = 0;
  size_t found = 0;
  std::string_view rest = text;
  for (double* part : {&shares.train, &shares.dev, &shares.test}) {
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), *part);
    if (error != std::errc() || !(*part > 0) || !(*part <= 1e6)) break;
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    sum += *part;
    if (++found < 3 && !rest.starts_with('/')) break;
    if (found < 3) rest.remove_prefix(1);
  }
  if (found < 3 || !rest.empty())
    throw std::invalid_argument("a split is three shares such as 80/10/10, got '" +
                                shorten(std::string(text)) + "'");
  shares.train /= sum, shares.dev /= sum, shares.test /= sum;
  return shares;
}

Parts split_by_text(std::vector<Example> examples, double dev, double test) {
  // Numbers of the distinct texts, by first appearance.
  std::unordered_map<std::string_view, size_t> numbers;
  std::vector<size_t> number_of(examples.size());
  std::vector<int64_t> count;
  for (size_t i = 0; i < examples.size(); ++i) {
    const auto [entry, fresh] = numbers.emplace(examples[i].text, numbers.size());
    if (fresh) count.push_back(0);
    ++count[entry->second];
    number_of[i] = entry->second;
  }

  constexpr uint64_t kSplitSeed = 1;  // never changes: results on these sets are compared over years
  std::vector<size_t> order(count.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  Random(kSplitSeed).shuffle(order);

  const auto total = static_cast<double>(examples.size());
  const int64_t dev_end = std::llround(total * dev), test_end = std::llround(total * (dev + test));
  enum Part { kTrain, kDev, kTest };
  std::vector<Part> part(count.size());
  int64_t taken = 0;
  for (const size_t text : order) {
    part[text] = taken < dev_end ? kDev : taken < test_end ? kTest : kTrain;
    taken += count[text];
  }

  Parts parts;
  std::vector<Example>* const to[] = {&parts.train, &parts.dev, &parts.test};
  for (size_t i = 0; i < examples.size(); ++i) to[part[number_of[i]]]->push_back(std::move(examples[i]));
  return parts;
}

}  // namespace quatrain::data
