#pragma once

#include "quatrain/tasks/kind.h"

namespace quatrain::tasks {

/// A line becomes another: Transformer encoder-decoders over any algebra.
const Kind& seq2seq();

}  // namespace quatrain::tasks
