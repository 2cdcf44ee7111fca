#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "quatrain/models/beam_search.h"
#include "quatrain/models/shortlist.h"

namespace quatrain::models {

/// The target tokens that each sentence of a batch may have. A search knows a sentence's own by their places
/// in its list, so that what it adds and compares does not depend on the other sentences of the batch.
class TokenLists {
 public:
  using Tokens = std::vector<int64_t>;

  /// `search`: its marks are the first tokens of every list.
  TokenLists(const Shortlist& shortlist, const SearchOptions& search, at::Device device);

  /// One more sentence, whose list has the tokens of the prefix too.
  void add(const Tokens& source, const Tokens& prefix);
  /// To be called once, after the last add().
  void finish();

  /// The tokens of all lists, ascending, int64.
  const at::Tensor& all() const { return all_; }

  /// The search with the places of its marks, and without its banned sequences: they differ by sentence.
  SearchOptions search() const;
  /// The banned sequences that a sentence could have.
  std::vector<Tokens> banned(size_t sentence) const;
  /// The place of a token in a sentence's list, or -1.
  int64_t place(size_t sentence, int64_t token) const;
  int64_t token(size_t sentence, int64_t place) const;
  Tokens places(size_t sentence, const Tokens& tokens) const;
  Tokens tokens(size_t sentence, const Tokens& places) const;

  /// Of scores of all(), (rows, all), those of the lists of the rows' sentences (rows) int64: (rows, longest
  /// list and some more), minus infinity behind the ends of shorter ones.
  at::Tensor own(const at::Tensor& scores, const at::Tensor& sentences) const;
  /// Makes what stands behind the ends minus infinity.
  void hide(at::Tensor& own, const at::Tensor& sentences) const;

 private:
  const Shortlist& shortlist_;
  const SearchOptions& search_;
  at::Device device_;
  Tokens marks_;               // each once
  std::vector<Tokens> lists_;  // the marks, then the others ascending
  at::Tensor all_, columns_,
      hidden_;  // columns_, hidden_ (sentences, width): places in all(); behind the end
};

}  // namespace quatrain::models
