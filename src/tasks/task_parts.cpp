#include "tasks/task_parts.h"

#include <fstream>
#include <set>
#include <stdexcept>

#include "support/atomic_file.h"
#include "support/text.h"
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

void write_labels(const fs::path& file, const std::vector<std::string>& labels) {
  std::string lines;
  for (const std::string& label : labels) lines += label + "\n";
  write_text(file, lines);
}

std::vector<std::string> read_labels(const fs::path& file) {
  std::ifstream stream = open_named(file);
  std::vector<std::string> labels;
  std::set<std::string> known;
  for (std::string line; std::getline(stream, line);) {
    if (!known.insert(line).second)
      throw std::runtime_error(file.string() + " names " + quote(line) +
                               " twice, but must have another label in each line; copy it again");
    labels.push_back(std::move(line));
  }
  if (labels.size() < 2)
    throw std::runtime_error(file.string() + " must have two labels at least, one a line, got " +
                             std::to_string(labels.size()) + "; copy it again");
  return labels;
}

void add_checksums(Checksums& checksums, const std::vector<fs::path>& files) {
  for (const auto& file : files) checksums[file.filename().string()] = train::checksum_of_file(file);
}

void store_checksums(const Checksums& checksums, const fs::path& folder) {
  for (const auto& [file, checksum] : checksums) write_text(folder / (file + ".checksum"), checksum + "\n");
}

}  // namespace quatrain::tasks
