#include "train/checkpoint.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "nn/atomic_file.h"

namespace quatrain::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;
constexpr const char* kManifest = "checkpoint.json";

fs::path beside(const fs::path& run_folder, const std::string& which, const char* ending) {
  return run_folder / (which + ending);
}

// Throws where a file of the manifest is not there or has another size.
void check_whole(const fs::path& folder) {
  const auto torn = [&](const std::string& why) {
    throw std::runtime_error("checkpoint '" + folder.string() + "' is torn: " + why +
                             "; use the run's other checkpoint, or start anew");
  };
  std::ifstream file(folder / kManifest);
  if (!file) torn(std::string(kManifest) + " is missing");
  const Json manifest = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!manifest.is_object() || !manifest.contains("files") || !manifest["files"].is_object())
    torn(std::string(kManifest) + " cannot be read");
  if (manifest.value("format", Json()) != kFormat)
    throw std::runtime_error("checkpoint '" + folder.string() + "' is of another format than " +
                             std::to_string(kFormat) + ": it was written by another version of quatrain");
  for (const auto& [name, size] : manifest["files"].items()) {
    std::error_code error;
    const auto found = fs::file_size(folder / name, error);
    if (error) torn(name + " is missing");
    if (!size.is_number_unsigned() || found != size.get<uintmax_t>())
      torn(name + " has " + std::to_string(found) + " bytes instead of " + size.dump());
  }
}

}  // namespace

void write_checkpoint(const fs::path& run_folder, const std::string& which, int64_t step,
                      const std::function<void(const fs::path&)>& fill) {
  const fs::path place = run_folder / which;
  const fs::path part = beside(run_folder, which, ".part");
  const fs::path old = beside(run_folder, which, ".old");
  fs::remove_all(part);
  fs::create_directories(part);
  fill(part);

  Json manifest{{"format", kFormat}, {"step", step}, {"files", Json::object()}};
  for (const auto& entry : fs::directory_iterator(part)) {
    manifest["files"][entry.path().filename().string()] = entry.file_size();
    nn::sync_path(entry.path());
  }
  nn::write_text(part / kManifest, manifest.dump(2) + "\n");

  // A folder cannot be renamed over another, so the old one steps aside first; find_checkpoint knows the
  // moment between.
  if (fs::exists(place)) {
    fs::remove_all(old);
    fs::rename(place, old);
  }
  fs::rename(part, place);
  nn::sync_path(run_folder);
  fs::remove_all(old);
}

bool has_checkpoint(const fs::path& run_folder, const std::string& which) {
  return fs::exists(run_folder / which) || fs::exists(beside(run_folder, which, ".old"));
}

fs::path find_checkpoint(const fs::path& run_folder, const std::string& which) {
  for (const fs::path& folder : {run_folder / which, beside(run_folder, which, ".old")}) {
    if (!fs::exists(folder)) continue;
    check_whole(folder);
    return folder;
  }
  throw std::runtime_error("run '" + run_folder.string() + "' has no checkpoint '" + which + "'");
}

bool holds_run(const fs::path& run_folder) {
  return has_checkpoint(run_folder, "last") || has_checkpoint(run_folder, "best") ||
         fs::exists(run_folder / "metrics.jsonl") || fs::exists(run_folder / "result.json");
}

void remove_run(const fs::path& run_folder) {
  for (const char* which : {"last", "best"})
    for (const char* ending : {"", ".part", ".old"}) fs::remove_all(beside(run_folder, which, ending));
  for (const char* name : {"metrics.jsonl", "result.json", "predictions.tsv"}) fs::remove(run_folder / name);
}

}  // namespace quatrain::train
