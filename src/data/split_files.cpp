#include "data/split_files.h"

#include <set>

#include "data/text_file.h"

namespace quatrain::data {
namespace fs = std::filesystem;

fs::path find_split_file(const fs::path& folder, const std::string& stem, const std::string& ending) {
  const fs::path plain = folder / (stem + "." + ending), compressed = folder / (stem + "." + ending + ".gz");
  const bool is_plain = fs::exists(plain), is_compressed = fs::exists(compressed);
  TORCH_CHECK(!is_plain || !is_compressed, "data: there are both ", plain.string(), " and ",
              compressed.filename().string(), "; remove the one that is not meant");
  return is_plain ? plain : is_compressed ? compressed : fs::path();
}

std::vector<std::string> split_endings(const fs::path& folder, const std::string& stem) {
  std::set<std::string> endings;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    std::string name = entry.path().filename().string();
    if (!name.starts_with(stem + ".")) continue;
    name.erase(0, stem.size() + 1);
    if (name.ends_with(".gz")) name.resize(name.size() - 3);
    if (!name.empty()) endings.insert(std::move(name));
  }
  TORCH_CHECK(!error, "data: the folder ", folder.string(), " cannot be read: ", error.message());
  return {endings.begin(), endings.end()};
}

fs::path find_split_folder(const std::string& reader, const fs::path& folder,
                           const std::vector<std::string>& subs, const std::string& files) {
  check_folder(reader, folder, files);
  std::vector<std::string> tried;
  for (const auto& sub : subs) {
    const fs::path here = sub.empty() ? folder : folder / sub;
    tried.push_back(here.string());
    if (fs::is_directory(here) && !split_endings(here, "train").empty()) return here;
  }
  TORCH_CHECK(false, "data: no file begins with train. in ", join(tried), "; the ", reader, " format needs ",
              files, " in one folder");
}

}  // namespace quatrain::data
