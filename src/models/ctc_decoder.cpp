#include "quatrain/models/ctc_decoder.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/ctc_search.h"
#include "models/frames.h"

namespace quatrain::models {
namespace {

// The best class of each frame.
class BestPath : public CtcDecoder::Search {
 public:
  explicit BestPath(int64_t blank) : blank_(blank), before_(blank) {}

  void advance(const double* frame, int64_t classes) override {
    const double* best = std::max_element(frame, frame + classes);
    const int64_t token = best - frame;
    score_ += *best;
    if (token != blank_) {
      if (token != before_) tokens_.push_back({token, frames_, frames_, 0});
      tokens_.back().end = frames_ + 1;
      tokens_.back().confidence += std::exp(*best);
    }
    before_ = token;
    ++frames_;
  }

  std::vector<Recognition> result(bool /*ended*/, int64_t /*most*/) const override {
    Recognition all{tokens_, score_};
    for (RecognisedToken& token : all.tokens)
      token.confidence = std::min(1.0, token.confidence / static_cast<double>(token.end - token.begin));
    return {all};
  }

 private:
  int64_t blank_, before_;  // the class of the frame before
  int64_t frames_ = 0;
  std::vector<RecognisedToken> tokens_;  // with sums for confidences
  double score_ = 0;
};

void check_options(const CtcDecoderOptions& options) {
  TORCH_CHECK_VALUE(options.blank >= 0, "CtcDecoder: blank must be at least 0, got ", options.blank);
  TORCH_CHECK_VALUE(options.beam >= 1, "CtcDecoder: beam must be at least 1, got ", options.beam);
  TORCH_CHECK_VALUE(options.best >= 1 && options.best <= options.beam,
                    "CtcDecoder: best must be from 1 to beam = ", options.beam, ", got ", options.best);
  TORCH_CHECK_VALUE(options.token_threshold >= 0,  // NaN is not
                    "CtcDecoder: token_threshold must be at least 0, got ", options.token_threshold);
  TORCH_CHECK_VALUE(std::isfinite(options.language_weight) && std::isfinite(options.insertion_bonus),
                    "CtcDecoder: language_weight and insertion_bonus must be finite numbers, got ",
                    options.language_weight, " and ", options.insertion_bonus);
  TORCH_CHECK_VALUE(options.beam > 1 || (!options.language && options.insertion_bonus == 0),
                    "CtcDecoder: a language model and an insertion_bonus need a beam of at least 2, got 1, "
                    "which takes the best path alone");
  if (!options.language) return;
  const int64_t words = options.language->words();
  for (size_t token = 0; token < options.words.size(); ++token) {
    const int64_t word = options.words[token];
    TORCH_CHECK_VALUE(static_cast<int64_t>(token) == options.blank || (word >= 0 && word < words),
                      "CtcDecoder: the word of token ", token, " must be from 0 to ", words - 1, ", got ",
                      word, "; is it a word that the language model does not know?");
  }
}

std::unique_ptr<CtcDecoder::Search> make_search(const CtcDecoderOptions& options) {
  if (options.beam == 1) return std::make_unique<BestPath>(options.blank);
  return make_prefix_search(options);
}

}  // namespace

CtcDecoder::CtcDecoder(CtcDecoderOptions options)
    : options_(std::make_shared<const CtcDecoderOptions>(std::move(options))) {
  check_options(*options_);
  search_ = make_search(*options_);
}
CtcDecoder::~CtcDecoder() = default;
CtcDecoder::CtcDecoder(CtcDecoder&&) noexcept = default;
CtcDecoder& CtcDecoder::operator=(CtcDecoder&&) noexcept = default;

void CtcDecoder::push(const at::Tensor& log_probabilities) {
  const auto frames = check_frames("CtcDecoder", log_probabilities);
  const int64_t classes = frames.size(1), words = static_cast<int64_t>(options_->words.size());
  TORCH_CHECK_VALUE(options_->blank < classes, "CtcDecoder: blank = ", options_->blank,
                    " must be one of the classes, got log-probabilities of ", classes);
  TORCH_CHECK_VALUE(classes_ == 0 || classes == classes_, "CtcDecoder: this utterance began with ", classes_,
                    " classes, got log-probabilities of ", classes, "; finish() begins a new one");
  TORCH_CHECK_VALUE(!options_->language || words == classes,
                    "CtcDecoder: words must give each class its word, got ", words,
                    " words, and log-probabilities of ", classes, " classes");
  classes_ = classes;
  const double* data = frames.const_data_ptr<double>();
  for (int64_t t = 0; t < frames.size(0); ++t) search_->advance(data + t * classes, classes);
}

std::vector<Recognition> CtcDecoder::result() const {
  return search_->result(false, options_->best);
}

Recognition CtcDecoder::best() const {
  return std::move(search_->result(false, 1).front());
}

std::vector<Recognition> CtcDecoder::finish() {
  auto result = search_->result(true, options_->best);
  search_ = make_search(*options_);
  classes_ = 0;
  return result;
}

}  // namespace quatrain::models
