#pragma once

#include "quatrain/tasks/kind.h"

namespace quatrain::tasks {

/// A recurrent network reads symbols and recalls them after a lag.
const Kind& copy_memory();

}  // namespace quatrain::tasks
