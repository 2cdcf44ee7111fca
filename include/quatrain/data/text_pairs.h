#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "quatrain/api.h"
#include "quatrain/data/bad_examples.h"
#include "quatrain/data/dataset.h"
#include "quatrain/data/entailment.h"
#include "quatrain/data/tokenizer.h"

/// Pairs of texts with a label: does the one entail, paraphrase or answer the other?
namespace quatrain::data {

/// Two texts and what the second is to the first.
struct QUATRAIN_API TextPair {
  std::string first, second;
  int64_t label = 0;
  int64_t group = -1;  ///< the question, where answers are ranked; else the part of the set, or -1
  std::string question = {}, document = {};  ///< names of question and answer; empty where nothing is ranked
};

/// A dataset of text pairs. The dev set selects; the test set is scored once.
struct QUATRAIN_API TextPairSplits {
  std::vector<TextPair> train, dev, test;
  std::vector<std::string> labels;  ///< the label's name by its number
  std::string group_name;           ///< what `group` counts ("part"); empty where it means nothing
  std::vector<std::string> groups;  ///< the parts' names by their numbers; questions have none
  /// The first texts are questions, the second ones candidate answers, which are ranked: label 1 is a right
  /// answer, and pairs of one `group` have the same question.
  bool ranked = false;
  Tokenizer tokenizer = Tokenizer::simple;
  BadExamples bad;  ///< what was left out
};

/// Where text pairs come from.
struct QUATRAIN_API TextPairSource {
  std::string reader = "entailment";   ///< a name among text_pair_readers()
  std::filesystem::path folder;        ///< where the files lie; not used by generated ones
  std::optional<Tokenizer> tokenizer;  ///< instead of the reader's own
  bool skip_bad = false;               ///< false: the first bad pair is an error; true: left out, counted
  std::string only = "";               ///< of "tsv": the one set that is read; empty: train, dev and test
  /// Of "tsv": what labels there may be, by their numbers; empty: those of the training set, or of `only`.
  std::vector<std::string> labels = {};
  EntailmentOptions entailment;  ///< of "entailment" alone
};

/// entailment, snli, sick, wikiqa, trecqa, msrp, twitter_url, tsv.
QUATRAIN_API const std::vector<Reader>& text_pair_readers();

/// Whether a reader's pairs are questions with candidate answers, which are ranked.
QUATRAIN_API bool reads_ranked(const std::string& reader);

/// Reads or generates a dataset. Errors are one sentence with file and line (c10::Error): files that are
/// missing or have different numbers of lines, and, unless skip_bad says so, a side without a word, another
/// number of columns, an unknown label, a relevance other than 0 and 1, text that is not UTF-8.
QUATRAIN_API TextPairSplits load_text_pairs(const TextPairSource& source);

/// The files that load_text_pairs() reads; none where the set is generated.
QUATRAIN_API std::vector<std::filesystem::path> text_pair_files(const TextPairSource& source);

}  // namespace quatrain::data
