#include "quatrain/train/task.h"

namespace quatrain::train {

std::string Task::describe_batch(int64_t epoch, int64_t index) {
  return "batch " + std::to_string(index) + " of epoch " + std::to_string(epoch);
}

void Task::store(const std::filesystem::path&) const {}

std::string Task::recipe() const {
  return "";
}

Figures Task::facts() {
  return {};
}

}  // namespace quatrain::train
