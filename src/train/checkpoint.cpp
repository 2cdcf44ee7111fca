#include "train/checkpoint.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "support/atomic_file.h"
#include "support/shell_word.h"
#include "support/text.h"
#include "train/checksum.h"
#include "train/own_json.h"
#include "train/run_files.h"

namespace quatrain::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kFormat = 2;
constexpr const char* kManifest = "checkpoint.json";
constexpr const char* kWeightsFile = "model.safetensors";
constexpr const char* kOlder = "step-";
constexpr const char* kPart = ".part";
constexpr const char* kOld = ".old";
constexpr const char* kIfChanged = " (if you changed it, accept it with 'quatrain check RUN --accept')";
constexpr const char* kDamaged = ".damaged";  // and with a number

// A file without permission is not missing: it throws fs::filesystem_error with the system's reason.
bool is_there(const fs::path& path) {
  return fs::exists(path);
}

fs::path beside(const fs::path& run_folder, const std::string& which, const char* ending) {
  return run_folder / (which + ending);
}

fs::path older(const fs::path& run_folder, int64_t step) {
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "%s%06lld", kOlder, static_cast<long long>(step));
  return run_folder / name.data();
}

// The step in the name of an older checkpoint.
std::optional<int64_t> step_in(const fs::path& folder) {
  const std::string name = folder.filename().string();
  if (!name.starts_with(kOlder)) return std::nullopt;
  const std::string digits = name.substr(std::string(kOlder).size());
  if (digits.empty() || digits.size() > 18 || digits.find_first_not_of("0123456789") != digits.npos)
    return std::nullopt;
  const int64_t step = std::stoll(digits);
  return older(folder.parent_path(), step) == folder ? std::optional(step) : std::nullopt;
}

// The manifest's checksum is of all else in it.
std::string checksum_of(Json manifest) {
  manifest.erase("checksum");
  return checksum(manifest.dump());
}

bool describes_file(const std::string& name, const Json& facts) {
  return fs::path(name).filename() == name && facts.is_object() &&
         facts.value("bytes", Json()).is_number_unsigned() && facts.value("xxh128", Json()).is_string();
}

// The manifest, or nothing where it is not one that was written here.
std::optional<Json> read_manifest(const fs::path& folder) {
  auto manifest = read_own<Json>(folder / kManifest);
  const bool whole = manifest.is_object() && manifest.value("format", Json()) == kFormat &&
                     manifest.value("checksum", Json()) == checksum_of(manifest) &&
                     manifest.value("step", Json()).is_number_integer() &&
                     manifest.value("files", Json()).is_object();
  const auto sound = [&] {
    const auto files = manifest["files"].items();
    return std::all_of(files.begin(), files.end(),
                       [](const auto& file) { return describes_file(file.key(), file.value()); });
  };
  return whole && sound() ? std::optional(std::move(manifest)) : std::nullopt;
}

std::string weights_in(const Json& manifest) {
  return manifest["files"].value(kWeightsFile, Json::object()).value("xxh128", "");
}

// What is wrong with a checkpoint's folder.
struct Damage {
  std::vector<std::string> phrases;
  bool unreadable = false;  // there may be nothing wrong: the system does not let us look
};

// Why the system refuses to read a file; empty where it can be read or is missing.
std::string refusal_of(const fs::path& file) {
  try {
    open_file(file);
  } catch (const UnreadableError& error) {
    return error.what();
  } catch (const std::invalid_argument&) {
  }
  return "";
}

