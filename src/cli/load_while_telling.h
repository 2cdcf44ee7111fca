#pragma once

#include <memory>

#include "quatrain/tasks/run.h"

namespace quatrain::cli {

/// A recipe's data, as tasks::load_data gives them, while a line shows what is done (work_line.h).
std::unique_ptr<tasks::Data> load_while_telling(const tasks::Recipe& recipe, tasks::DataRequest request);

}  // namespace quatrain::cli
