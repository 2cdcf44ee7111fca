#pragma once

#include <functional>
#include <string_view>

#include "quatrain/train/task.h"

namespace quatrain::train {

/// Scores a split as a trainer does: in evaluation mode, without gradients, with autocast where asked.
QUATRAIN_API Evaluation score(Task& task, std::string_view split, bool bf16,
                              const std::function<void()>& after_batch);

}  // namespace quatrain::train
