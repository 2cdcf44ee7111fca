#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "quatrain/models/recognition.h"

namespace quatrain::models {

/// Log-probabilities (T, C) of frames as float64 in rows. An error, which names the function, where they have
/// another shape or type, or are not the logarithms of probabilities.
at::Tensor check_frames(const char* function, const at::Tensor& log_probabilities);

/// Tokens in a list whose beginning other lists may share; it is freed with the last that needs it. The
/// confidence is a sum over the frames.
struct Link {
  Link(RecognisedToken token, std::shared_ptr<Link> before);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  RecognisedToken token;
  std::shared_ptr<Link> before;
};

/// The best way to explain the frames so far, in one state: its score, its last token and those before it.
struct Path {
  double score = 0;
  RecognisedToken last = {-1, 0, 0, 0};  ///< -1: no token yet; the confidence is a sum
  std::shared_ptr<Link> before = nullptr;

  /// A frame more of the last token, with the token's probability there.
  void stay(int64_t frame, double probability);
  /// The path with one token more, whose first frame this is.
  Path with(int64_t token, int64_t frame, double probability) const;
  /// The tokens, with means for confidences.
  std::vector<RecognisedToken> tokens() const;
};

}  // namespace quatrain::models