Damage damage_of(const fs::path& folder, Look look) {
  Damage damage;
  const auto unreadable = [&](const std::string& name, const std::string& why) {
    damage.unreadable = true;
    damage.phrases.push_back(name + " cannot be read: " + why);
  };
  if (const auto why = refusal_of(folder / kManifest); !why.empty()) {
    unreadable(kManifest, why);
    return damage;
  }
  if (!is_there(folder / kManifest)) return {{std::string(kManifest) + " is missing"}};
  const auto manifest = read_manifest(folder);
  if (!manifest) return {{std::string(kManifest) + " was changed, or another version of quatrain wrote it"}};
  if (const auto named = step_in(folder); named && *named != (*manifest)["step"])
    damage.phrases.push_back("its name is not that of its step, " + (*manifest)["step"].dump());
  for (const auto& [name, facts] : (*manifest)["files"].items()) {
    const fs::path file = folder / name;
    std::error_code error;
    const auto status = fs::status(file, error);
    const auto bytes = fs::is_regular_file(status) ? fs::file_size(file, error) : 0;
    if (status.type() == fs::file_type::not_found)
      damage.phrases.push_back(name + " is missing");
    else if (error)
      unreadable(name, error.message());
    else if (!fs::is_regular_file(status))
      damage.phrases.push_back(name + " is not a file");
    else if (bytes != facts["bytes"])
      damage.phrases.push_back(name + " has " + std::to_string(bytes) + " bytes instead of " +
                               facts["bytes"].dump() +
                               (name == "recipe.toml" || name == kWeightsFile ? kIfChanged : ""));
    else if (look == Look::sizes)
      continue;
    else if (const auto why = refusal_of(file); !why.empty())
      unreadable(name, why);
    else if (checksum_of_file(file) != facts["xxh128"])
      damage.phrases.push_back(name + " has changed since it was written" + kIfChanged);
  }
  return damage;
}

// The step of a finished run's best weights; none where it is not finished.
std::optional<int64_t> best_step_of_result(const fs::path& run_folder) {
  if (!is_there(run_folder / kResultFile)) return std::nullopt;
  const auto result = read_own<Json>(run_folder / kResultFile);
  if (!result.is_object() || !result.value("best_step", Json()).is_number_integer()) return std::nullopt;
  return result["best_step"].get<int64_t>();
}

std::string way_out(const fs::path& run_folder, const std::string& which) {
  const auto sound = sound_checkpoints(run_folder);
  if (sound.empty()) return "; the run has no undamaged checkpoint to continue from: start a new run";
  const Checkpoint& newest = sound.front();
  // Its result is valid, and is that of weights that no other checkpoint has.
  if (const auto best = best_step_of_result(run_folder); which == "best" && best && *best != newest.step)
    return "; the run is finished: put the checkpoint back, or delete '" +
           (run_folder / kResultFile).string() + "' and select new best weights by quatrain train " +
           shell_word(run_folder) + " --resume";
  return "; the newest undamaged checkpoint to continue from is '" + newest.folder.string() + "' of step " +
         std::to_string(newest.step) + ": quatrain train " + shell_word(run_folder) + " --resume --from " +
         newest.name;
}

// An older checkpoint steps aside before it is removed: one that is half removed is never taken for damaged.
void remove_older(const fs::path& folder) {
  fs::path gone = folder;
  gone += kOld;
  fs::remove_all(gone);
  fs::rename(folder, gone);
  fs::remove_all(gone);
}

// Older checkpoints whose removal was interrupted.
std::vector<fs::path> half_removed(const fs::path& run_folder) {
  std::vector<fs::path> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(run_folder, none))
    if (entry.path().extension() == kOld && step_in(entry.path().parent_path() / entry.path().stem()))
      found.push_back(entry.path());
  return found;
}

// Keeps the checkpoint that a new one replaces under the name of its step, or removes it. The checkpoint of
// step 0 is always removed.
void retire(const fs::path& run_folder, const fs::path& old, int64_t keep) {
  if (!fs::exists(old)) return;
  const auto manifest = keep > 1 ? read_manifest(old) : std::nullopt;
  if (!manifest || (*manifest)["step"] == 0) {
    fs::remove_all(old);
    return;
  }
  const fs::path place = older(run_folder, (*manifest)["step"]);
  fs::remove_all(place);
  fs::rename(old, place);
}

// Those that are there, under all their names.
std::vector<fs::path> all_checkpoints(const fs::path& run_folder) {
  std::vector<fs::path> all = older_checkpoints(run_folder);
  for (const char* which : {"best", "last"})
    for (const char* ending : {kOld, ""}) all.insert(all.begin(), beside(run_folder, which, ending));
  std::erase_if(all, [](const fs::path& one) { return !is_there(one); });
  return all;
}

}  // namespace

