#pragma once

#include "quatrain/tasks/kind.h"

namespace quatrain::tasks {

const Kind& text_pairs();

}  // namespace quatrain::tasks
