#include "data/kaldi_alignments.h"

#include <algorithm>
#include <utility>

#include "data/text_file.h"
#include "quatrain/data/kaldi_archive.h"

namespace quatrain::data {
namespace fs = std::filesystem;
namespace {

std::vector<fs::path> archives_in(const fs::path& folder) {
  std::vector<fs::path> archives;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("ali.") && (name.ends_with(".ark") || name.ends_with(".gz")))
      archives.push_back(entry.path());
  }
  std::sort(archives.begin(), archives.end());
  return archives;
}

}  // namespace

bool KaldiAlignments::are_in(const fs::path& folder) {
  return fs::exists(folder / "ali.scp") || !archives_in(folder).empty();
}

KaldiAlignments::KaldiAlignments(const fs::path& folder,
                                 const std::function<bool(const std::string& utterance)>& is_wanted) {
  if (fs::exists(folder / "ali.scp")) {
    for (auto& entry : read_kaldi_script(folder / "ali.scp")) locations_.insert({entry.key, entry.location});
    return;
  }
  const auto archives = archives_in(folder);
  TORCH_CHECK(!archives.empty(), "data: there is no ", kFiles, " in ", folder.string(),
              "; alignments need one of them, as ali-to-pdf writes it");
  for (const auto& archive : archives) read(archive, is_wanted);
}

void KaldiAlignments::read(const fs::path& file,
                           const std::function<bool(const std::string& utterance)>& is_wanted) {
  KaldiArchive archive(file);
  Labels found{{}, file.filename().string()};
  for (std::string key; archive.next(key, found.classes);) {
    if (!is_wanted(key)) continue;
    const auto [at, is_new] = labels_.insert({key, found});
    TORCH_CHECK(is_new, "data: the alignment of ", quote(key), " is in ", at->second.archive, " and in ",
                file.string(), "; remove the archive that is not meant");
  }
}

std::optional<std::vector<int32_t>> KaldiAlignments::take(const std::string& utterance) {
  if (const auto listed = locations_.find(utterance); listed != locations_.end())
    return read_kaldi_integers(listed->second);
  const auto found = labels_.find(utterance);
  if (found == labels_.end()) return std::nullopt;
  return std::move(found->second.classes);
}

}  // namespace quatrain::data
