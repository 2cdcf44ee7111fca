#include "models/source_encoder.h"

#include <torch/types.h>

#include <algorithm>
#include <vector>

namespace quatrain::models {

namespace {

constexpr int64_t kShort = 64;  // places of a source

/// For each row the rows of all words of its source, and how many they are: (rows, longest) and (rows) int32.
struct Seen {
  at::Tensor table, lengths;

  /// `places`: the rows of each source, of which the first are words; or 0, where all rows are words.
  Seen(int64_t rows, int64_t places, const at::Tensor& words)
      : table(torch::empty({rows, std::max<int64_t>(1, words.max().item<int32_t>())}, torch::kInt)),
        lengths(torch::empty({rows}, torch::kInt)) {
    auto* row = table.mutable_data_ptr<int32_t>();
    auto* length = lengths.mutable_data_ptr<int32_t>();
    const auto* const count = words.const_data_ptr<int32_t>();
    int32_t first = 0;
    for (int64_t text = 0; text < words.size(0); ++text) {
      const auto of_text = static_cast<int32_t>(places > 0 ? places : count[text]);
      for (int32_t i = 0; i < of_text; ++i, row += table.size(1)) {
        for (int32_t word = 0; word < count[text]; ++word) row[word] = first + word;
        *length++ = count[text];
      }
      first += of_text;
    }
  }
};

}  // namespace

SourceEncoder::SourceEncoder(const Seq2Seq& model)
    : model_(model), layers_(model->encoder->layers, model->encoder->norm) {}

at::Tensor SourceEncoder::operator()(const at::Tensor& source, const nn::Words& words,
                                     const at::Tensor& lengths) {
  const at::Tensor rows = words.rows(model_->source_inputs()->forward(source));
  by_kernels_ = false;
  if (source.is_cpu() && rows.scalar_type() == at::kFloat && source.size(1) <= kShort) {
    const bool are_places = rows.sizes().slice(0, 2) == source.sizes();
    const at::Tensor y = apply_kernels(rows.flatten(0, 1), are_places ? source.size(1) : 0, lengths);
    by_kernels_ = y.defined();
    if (by_kernels_) return y.view(rows.sizes());
  }
  return model_->encoder->forward_words(rows, words);
}

at::Tensor SourceEncoder::apply_kernels(const at::Tensor& rows, int64_t places, const at::Tensor& lengths) {
  const int64_t counted = places > 0 ? places * lengths.size(0) : lengths.sum().item<int64_t>();
  TORCH_CHECK(counted == rows.size(0), "SourceEncoder: lengths tell of ", counted, " rows, the source has ",
              rows.size(0));
  const auto& attention = *model_->encoder->layers[0]->as<nn::TransformerEncoderLayerImpl>()->attention;
  const int64_t count = rows.size(0), width = rows.size(1), n = attention.components(),
                heads = attention.options.heads(), m = width / n / heads;
  const Seen seen(count, places, lengths);
  // A word is a slot, and has the same memory at each of its places, of which there are as many as a table's.
  const auto words = [&] {
    return torch::empty({count, width}, rows.options())
        .as_strided({count, seen.table.size(1), n, heads, m}, {width, 0, heads * m, m, 1});
  };
  const std::vector<nn::AttentionCache> caches(model_->encoder->layers->size(),
                                               {words(), words(), seen.table, seen.lengths});
  const at::Tensor y = layers_.apply_kernels(rows, 0, caches);
  layers_.keep_few();  // a batch of as many words seldom follows
  return y;
}

}  // namespace quatrain::models