std::vector<fs::path> older_checkpoints(const fs::path& run_folder) {
  std::vector<fs::path> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(run_folder, none))
    if (step_in(entry.path())) found.push_back(entry.path());
  std::sort(found.begin(), found.end(),
            [](const fs::path& a, const fs::path& b) { return *step_in(a) > *step_in(b); });
  return found;
}

fs::path part_of(const fs::path& run_folder, const std::string& which) {
  return beside(run_folder, which, kPart);
}

std::vector<std::string> find_damage(const fs::path& folder, Look look) {
  return damage_of(folder, look).phrases;
}

std::vector<Checkpoint> sound_checkpoints(const fs::path& run_folder, Look look) {
  std::vector<Checkpoint> sound;
  std::vector<fs::path> folders = older_checkpoints(run_folder);
  folders.insert(folders.begin(), {run_folder / "last", beside(run_folder, "last", kOld)});
  for (const fs::path& folder : folders)
    if (is_there(folder) && find_damage(folder, look).empty())
      sound.push_back({folder.filename().string(), step_of(folder), folder});
  std::stable_sort(sound.begin(), sound.end(),
                   [](const Checkpoint& a, const Checkpoint& b) { return a.step > b.step; });
  return sound;
}

fs::path set_aside(const fs::path& folder) {
  fs::path place = beside(folder.parent_path(), folder.stem().string(), kDamaged);
  for (int i = 2; is_there(place); ++i)
    place = beside(folder.parent_path(), folder.stem().string(), kDamaged) += "-" + std::to_string(i);
  fs::rename(folder, place);
  return place;
}

std::string selected_weights(const fs::path& folder) {
  const auto manifest = read_manifest(folder);
  return manifest ? manifest->value("selected_weights", weights_in(*manifest)) : "";
}

bool has_other_weights(const fs::path& folder) {
  const auto manifest = read_manifest(folder);
  return manifest && selected_weights(folder) != weights_in(*manifest);
}

void seal_checkpoint(const fs::path& folder, int64_t step, const std::string& run,
                     const std::string& selected) {
  Json manifest{{"format", kFormat}, {"step", step}};
  if (!run.empty()) manifest["run"] = run;
  if (!selected.empty()) manifest["selected_weights"] = selected;
  manifest["files"] = Json::object();
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().filename() != kManifest) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    sync_path(file);
    manifest["files"][file.filename().string()] = {{"bytes", fs::file_size(file)},
                                                   {"xxh128", checksum_of_file(file)}};
  }
  manifest["checksum"] = checksum_of(manifest);
  write_text(folder / kManifest, manifest.dump(2) + "\n");
}

void write_checkpoint(const fs::path& run_folder, const std::string& which, int64_t step,
                      const std::string& run, const std::function<void(const fs::path&)>& fill, int64_t keep,
                      bool drops_result) {
  const fs::path place = run_folder / which;
  const fs::path part = part_of(run_folder, which);
  const fs::path old = beside(run_folder, which, kOld);
  fs::remove_all(part);
  fs::create_directory(part);  // not its parents: a run's folder that has vanished is not made again
  try {
    fill(part);
    seal_checkpoint(part, step, run);
  } catch (...) {
    std::error_code ignored;  // what went wrong first is what is told
    fs::remove_all(part, ignored);
    throw;
  }

  if (drops_result) fs::remove(run_folder / kResultFile);
  // A folder cannot be renamed over another, so the old one steps aside first; find_checkpoint knows the
  // moment between.
  if (fs::exists(place)) {
    retire(run_folder, old, keep);
    fs::rename(place, old);
  }
  fs::rename(part, place);
  sync_path(run_folder);
  retire(run_folder, old, keep);
  if (which == "best") return;
  int64_t left = keep - 1;
  for (const fs::path& folder : older_checkpoints(run_folder))
    if (*step_in(folder) >= step || --left < 0) remove_older(folder);
  for (const fs::path& folder : half_removed(run_folder)) fs::remove_all(folder);
}

