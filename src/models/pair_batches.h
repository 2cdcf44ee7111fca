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

/// The texts of these numbers, with `mark` behind those that are shorter than the longest or than `shortest`.
Padded pad(const std::vector<Tokens>& texts, const std::vector<size_t>& which, int64_t mark, int64_t shortest,
           at::Device device);

/// Throws where the models, the sources or the options cannot be used; `name` is that of the caller.
void check_pairs(const char* name, const Ensemble& ensemble, const std::vector<Tokens>& sources,
                 const TranslationOptions& options);

/// `work` for each batch of texts of about equal length, longest first, so that the first needs the most
/// memory: one batch after the other, or (`exact`) one for each thread. `lengths`: of each text.
void for_each_batch(const std::vector<size_t>& lengths, const TranslationOptions& options,
                    const std::function<void(const std::vector<size_t>&)>& work,
                    const std::function<void()>& after_batch = {});

}  // namespace quatrain::models
