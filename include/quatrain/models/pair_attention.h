#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/pimpl.h>

#include <tuple>

#include "quatrain/models/perceptron.h"
#include "quatrain/models/word_vectors.h"
#include "quatrain/nn/attention.h"
#include "quatrain/nn/multiplies_inputs.h"

namespace quatrain::models {

/// dropout: of the projected words, and after each activation.
struct QUATRAIN_API PairAttentionOptions : nn::MapOptions<PairAttentionOptions>,
                                           nn::DropOptions<PairAttentionOptions>,
                                           nn::HiddenOptions<PairAttentionOptions> {
  PairAttentionOptions(int64_t vocabulary_size, int64_t classes)
      : vocabulary_size_(vocabulary_size), classes_(classes) {}
  TORCH_ARG(int64_t, vocabulary_size);
  TORCH_ARG(int64_t, classes);
  /// Of a word's vector behind the projection, and of all that follows; n must divide it.
  TORCH_ARG(int64_t, width) = 200;
  /// Of each feed-forward network.
  TORCH_ARG(int64_t, layers) = 2;
  /// Of a word's vector before the projection.
  TORCH_ARG(int64_t, word_width) = 300;
  /// The vectors of words are trained; else they stay what set_words() made them.
  TORCH_ARG(bool, train_words) = false;
  TORCH_ARG(nn::AttentionKind, attention) = nn::AttentionKind::automatic;
  /// One network compares the words of both texts, as in the decomposable attention model of Parikh et al.;
  /// else each text has its own, which gives the sizes of QNLP's table 1 (210K, and 660K at n = 1).
  TORCH_ARG(bool, shared_comparison) = true;
  /// The token that stands for no word.
  TORCH_ARG(int64_t, padding_id) = 0;
};

/// QNLP's attention model of two texts (3.2) over any algebra, Q-Att. At n = 1 it is DeAtt, the decomposable
/// attention model whose comparison also sees products and differences.
///
/// With the words A (la) and B (lb) of the texts, and * the product of the algebra:
///     E = A * B^T,   B' = softmax(E) . B,   A' = softmax(E^T) . A     component by component
///     C1 = sum compare([A'; B; A' * B; A' - B]),   C2 = sum compare([B'; A; B' * A; B' - A])
///     logits = head(aggregate([C1; C2; C1 * C2; C1 - C2]))
/// E is not scaled. [;] joins inside each component. Sums and softmaxes are over words, not over padding. A
/// learned algebra has no table that words share: its attention is real, and its products are those of n = 1,
/// element by element.
///
/// Children: `words`, `compare` (or `compare_first`, of C2, and `compare_second`, of C1), `aggregate`, over
/// the options' algebra, and a real `head`.
class QUATRAIN_API PairAttentionImpl : public torch::nn::Cloneable<PairAttentionImpl>,
                                       public nn::MultipliesInputs {
 public:
  PairAttentionImpl(int64_t vocabulary_size, int64_t classes)
      : PairAttentionImpl(PairAttentionOptions(vocabulary_size, classes)) {}
  explicit PairAttentionImpl(PairAttentionOptions options);
  void reset() override;
  void pretty_print(std::ostream& stream) const override;

  /// first (B, la) and second (B, lb) int64, filled up with padding_id -> logits (B, classes). An error where
  /// a text has no word.
  at::Tensor forward(const at::Tensor& first, const at::Tensor& second);
  /// What each word attends to: softmax(E) (B, maps, la, lb) and softmax(E^T) (B, maps, lb, la), maps = n
  /// (component-wise) or 1. forward() keeps no such maps.
  std::tuple<at::Tensor, at::Tensor> attention_weights(const at::Tensor& first, const at::Tensor& second);
  /// Copies vectors of words (vocabulary_size, word_width); that of padding_id becomes zero.
  void set_words(const at::Tensor& vectors) { words->set(vectors); }

  /// componentwise or real, also where the option is `automatic`.
  nn::AttentionKind kind() const { return kind_; }
  const nn::AlgebraSpec& algebra_of_products() const override { return options.algebra(); }

  PairAttentionOptions options;
  WordVectors words{nullptr};
  Perceptron compare{nullptr}, compare_first{nullptr}, compare_second{nullptr}, aggregate{nullptr};
  nn::Linear head{nullptr};

 private:
  struct Pairs;
  struct Texts;
  Pairs checked(const at::Tensor& first, const at::Tensor& second) const;
  Texts embed(const Pairs& pairs);
  /// C1 and C2, (B, 2, width).
  at::Tensor compared(const Pairs& pairs);
  at::Tensor matched(const at::Tensor& left, const at::Tensor& right) const;

  nn::AttentionKind kind_;
};
TORCH_MODULE(PairAttention);

}  // namespace quatrain::models
