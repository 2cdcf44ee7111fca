#pragma once

#include "quatrain/data/pieces.h"
#include "quatrain/models/sequence_options.h"
#include "quatrain/train/keys.h"

/// Keys that every kind of task about sequences of tokens has.
namespace quatrain::tasks {

/// Of [vocabulary]: how lines become pieces.
void describe_pieces(train::Keys& keys, data::PieceOptions& pieces);
/// Of [model]: embeddings, output layer, positions.
void describe_sequence(train::Keys& keys, models::SequenceSettings& settings);

}  // namespace quatrain::tasks
