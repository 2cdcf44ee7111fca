#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>

#include "quatrain/api.h"
#include "quatrain/data/vocabulary.h"

namespace quatrain::data {

/// Pretrained word vectors, arranged by a vocabulary.
struct QUATRAIN_API Vectors {
  at::Tensor
      values;  ///< (vocabulary size, dim), float32; zero for <pad>, drawn for words that were not found
  int64_t found = 0;  ///< how many words of the vocabulary have a vector
};

/// Reads `NAME.bf16` (row-major bfloat16) with its list `NAME.vocab` (a word a line) beside it, or a text
/// file of lines `word x1 .. xd` (GloVe; a word2vec header line `count dim` is skipped). Rows of words
/// without a vector are drawn from a normal distribution with the mean and the spread of the vectors found,
/// from `seed` and the word: other words change nothing. If the list and the vectors do not match, the error
/// names both counts.
QUATRAIN_API Vectors load_vectors(const std::filesystem::path& file, const Vocabulary& vocabulary,
                                  uint64_t seed = 0);

/// Vectors of a length of about 1 for all words of the vocabulary, drawn from `seed` and the word: for models
/// whose vectors are not trained and have no file. Nothing is found.
QUATRAIN_API Vectors draw_vectors(const Vocabulary& vocabulary, int64_t dim, uint64_t seed = 0);

}  // namespace quatrain::data
