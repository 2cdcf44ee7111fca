#pragma once

#include "quatrain/tasks/kind.h"

namespace quatrain::tasks {

/// The next token of a text: causal Transformers over any algebra.
const Kind& language_model();

}  // namespace quatrain::tasks
