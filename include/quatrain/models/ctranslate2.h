#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "quatrain/models/seq2seq.h"

namespace quatrain::models {

/// Writes the model as CTranslate2 reads it: a folder with `model.bin` (float32, binary version 6),
/// `config.json` and the vocabularies. Every map is written out as a real matrix, with its rows in the order
/// of CTranslate2's heads, so that CTranslate2 computes the same function.
///
/// The pieces are the texts of the tokens, numbers 1 to 3 of both sides `<unk>`, `<s>` and `</s>`, none twice
/// on a side. CTranslate2 puts `</s>` behind a source and begins a target with `<s>`. Sinusoidal positions
/// are written for texts of 2,048 tokens, or max_length where that is more.
///
/// CTranslate2 has real attention, norms over the whole width, post-norm or pre-norm, and the activations
/// relu, gelu, gelu_tanh, silu, tanh and sigmoid: another model is a std::invalid_argument that says what it
/// is. The folder is written beside its place and renamed; one that exists and is not empty is a
/// std::runtime_error.
QUATRAIN_API void write_ctranslate2(const std::filesystem::path& folder, Seq2Seq model,
                                    const std::vector<std::string>& source_pieces,
                                    const std::vector<std::string>& target_pieces);

}  // namespace quatrain::models
