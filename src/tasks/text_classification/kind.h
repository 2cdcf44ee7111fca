#pragma once

#include "quatrain/tasks/kind.h"

namespace quatrain::tasks {

/// A label for each text: the tiny Transformer of QNLP and PHM.
const Kind& text_classification();

}  // namespace quatrain::tasks
