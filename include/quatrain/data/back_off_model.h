#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "quatrain/api.h"

namespace quatrain::data {

/// An n-gram model with back-off weights, read from an ARPA file: the probability of a word is that of the
/// longest n-gram in the file that ends with it, times the back-off weights of the longer histories (Katz
/// 1987). The file holds base-10 logarithms; what is returned here are natural ones.
///
/// N-grams of one history lie together, sorted by their last word: 12 bytes for each of the highest order,
/// 20 for the others.
class QUATRAIN_API BackOffModel {
 public:
  /// The longest end of a text that n-grams of the model begin with, as a number. Equal states score every
  /// continuation alike, whatever the texts before them were.
  using State = int64_t;

  /// Reads a file of any order, plain or compressed by gzip. Text before \data\ is skipped. Errors name the
  /// file and the line: counts that disagree with \data\, a section that is missing, a word that is no
  /// unigram, an n-gram whose history is not in the file or has no back-off weight there, an n-gram that
  /// comes twice, a number that is none, a log-probability above 0, no \end\, no unigram <s> or </s>.
  explicit BackOffModel(const std::filesystem::path& file);

  int64_t order() const { return order_; }
  int64_t words() const { return static_cast<int64_t>(names_.size()); }  ///< unigrams, the marks included
  int64_t ngrams() const { return static_cast<int64_t>(words_.size()) - 1; }  ///< of all orders

  /// The number of a word, from 0 to words() - 1; of an unknown one that of <unk>, or -1 where the model has
  /// no <unk>.
  int64_t word(std::string_view name) const;
  /// The word of a number; another number is an error.
  const std::string& name(int64_t word) const;

  State start() const { return start_; }  ///< behind <s>
  /// log p(word | state); the state is then the one behind the word. A word that is not from 0 to
  /// words() - 1 is an error.
  double advance(State& state, int64_t word) const;
  /// log p(</s> | state).
  double end(State state) const;

 private:
  friend class BackOffModelReader;

  int32_t find(int32_t history, int32_t word) const;

  // N-grams are nodes of a tree whose root, node 0, is the empty history; the children of a node are the
  // n-grams that are one word longer. Nodes of one order follow those of the order before.
  std::vector<int32_t> words_;     // the last word
  std::vector<float> log10_;       // the probability
  std::vector<int32_t> suffixes_;  // the longest proper end that is a node
  // Of all but the highest order.
  std::vector<float> back_off_;
  std::vector<int32_t> first_child_;  // the children of node i end where those of i + 1 begin

  std::vector<std::string> names_;
  std::unordered_map<std::string, int32_t> numbers_;
  int64_t order_ = 0;
  int32_t start_ = 0, end_word_ = 0, unknown_ = -1;
};

}  // namespace quatrain::data
