#pragma once

#include <functional>
#include <vector>

#include "quatrain/models/translate.h"

/// Sources, and targets where there are some, batch by batch.
namespace quatrain::models {

using Tokens = std::vector<int64_t>;

/// Texts beside each other.
struct Padded {
  at::Tensor tokens, padding;  ///< (texts, length); padding: undefined where there is none
};

/// How many places a text takes in a batch. Sums over keys depend on how many there are, hidden ones among
/// them. So where answers are to be exact, the places follow from the text's length alone, and a batch is of
/// texts of as many places.
class Places {
 public:
  Places(const Ensemble& ensemble, const TranslationOptions& options);
  bool exact() const { return exact_; }
  /// For a text of so many tokens, alone: a multiple of kExactRows, or all that learned positions reach.
  int64_t operator()(size_t tokens) const;

 private:
  bool exact_;
  int64_t most_;
};

/// The texts of these numbers, with `mark` behind those that are shorter.
Padded pad(const std::vector<Tokens>& texts, const std::vector<size_t>& which, int64_t mark,
           const Places& places, at::Device device);

/// Throws where the models, the sources or the options cannot be used; `name` is that of the caller.
void check_pairs(const char* name, const Ensemble& ensemble, const std::vector<Tokens>& sources,
                 const TranslationOptions& options);

/// The tokens of a source and of the target that is given for it, where one is.
struct PairSize {
  size_t source = 0, target = 0;
};

/// `work` for each batch of texts of about equal length, longest first, so that the first needs the most
/// memory: one batch after the other, or (`exact`) one for each thread.
void for_each_batch(const std::vector<PairSize>& sizes, const Places& places,
                    const TranslationOptions& options,
                    const std::function<void(const std::vector<size_t>&)>& work,
                    const std::function<void()>& after_batch = {});

}  // namespace quatrain::models
