#include "quatrain/data/text_source.h"

#include <map>
#include <utility>

#include "data/line_file.h"
#include "data/pair_gate.h"
#include "data/split_files.h"
#include "data/text_file.h"

namespace quatrain::data {
namespace fs = std::filesystem;
namespace {

struct TextEntry {
  Reader reader;
  TextForm text;
  std::vector<std::string> folders;  // below the one that is named
};

const std::vector<TextEntry>& text_entries() {
  static const std::vector<TextEntry> all{
      {{"text", "your text (train.txt, dev.txt or valid.txt, test.txt; plain or .gz)", true},
       TextForm::raw,
       {""}},
      {{"wikitext2", "WikiText-2 (train.txt, valid.txt, test.txt); tokenised", true},
       TextForm::tokenised,
       {"", "wikitext2", "wikitext2/wikitext2"}},
  };
  return all;
}

class FileLines final : public LineReader {
 public:
  FileLines(const fs::path& file, BadPairRule rule) : file_(file, /*cuts=*/true), gate_(std::move(rule)) {}
  bool next(std::string& line) override {
    for (std::string_view text; file_.next(text);) {
      if (text.size() > kLongestLine) {
        gate_.refuse("a word has more than half a MiB",
                     "a line must have a space in every half MiB, this one has none in more", file_);
        continue;
      }
      if (!gate_.is_text(text, file_)) continue;
      line = text;
      return true;
    }
    return false;
  }
  bool goes_on() const override { return file_.goes_on(); }
  std::string place() const override { return file_.place(); }

 private:
  LineFile file_;
  PairGate gate_;
};

class FileText final : public TextCorpus {
 public:
  FileText(TextForm text, fs::path folder, std::map<std::string, fs::path, std::less<>> sets, bool skip_bad)
      : TextCorpus(text), folder_(std::move(folder)), sets_(std::move(sets)), skip_bad_(skip_bad) {}
  bool has(std::string_view split) const override { return sets_.contains(split); }
  std::vector<fs::path> files(std::string_view split) const override { return {find(split)}; }
  std::unique_ptr<LineReader> open(std::string_view split) const override {
    BadPairRule rule{count_anew(split), std::string(split), skip_bad_};
    rule.what = "lines";
    return std::make_unique<FileLines>(find(split), std::move(rule));
  }

 private:
  const fs::path& find(std::string_view split) const {
    const auto found = sets_.find(split);
    std::vector<std::string> known;
    for (const auto& [name, file] : sets_) known.push_back(name);
    TORCH_CHECK(found != sets_.end(), "data: there is no ", split, " text in ", folder_.string(), ", only ",
                join(known));
    return found->second;
  }

  fs::path folder_;
  std::map<std::string, fs::path, std::less<>> sets_;
  bool skip_bad_;
};

}  // namespace

LineReader::~LineReader() = default;
TextCorpus::~TextCorpus() = default;

std::shared_ptr<BadExamples> TextCorpus::count_anew(std::string_view split) const {
  bad_->forget(split);
  return bad_;
}

const std::vector<Reader>& text_readers() {
  static const std::vector<Reader> all = [] {
    std::vector<Reader> list;
    for (const auto& entry : text_entries()) list.push_back(entry.reader);
    return list;
  }();
  return all;
}

std::unique_ptr<TextCorpus> open_text(const TextSource& source) {
  std::vector<std::string> known;
  for (const auto& entry : text_entries()) {
    known.emplace_back(entry.reader.name);
    if (source.reader != entry.reader.name) continue;
    const std::string needed = needed_set(source.only, "a text");
    const std::string file = stems_of(needed)[0] + ".txt";
    const fs::path folder =
        find_split_folder(entry.reader.name, source.folder, entry.folders, stems_of(needed), file);
    std::map<std::string, fs::path, std::less<>> sets;
    for (const std::string split : {"train", "dev", "test"})
      if (const fs::path found = find_split_file(folder, stems_of(split), "txt"); !found.empty())
        sets.emplace(split, found);
    TORCH_CHECK(sets.contains(needed), "data: the ", entry.reader.name, " format needs ",
                (folder / file).string(), " or ", file, ".gz, but there is neither");
    return std::make_unique<FileText>(entry.text, folder, std::move(sets), source.skip_bad);
  }
  TORCH_CHECK(false, "data: the reader of text must be one of ", join(known), ", got ", quote(source.reader));
}

TokenStore encode_text(LineReader& reader, const Pieces& pieces, bool mark_ends, int64_t* ends) {
  TokenStore store;
  int64_t marked = 0;
  std::string line;
  bool begun = false;  // a line with pieces
  while (reader.next(line)) {
    auto ids = pieces.encode(line);
    begun = begun || !ids.empty();
    if (mark_ends && begun && !reader.goes_on()) {
      ids.push_back(Pieces::kEnd);
      ++marked;
    }
    begun = begun && reader.goes_on();
    if (!ids.empty()) store.extend(ids);
  }
  TORCH_CHECK(store.numbers() > 0, "data: a text must have at least one piece, but up to ", reader.place(),
              " there is none");
  store.finish();
  if (ends) *ends = marked;
  return store;
}

}  // namespace quatrain::data
