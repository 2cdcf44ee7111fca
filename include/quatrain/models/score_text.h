#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "quatrain/models/language_model.h"

namespace quatrain::models {

/// How a text is cut, so that a model reads it.
struct QUATRAIN_API WindowOptions {
  int64_t window = 35;  ///< most tokens that are seen at once
  /// How far each window lies behind the one before, at most `window`; 0: as far as it is long, so that none
  /// overlap. A token is scored in the first window that it follows in; those before have `window - stride`
  /// tokens of context or more, but at the text's beginning.
  int64_t stride = 0;
};

/// The sum of the log-probabilities of a text's tokens, each but the first once.
struct QUATRAIN_API TextScore {
  double log_probability = 0;
  int64_t tokens = 0;
};

/// Scores a text. The model must be in eval mode. `after_batch`, where given, is called now and then.
QUATRAIN_API TextScore score_text(LanguageModel model, std::span<const int32_t> text,
                                  const WindowOptions& options = {},
                                  const std::function<void()>& after_batch = {});

/// The scores of several texts. Each is a function of its text alone, bit for bit, however many there are and
/// however many the threads, which share the texts out.
QUATRAIN_API std::vector<TextScore> score_texts(LanguageModel model,
                                                const std::vector<std::vector<int32_t>>& texts,
                                                const WindowOptions& options = {});

}  // namespace quatrain::models
