#include "cli/load_while_telling.h"

#include <utility>

#include "cli/work_line.h"

namespace quatrain::cli {

std::unique_ptr<tasks::Data> load_while_telling(const tasks::Recipe& recipe, tasks::DataRequest request) {
  return while_telling([&](auto tell) {
    request.tell = std::move(tell);
    return tasks::load_data(recipe, request);
  });
}

}  // namespace quatrain::cli
