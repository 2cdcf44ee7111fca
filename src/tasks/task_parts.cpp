#include "tasks/task_parts.h"

#include "support/atomic_file.h"
#include "train/checksum.h"

namespace quatrain::tasks {

namespace fs = std::filesystem;

train::Selection selection_by(const Figure& figure) {
  return {figure.name, figure.higher_is_better};
}

double share_of(const std::vector<int64_t>& sums) {
  return sums[1] > 0 ? static_cast<double>(sums[0]) / static_cast<double>(sums[1]) : 0;
}

std::string list_of(const std::vector<int64_t>& indices) {
  std::string text;
  for (const int64_t i : indices) text += (text.empty() ? "" : ", ") + std::to_string(i);
  return text;
}

void add_checksums(Checksums& checksums, const std::vector<fs::path>& files) {
  for (const auto& file : files) checksums[file.filename().string()] = train::checksum_of_file(file);
}

void store_checksums(const Checksums& checksums, const fs::path& folder) {
  for (const auto& [file, checksum] : checksums) write_text(folder / (file + ".checksum"), checksum + "\n");
}

}  // namespace quatrain::tasks
