#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/pair_gate.h"
#include "quatrain/data/text_pairs.h"

/// The readers of text pairs; text_pairs.cpp lists them under their names, with their files.
namespace quatrain::data {

/// A dataset that is being read.
struct TextPairReading {
  TextPairSplits& splits;
  std::shared_ptr<BadExamples> bad;
  bool skip_bad;
  BadPairRule rule(const std::string& set) const { return {bad, set, skip_bad, splits.tokenizer}; }
};

/// Where the parts of a pair stand in a line of columns between tabs.
struct PairColumns {
  std::vector<std::string> names;  ///< of all columns, for messages
  size_t first, second, label;
  /// What the label's column may be called in the first line; empty: the first line is a pair.
  std::vector<std::string> header = {};
  bool may_lack_header = false;  ///< else a first line without it is an error
  bool blank_lines = false;      ///< blank lines mean nothing
};

/// Labels as a file writes them, with their numbers.
using WrittenLabels = std::vector<std::pair<std::string, int64_t>>;

/// Hands over each pair of a file with its line's columns and its place. A number below 0 is a label that
/// says there is none: such pairs are left out and counted. Without labels any is good, and has the number 0.
void for_each_pair(
    const std::filesystem::path& file, const PairColumns& format, const WrittenLabels& labels,
    const BadPairRule& rule,
    const std::function<void(TextPair, const std::vector<std::string_view>&, const std::string&)>& take);

/// An error where the file has no pair left.
void require_pairs(const std::vector<TextPair>& pairs, const std::filesystem::path& file);

/// Both texts, the same in either order.
std::string unordered(const TextPair& pair);

/// A pair with what tells which set it may be in, and where it was read.
struct KeyedPair {
  TextPair pair;
  std::string key;  ///< pairs with equal keys are in one set
  std::string place;
};

/// Takes a part out of the pairs, about so many, the same ones each time.
std::vector<KeyedPair> take_out(std::vector<KeyedPair>& pairs, int64_t count);

/// Without their keys.
std::vector<TextPair> pairs_of(std::vector<KeyedPair> keyed);

using TextPairFiles = std::vector<std::filesystem::path>;
void read_snli(const TextPairFiles& files, const TextPairReading& reading);
void read_sick(const TextPairFiles& files, const TextPairReading& reading);
void read_wikiqa(const TextPairFiles& files, const TextPairReading& reading);
void read_trecqa(const TextPairFiles& files, const TextPairReading& reading);
void read_msrp(const TextPairFiles& files, const TextPairReading& reading);
void read_twitter_url(const TextPairFiles& files, const TextPairReading& reading);
/// SET.tsv of each set that is wanted; `splits` has the labels where they are known.
void read_text_pair_tsv(const TextPairFiles& files, const TextPairReading& reading);

}  // namespace quatrain::data
