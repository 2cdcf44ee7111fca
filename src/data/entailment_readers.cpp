#include <algorithm>
#include <iterator>
#include <set>
#include <unordered_set>

#include "data/split_files.h"
#include "data/text_pair_readers.h"

namespace quatrain::data {
namespace {

const WrittenLabels kSnliLabels{{"entailment", 0}, {"neutral", 1}, {"contradiction", 2}, {"-", -1}};

using Images = std::unordered_set<std::string>;

// The key is the photograph that a pair describes, the beginning of the caption's name:
// "4705552913.jpg#2r1n". Pairs of photographs that must not be there are left out.
std::vector<KeyedPair> read_described(const std::filesystem::path& file, const BadPairRule& rule,
                                      const Images& without) {
  constexpr size_t kCaption = 3;
  const PairColumns format{{"label", "first text", "second text", "caption", "labels"}, 1, 2, 0};
  std::vector<KeyedPair> all;
  for_each_pair(file, format, kSnliLabels, rule,
                [&](TextPair pair, const auto& fields, const std::string& place) {
                  std::string image(fields[kCaption].substr(0, fields[kCaption].find('#')));
                  if (without.contains(image))
                    rule.counted->add(rule.set, "their photograph is in a set that selects or tests", place);
                  else
                    all.push_back({std::move(pair), std::move(image), place});
                });
  return all;
}

std::vector<KeyedPair> read_counterfactual(const std::filesystem::path& file, const BadPairRule& rule) {
  const PairColumns format{{"sentence1", "sentence2", "gold_label"}, 0, 1, 2, {"gold_label"}};
  std::vector<KeyedPair> pairs;
  for_each_pair(file, format, kSnliLabels, rule, [&](TextPair pair, const auto&, const std::string& place) {
    pairs.push_back({std::move(pair), "", place});
  });
  return pairs;
}

void add_images(const std::vector<KeyedPair>& pairs, Images& images) {
  for (const auto& one : pairs) images.insert(one.key);
}

}  // namespace

void read_snli(const TextPairFiles& files, const TextPairReading& reading) {
  constexpr int64_t kDev = 1000;
  TextPairSplits& splits = reading.splits;
  splits.labels = {"entailment", "neutral", "contradiction"};
  Images images;
  std::vector<KeyedPair> test = read_described(files[1], reading.rule("test"), {});
  add_images(test, images);
  std::vector<KeyedPair> train = read_described(files[0], reading.rule("train and dev"), images);
  std::vector<KeyedPair> dev = take_out(train, kDev);
  add_images(dev, images);
  for (auto more : {read_described(files[2], reading.rule("train"), images),
                    read_counterfactual(files[3], reading.rule("train"))})
    std::move(more.begin(), more.end(), std::back_inserter(train));
  // A premise of the dev set, or of the counterfactual dev set, is no premise of the training set.
  std::unordered_set<std::string> premises;
  for (const auto& one : dev) premises.insert(one.pair.first);
  for (const auto& one : read_counterfactual(files[4], reading.rule("counterfactual dev")))
    premises.insert(one.pair.first);
  std::erase_if(train, [&](const KeyedPair& one) {
    const bool held_out = premises.contains(one.pair.first);
    if (held_out) reading.bad->add("train", "their premise is in a dev set too", one.place);
    return held_out;
  });
  splits.train = pairs_of(std::move(train));
  splits.dev = pairs_of(std::move(dev));
  splits.test = pairs_of(std::move(test));
  for (const auto* set : {&splits.train, &splits.dev}) require_pairs(*set, files[0]);
  require_pairs(splits.test, files[1]);
}

void read_sick(const TextPairFiles& files, const TextPairReading& reading) {
  const WrittenLabels names{{"ENTAILMENT", 0}, {"NEUTRAL", 1}, {"CONTRADICTION", 2}};
  const PairColumns format{
      {"pair_ID", "sentence_A", "sentence_B", "relatedness_score", "entailment_judgment"},
      1,
      2,
      4,
      {"entailment_judgment"}};
  TextPairSplits& splits = reading.splits;
  splits.labels = {"entailment", "neutral", "contradiction"};
  std::unordered_set<std::string> seen;
  const auto read = [&](size_t file, const char* set, std::vector<TextPair>& to, bool unseen) {
    const BadPairRule rule = reading.rule(set);
    for_each_pair(files[file], format, names, rule,
                  [&](TextPair pair, const auto&, const std::string& place) {
                    if (unseen && seen.contains(unordered(pair)))
                      rule.counted->add(set, "the pair is in the test set too", place);
                    else
                      to.push_back(std::move(pair));
                  });
    require_pairs(to, files[file]);
  };
  read(2, "test", splits.test, false);
  for (const auto& pair : splits.test) seen.insert(unordered(pair));
  read(0, "train", splits.train, true);
  read(1, "dev", splits.dev, false);
}

void read_text_pair_tsv(const TextPairFiles& files, const TextPairReading& reading) {
  const PairColumns format{.names = {"label", "first text", "second text"},
                           .first = 1,
                           .second = 2,
                           .label = 0,
                           .header = kLabelNames,
                           .may_lack_header = true,
                           .blank_lines = true};
  if (std::ranges::any_of(files, [](const auto& file) { return file.stem() == "dev"; }))
    find_split_file(files[0].parent_path(), kDevStems, "tsv");  // a second dev set would not be read
  TextPairSplits& splits = reading.splits;
  for (const auto& file : files) {
    const std::string set = file.stem().string();
    auto& pairs = set == "train" ? splits.train : set == "dev" ? splits.dev : splits.test;
    WrittenLabels names;
    for (const auto& label : splits.labels) names.emplace_back(label, std::ssize(names));
    std::vector<std::string> written;  // the label of each pair, while none is known
    for_each_pair(file, format, names, reading.rule(set),
                  [&](TextPair pair, const auto& fields, const std::string&) {
                    pairs.push_back(std::move(pair));
                    if (names.empty()) written.emplace_back(fields[format.label]);
                  });
    require_pairs(pairs, file);
    if (!names.empty()) continue;
    // In the order of their bytes.
    const std::set<std::string> known(written.begin(), written.end());
    TORCH_CHECK(known.size() >= 2, "data: ", file.string(),
                " must have at least 2 different labels, got only ", quote(*known.begin()),
                "; the first column is the label");
    splits.labels.assign(known.begin(), known.end());
    for (size_t i = 0; i < written.size(); ++i)
      pairs[i].label = std::distance(known.begin(), known.find(written[i]));
  }
}

}  // namespace quatrain::data