// Under its name, or the one of the moment between two renames.
bool has_checkpoint(const fs::path& run_folder, const std::string& which) {
  return is_there(run_folder / which) || is_there(beside(run_folder, which, kOld));
}

bool has_checkpoint(const fs::path& run_folder) {
  return has_checkpoint(run_folder, "last") || !older_checkpoints(run_folder).empty();
}

bool is_checkpoint(const fs::path& folder) {
  std::error_code none;
  return fs::is_regular_file(folder / kManifest, none) && read_manifest(folder).has_value();
}

int64_t step_of(const fs::path& folder) {
  const auto manifest = read_manifest(folder);
  return manifest ? (*manifest)["step"].get<int64_t>() : 0;
}

std::string run_of(const fs::path& folder) {
  const auto manifest = read_manifest(folder);
  return manifest ? manifest->value("run", "") : "";
}

std::string name_of_run(const fs::path& run_folder) {
  for (const fs::path& one : all_checkpoints(run_folder))
    if (std::string its = run_of(one); !its.empty()) return its;
  return "";
}

std::string foreign(const fs::path& folder) {
  const std::string run = run_of(folder);
  if (run.empty()) return "";
  for (const fs::path& other : all_checkpoints(folder.parent_path()))
    if (const std::string its = run_of(other); !its.empty() && its != run)
      return "is of another run than '" + other.filename().string() +
             "' beside it: put back what belongs to this run, or move the other's away";
  return "";
}

std::string weights_checksum(const fs::path& run_folder, const std::string& which) {
  for (const fs::path& folder : {run_folder / which, beside(run_folder, which, kOld)})
    if (const auto manifest = is_there(folder) ? read_manifest(folder) : std::nullopt)
      return weights_in(*manifest);
  return "";
}

Checkpoint open_checkpoint(const fs::path& run_folder, const std::string& which) {
  for (const fs::path& folder : {run_folder / which, beside(run_folder, which, kOld)}) {
    if (!is_there(folder)) continue;
    const Damage damage = damage_of(folder, Look::bytes);
    if (damage.phrases.empty()) return {which, step_of(folder), folder};
    const std::string what = "checkpoint '" + folder.string() + "' ", why = join(damage.phrases);
    if (damage.unreadable)  // no older one is offered, from which newer work would be lost
      throw std::runtime_error(what + "cannot be read: " + why + "; give yourself permission to read it");
    throw std::runtime_error(what + "is damaged: " + why + way_out(run_folder, which));
  }
  throw std::runtime_error("run '" + run_folder.string() + "' has no checkpoint '" + which + "'" +
                           way_out(run_folder, which));
}

fs::path find_checkpoint(const fs::path& run_folder, const std::string& which) {
  return open_checkpoint(run_folder, which).folder;
}

bool holds_run(const fs::path& run_folder) {
  return has_checkpoint(run_folder) || has_checkpoint(run_folder, "best") ||
         is_there(run_folder / kMetricsFile) || is_there(run_folder / kResultFile);
}

void remove_run(const fs::path& run_folder) {
  for (const char* which : {"last", "best"})
    for (const char* ending : {"", kPart, kOld}) fs::remove_all(beside(run_folder, which, ending));
  for (const fs::path& folder : older_checkpoints(run_folder)) fs::remove_all(folder);
  for (const fs::path& folder : half_removed(run_folder)) fs::remove_all(folder);
  std::vector<fs::path> aside;
  for (const auto& entry : fs::directory_iterator(run_folder))
    if (const std::string name = entry.path().filename().string();
        name.starts_with(std::string("best") + kDamaged) || is_counts_file(name) || is_answers_file(name) ||
        name == kShortlistFile)
      aside.push_back(entry.path());
  for (const fs::path& folder : aside) fs::remove_all(folder);
  for (const char* name : {kMetricsFile, kResultFile}) fs::remove(run_folder / name);
}

}  // namespace quatrain::train
