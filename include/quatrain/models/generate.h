#pragma once

#include <cstdint>
#include <vector>

#include "quatrain/models/language_model.h"

namespace quatrain::models {

/// How a token is drawn from its scores.
struct QUATRAIN_API SamplingOptions {
  double temperature = 1;  ///< scores are divided by it; 0: the best token, always
  int64_t top_k = 0;       ///< of the so many best tokens alone; 0: of all
  /// Of the fewest best tokens whose probabilities together are at least this alone, after top_k; 1: of all.
  double top_p = 1;
};

/// The token that `draw`, in [0, 1), chooses by its scores (logits). Minus infinity: never. Equal scores are
/// ordered by token. A score that is not a number, or none that is above minus infinity: -1.
QUATRAIN_API int64_t sample(const std::vector<double>& scores, const SamplingOptions& options, double draw);

/// How a text goes on.
struct QUATRAIN_API GenerationOptions {
  SamplingOptions sampling = {};
  int64_t tokens = 100;  ///< most tokens of a continuation
  /// Most tokens that the model sees. A prompt's last ones count. Where a text gets longer, it is read anew
  /// from its last `context / 2` tokens on, until these are `context` again.
  int64_t context = 35;
  int64_t end = 3;                   ///< the token that ends a continuation, which is not part of it
  std::vector<int64_t> never{0, 2};  ///< tokens that are not chosen
};

/// What follows a prompt.
struct QUATRAIN_API Continuation {
  std::vector<int64_t> tokens;
  bool finite = true;  ///< false: the model's scores were not, and so it ends there
};

/// Continues prompts of at least one token. A continuation is a function of its prompt and of its number
/// among `seeds` alone, bit for bit, whatever the others and however many the threads. The model must be in
/// eval mode.
QUATRAIN_API std::vector<Continuation> generate(LanguageModel model,
                                                const std::vector<std::vector<int64_t>>& prompts,
                                                const std::vector<uint64_t>& seeds,
                                                const GenerationOptions& options = {});

}  // namespace quatrain::models
