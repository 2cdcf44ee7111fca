#include "data/split_files.h"

#include <set>
#include <utility>

#include "data/text_file.h"

namespace quatrain::data {
namespace fs = std::filesystem;
namespace {

void refuse_both(const fs::path& one, const fs::path& other) {
  TORCH_CHECK(false, "data: there are both ", one.string(), " and ", other.filename().string(),
              "; remove the one that is not meant");
}

/// Of all files, without .gz.
std::vector<std::string> file_names(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    std::string& name = names.emplace_back(entry.path().filename().string());
    if (name.ends_with(".gz")) name.resize(name.size() - 3);
  }
  TORCH_CHECK(!error, "data: the folder ", folder.string(), " cannot be read: ", error.message());
  return names;
}

}  // namespace

std::vector<std::string> stems_of(const std::string& set) {
  return set == "dev" ? kDevStems : std::vector{set};
}

fs::path find_split_file(const fs::path& folder, const std::string& stem, const std::string& ending) {
  const fs::path plain = folder / (stem + "." + ending), compressed = folder / (stem + "." + ending + ".gz");
  const bool is_plain = fs::exists(plain), is_compressed = fs::exists(compressed);
  if (is_plain && is_compressed) refuse_both(plain, compressed);
  return is_plain ? plain : is_compressed ? compressed : fs::path();
}

fs::path find_one(const std::vector<std::string>& names,
                  const std::function<fs::path(const std::string&)>& find) {
  fs::path found;
  for (const auto& name : names) {
    fs::path here = find(name);
    if (here.empty()) continue;
    if (!found.empty()) refuse_both(found, here);
    found = std::move(here);
  }
  return found;
}

fs::path find_split_file(const fs::path& folder, const std::vector<std::string>& stems,
                         const std::string& ending) {
  return find_one(stems, [&](const std::string& stem) { return find_split_file(folder, stem, ending); });
}

std::vector<std::string> split_endings(const fs::path& folder, const std::vector<std::string>& stems) {
  std::set<std::string> endings;
  for (const std::string& name : file_names(folder))
    for (const auto& stem : stems)
      if (name.starts_with(stem + ".") && name.size() > stem.size() + 1)
        endings.insert(name.substr(stem.size() + 1));
  return {endings.begin(), endings.end()};
}

std::vector<std::string> split_stems(const fs::path& folder, const std::string& ending) {
  std::set<std::string> stems;
  for (const std::string& name : file_names(folder))
    if (name.ends_with("." + ending) && name.size() > ending.size() + 1)
      stems.insert(name.substr(0, name.size() - ending.size() - 1));
  return {stems.begin(), stems.end()};
}

fs::path find_split_folder(const std::string& reader, const fs::path& folder,
                           const std::vector<std::string>& subs, const std::vector<std::string>& stems,
                           const std::string& files) {
  check_folder(reader, folder, files);
  std::vector<std::string> tried;
  for (const auto& sub : subs) {
    const fs::path here = sub.empty() ? folder : folder / sub;
    tried.push_back(here.string());
    if (fs::is_directory(here) && !split_endings(here, stems).empty()) return here;
  }
  std::string beginnings;
  for (const auto& stem : stems) beginnings += (beginnings.empty() ? "" : " or ") + stem + ".";
  TORCH_CHECK(false, "data: no file begins with ", beginnings, " in ", join(tried), "; the ", reader,
              " format needs ", files, " in one folder");
}

std::string needed_set(const std::string& only, const std::string& what) {
  if (only.empty()) return "train";
  TORCH_CHECK(only == "train" || only == "dev" || only == "test", "data: the sets of ", what,
              " are train, dev and test, got ", quote(only));
  return only;
}

}  // namespace quatrain::data
