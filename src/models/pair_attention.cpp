#include "quatrain/models/pair_attention.h"

#include <torch/types.h>

#include "models/pair_inputs.h"
#include "nn/check.h"
#include "ops/alignment/alignment.h"
#include "ops/panels.h"
#include "quatrain/pair_ops.h"

namespace quatrain::models {

namespace {

using nn::AttentionKind;

// Checks the options too.
AttentionKind kind_of(const PairAttentionOptions& options) {
  const std::string problem = nn::attention_problem(options.attention(), options.algebra());
  nn::require(problem.empty(), "PairAttention: attention = componentwise ", problem,
              " (take attention = real)");
  return nn::attention_kind(options.attention(), options.algebra());
}

/// (words of all texts, width) -> (B, width). As a product it takes a fifth of the time of filling places
/// and a sum. What stands at padding is finite where the weights are.
at::Tensor sum_of_words(const at::Tensor& x, const at::Tensor& padding) {
  const at::Tensor counted = padding.logical_not().to(x.scalar_type()).unsqueeze(1);
  return at::bmm(counted, x.view({padding.size(0), padding.size(1), -1})).squeeze(1);
}

}  // namespace

struct PairAttentionImpl::Pairs {
  at::Tensor first, second;                  // tokens, (B, la) and (B, lb)
  at::Tensor first_padding, second_padding;  // of the same sizes

  Pairs narrow(int64_t begin, int64_t count) const {
    const auto part = [&](const at::Tensor& t) { return t.narrow(0, begin, count); };
    return {part(first), part(second), part(first_padding), part(second_padding)};
  }
};

// All words are rows of one tensor: those of the first texts, then those of the second ones. So what is done
// to one side's reads and writes memory as it lies.
struct PairAttentionImpl::Texts {
  at::Tensor words;     // (B la + B lb, width)
  at::Tensor A, B;      // of each, (B, la or lb, n, 1, m)
  std::string algebra;  // of their products
};

PairAttentionImpl::PairAttentionImpl(PairAttentionOptions options)
    : options(std::move(options)), kind_(kind_of(this->options)) {
  const PairAttentionOptions& o = this->options;
  nn::require(o.classes() >= 1, "PairAttention: classes must be at least 1, got ", o.classes());
  nn::require_divisible("PairAttention", "width", o.width(), o.algebra().n, "n");
  PairAttentionImpl::reset();
}

void PairAttentionImpl::reset() {
  const int64_t width = options.width();
  words =
      register_module("words", WordVectors(WordVectorsOptions(options.vocabulary_size(), options.word_width())
                                               .padding_id(options.padding_id())
                                               .trained(options.train_words())
                                               .projected(width)
                                               .initialiser(options.initialiser())));
  const auto add = [&](const char* name) {
    return register_module(
        name, Perceptron(PerceptronOptions(4 * width, width).layers(options.layers()).like(options)));
  };
  if (options.shared_comparison())
    compare = add("compare");
  else
    compare_first = add("compare_first"), compare_second = add("compare_second");
  aggregate = add("aggregate");
  head = register_module(
      "head",
      nn::Linear(
          nn::LinearOptions(width, options.classes()).algebra("real").initialiser(options.initialiser())));
}

void PairAttentionImpl::pretty_print(std::ostream& stream) const {
  stream << "quatrain::models::PairAttention(vocabulary=" << options.vocabulary_size()
         << ", classes=" << options.classes() << ", width=" << options.width()
         << ", algebra=" << options.algebra().text() << ", attention=" << nn::name(kind_) << ")";
}

at::Tensor PairAttentionImpl::matched(const at::Tensor& left, const at::Tensor& right) const {
  const std::string product = options.algebra().learned ? "real" : options.algebra().name;
  return ops::hypercomplex_matching(left, right, product, options.algebra().n);
}

PairAttentionImpl::Texts PairAttentionImpl::embed(const Pairs& pairs) {
  const auto& [first, second, first_padding, second_padding] = pairs;
  Texts t;
  t.words = nn::dropout(words->forward(at::cat({first.flatten(), second.flatten()})), options.dropout(),
                        is_training(), options.algebra().n, options.dropout_per_unit());
  const std::vector<at::Tensor> sides = t.words.split_with_sizes({first.numel(), second.numel()});
  const auto heads = [&](const at::Tensor& side, const at::Tensor& tokens) {
    return ops::cut_heads(side.view({tokens.size(0), tokens.size(1), -1}), 1, options.algebra().n)[0];
  };
  t.A = heads(sides[0], first), t.B = heads(sides[1], second);
  t.algebra = kind_ == AttentionKind::componentwise ? options.algebra().name : "real";
  return t;
}

PairAttentionImpl::Pairs PairAttentionImpl::checked(const at::Tensor& first, const at::Tensor& second) const {
  Pairs pairs = {first, second, {}, {}};
  std::tie(pairs.first_padding, pairs.second_padding) =
      padding_of_pairs("PairAttention", first, second, options.padding_id());
  return pairs;
}

at::Tensor PairAttentionImpl::compared(const Pairs& pairs) {
  const Texts t = embed(pairs);
  const auto [of_first, of_second] =
      ops::hypercomplex_alignment(t.A, t.B, pairs.first_padding, pairs.second_padding, t.algebra);
  const at::Tensor aligned = at::cat({of_first.flatten(0, 1), of_second.flatten(0, 1)});
  const at::Tensor words_seen = matched(aligned, t.words);
  std::vector<at::Tensor> sides = (compare ? compare->forward(words_seen) : words_seen)
                                      .split_with_sizes({pairs.first.numel(), pairs.second.numel()});
  if (!compare) sides = {compare_first->forward(sides[0]), compare_second->forward(sides[1])};
  return at::stack(
      {sum_of_words(sides[1], pairs.second_padding), sum_of_words(sides[0], pairs.first_padding)}, 1);
}

at::Tensor PairAttentionImpl::forward(const at::Tensor& first, const at::Tensor& second) {
  const Pairs pairs = checked(first, second);
  const ops::PanelSizes sizes = {
      .items = first.size(0), .rows = first.size(1) + second.size(1), .widest = 4 * options.width()};
  const int64_t panel = ops::items_of_panel(sizes, head->S, is_training());
  const at::Tensor C = ops::by_panels(
      sizes.items, panel, [&](int64_t begin, int64_t count) { return compared(pairs.narrow(begin, count)); });
  return head->forward(aggregate->forward(matched(C.select(1, 0), C.select(1, 1))));
}

std::tuple<at::Tensor, at::Tensor> PairAttentionImpl::attention_weights(const at::Tensor& first,
                                                                        const at::Tensor& second) {
  const Pairs pairs = checked(first, second);
  const Texts t = embed(pairs);
  const ops::AlignmentCalls calls =
      ops::alignment_calls(t.algebra, pairs.first_padding, pairs.second_padding);
  const auto weights = [](const at::Tensor& query, const at::Tensor& key, const ops::AttentionCall& call) {
    return std::get<1>(ops::hypercomplex_attention_with_weights(query, key, key, call.options)).squeeze(1);
  };
  return {weights(t.A, t.B, calls.first_sees), weights(t.B, t.A, calls.second_sees)};
}

}  // namespace quatrain::models
