#pragma once

#include <string_view>

#include "quatrain/models/token_inputs.h"
#include "quatrain/nn/encoder.h"

namespace quatrain::models {

/// What makes a score for each token of a hidden state.
///   tied     the rows of the embedding themselves, without a bias
///   real     a real linear map
///   algebra  a linear map in the model's algebra
enum class OutputLayer { tied, real, algebra };
QUATRAIN_API const char* name(OutputLayer output);
QUATRAIN_API OutputLayer parse_output_layer(std::string_view name);

/// What models of sequences are told beside the options of their layers. dropout: of the embeddings too.
struct QUATRAIN_API SequenceSettings {
  /// Embeddings are in the model's algebra, else real.
  bool embedding_in_algebra = false;
  bool embedding_scale = true;
  OutputLayer output = OutputLayer::tied;
  Positions positions = Positions::sinusoidal;
  int64_t max_length = 512;
};

template <class Self>
struct SequenceOptions : nn::TransformerOptions<Self> {
  Self& embedding_in_algebra(bool value) {
    sequence_settings.embedding_in_algebra = value;
    return self();
  }
  bool embedding_in_algebra() const { return sequence_settings.embedding_in_algebra; }

  /// Rows, which start with the variance 1/width, are multiplied by sqrt(width).
  Self& embedding_scale(bool value) {
    sequence_settings.embedding_scale = value;
    return self();
  }
  bool embedding_scale() const { return sequence_settings.embedding_scale; }

  Self& output(OutputLayer value) {
    sequence_settings.output = value;
    return self();
  }
  OutputLayer output() const { return sequence_settings.output; }

  Self& positions(Positions value) {
    sequence_settings.positions = value;
    return self();
  }
  Positions positions() const { return sequence_settings.positions; }

  /// See TokenInputsOptions.
  Self& max_length(int64_t value) {
    sequence_settings.max_length = value;
    return self();
  }
  int64_t max_length() const { return sequence_settings.max_length; }

  /// Rows of an embedding of so many tokens, and outputs of what scores them: the next multiple of n where
  /// that is in the algebra. Those beyond the tokens are used by nothing and have no score.
  int64_t embedded(int64_t tokens) const { return filled(tokens, embedding_in_algebra()); }
  int64_t scored(int64_t tokens) const {
    return filled(tokens,
                  output() == OutputLayer::tied ? embedding_in_algebra() : output() == OutputLayer::algebra);
  }

  SequenceSettings sequence_settings;

 private:
  Self& self() { return static_cast<Self&>(*this); }
  int64_t filled(int64_t tokens, bool in_algebra) const {
    const int64_t n = in_algebra ? this->algebra().n : 1;
    return (tokens + n - 1) / n * n;
  }
};

}  // namespace quatrain::models
