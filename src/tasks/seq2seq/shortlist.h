#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "quatrain/models/shortlist.h"

/// The shortlist of a run: which target tokens are likely for each source token, by the training set.
namespace quatrain::tasks {

/// How it is made.
struct QUATRAIN_API ShortlistRequest {
  std::string data = {};   ///< folder; empty: the run's
  int64_t best = 50;       ///< target tokens of each source token
  int64_t frequent = 100;  ///< most frequent target tokens, which every sentence has
  /// Is told what is being done.
  std::function<void(const std::string&)> tell = {};
  /// Is called now and then; what it throws ends the work, and nothing is written.
  std::function<void()> after_pairs = {};
};

/// What a shortlist is worth, on the dev set.
struct QUATRAIN_API ShortlistReport {
  int64_t pairs = 0, vocabulary = 0;    ///< of the training set; of the target
  std::vector<std::string> notes = {};  ///< on the pairs, a sentence each
  bool has_dev = false;
  double mean_size = 0;  ///< tokens of a sentence's list
  double recall = 0;     ///< share of the target tokens that are in their sentence's list
  double whole = 0;      ///< share of sentences all of whose target tokens are
};

/// Makes RUN/shortlist. A run of another kind, or whose output layer has no row for each token, is a
/// RecipeError.
QUATRAIN_API ShortlistReport make_shortlist(const std::filesystem::path& run,
                                            const ShortlistRequest& request);

/// That of a run, whose checkpoint's folder holds its pieces. A missing file, a damaged one and one of other
/// pieces are errors that name the command.
QUATRAIN_API std::shared_ptr<const models::Shortlist> read_shortlist(const std::filesystem::path& run,
                                                                     const std::filesystem::path& checkpoint,
                                                                     bool joint);

}  // namespace quatrain::tasks
