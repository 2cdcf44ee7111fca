#pragma once

#include <string>

#include "quatrain/data/pieces.h"
#include "quatrain/models/sequence_options.h"
#include "quatrain/train/keys.h"

/// Keys that every kind of task about sequences of tokens has.
namespace quatrain::tasks {

/// Of [vocabulary]: how lines become pieces, as they are learned or as a model has them that `file` names.
void describe_pieces(train::Keys& keys, data::PieceOptions& pieces, std::string& file);
/// The pieces of such a model; the options say from then on what they are.
data::Pieces load_pieces(const std::string& file, data::PieceOptions& pieces);
/// Of [model]: embeddings, output layer, positions.
void describe_sequence(train::Keys& keys, models::SequenceSettings& settings);

}  // namespace quatrain::tasks
