#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "data/text_pair_readers.h"

namespace quatrain::data {
namespace {

/// Joins what is connected, by number.
class Connected {
 public:
  size_t add() {
    parents_.push_back(parents_.size());
    return parents_.size() - 1;
  }
  size_t root(size_t i) {
    while (parents_[i] != i) i = parents_[i] = parents_[parents_[i]];
    return i;
  }
  void join(size_t a, size_t b) { parents_[root(a)] = root(b); }

 private:
  std::vector<size_t> parents_;
};

// A line ends in "(4,6)", tab, address: four of six people called it a paraphrase. Some lines have an empty
// column between the two. The address is the key for now.
std::vector<KeyedPair> read_tweets(const std::filesystem::path& path, const BadPairRule& rule) {
  LineFile file(path);
  PairGate gate(rule);
  std::vector<KeyedPair> all;
  for (std::string_view line; file.next(line);) {
    if (trimmed(line).empty()) continue;
    if (!gate.fits(line, file) || !gate.is_text(line, file)) continue;
    auto fields = columns(line);
    if (fields.size() == 5 && fields[3].empty()) fields.erase(fields.begin() + 3);
    if (fields.size() != 4) {
      gate.refuse(
          "a line has another number of columns",
          "a line must have 4 columns (first text, second text, votes, address) separated by tabs, got " +
              std::to_string(fields.size()) + " in " + quote(line),
          file);
      continue;
    }
    const std::string_view votes = fields[2];
    if (votes.size() != 5 || votes[0] != '(' || votes[1] < '0' || votes[1] > '6' ||
        votes.substr(2) != ",6)") {
      gate.refuse("the votes are unknown", "the votes must be from (0,6) to (6,6), got " + quote(votes),
                  file);
      continue;
    }
    if (votes[1] == '3') {
      rule.counted->add(rule.set, "people do not agree on a label", file.place());
      continue;
    }
    if (!gate.has_word(fields[0], "first text", file) || !gate.has_word(fields[1], "second text", file))
      continue;
    TextPair pair;
    pair.first = trimmed(fields[0]);
    pair.second = trimmed(fields[1]);
    pair.label = votes[1] > '3';
    all.push_back({std::move(pair), std::string(fields[3]), file.place()});
  }
  return all;
}

// Of a pair that is there more than once with different labels nothing stays. A paraphrase is one in either
// order.
void leave_out_conflicts(std::vector<KeyedPair>& all, const BadPairRule& rule) {
  std::unordered_map<std::string, int64_t> labels;  // 1 and 2 are bits: a label that the pair has
  for (const auto& one : all) labels[unordered(one.pair)] |= int64_t{1} << one.pair.label;
  std::erase_if(all, [&](const KeyedPair& one) {
    const bool conflicting = labels[unordered(one.pair)] == 3;
    if (conflicting) rule.counted->add(rule.set, "the pair has two labels", one.place);
    return conflicting;
  });
}

// Pairs that are connected by a first sentence or an address get the same key.
void connect(std::vector<KeyedPair>& all) {
  Connected connected;
  std::unordered_map<std::string, size_t> nodes;
  const auto node = [&](const std::string& name) {
    const auto [known, fresh] = nodes.emplace(name, 0);
    if (fresh) known->second = connected.add();
    return known->second;
  };
  std::vector<size_t> first;
  for (const auto& one : all) {
    first.push_back(node("text\t" + one.pair.first));
    connected.join(first.back(), node("address\t" + one.key));
  }
  for (size_t i = 0; i < all.size(); ++i) all[i].key = std::to_string(connected.root(first[i]));
}

// Takes out of a set what shares a sentence with one that selects or tests.
void leave_out_shared(std::vector<KeyedPair>& set, const std::vector<KeyedPair>& other,
                      const BadPairRule& rule) {
  std::unordered_set<std::string> texts;
  for (const auto& one : other) texts.insert({one.pair.first, one.pair.second});
  std::erase_if(set, [&](const KeyedPair& one) {
    const bool shared = texts.contains(one.pair.first) || texts.contains(one.pair.second);
    if (shared) rule.counted->add(rule.set, "a sentence is in a set that selects or tests", one.place);
    return shared;
  });
}

}  // namespace

void read_msrp(const TextPairFiles& files, const TextPairReading& reading) {
  const PairColumns format{{"Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"}, 3, 4, 0, {"quality"}};
  const WrittenLabels names{{"0", 0}, {"1", 1}};
  TextPairSplits& splits = reading.splits;
  splits.labels = {"other", "paraphrase"};
  const std::pair<const char*, std::vector<TextPair>*> sets[] = {
      {"train", &splits.train}, {"dev", &splits.dev}, {"test", &splits.test}};
  for (size_t i = 0; i < files.size(); ++i) {
    for_each_pair(
        files[i], format, names, reading.rule(sets[i].first),
        [&](TextPair pair, const auto&, const std::string&) { sets[i].second->push_back(std::move(pair)); });
    require_pairs(*sets[i].second, files[i]);
  }
}

void read_twitter_url(const TextPairFiles& files, const TextPairReading& reading) {
  TextPairSplits& splits = reading.splits;
  splits.labels = {"other", "paraphrase"};
  const BadPairRule rule = reading.rule("whole");
  std::vector<KeyedPair> tweets = read_tweets(files[0], rule);
  leave_out_conflicts(tweets, rule);
  connect(tweets);
  const auto count = static_cast<int64_t>(tweets.size());
  auto test = take_out(tweets, count / 5), dev = take_out(tweets, count / 10);
  leave_out_shared(dev, test, reading.rule("dev"));
  for (const auto* other : {&dev, &test}) leave_out_shared(tweets, *other, reading.rule("train"));
  splits.train = pairs_of(std::move(tweets));
  splits.dev = pairs_of(std::move(dev));
  splits.test = pairs_of(std::move(test));
  for (const auto* set : {&splits.train, &splits.dev, &splits.test}) require_pairs(*set, files[0]);
}

}  // namespace quatrain::data
