#include "quatrain/data/line_pair_source.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include "data/generated_line_pairs.h"
#include "data/generated_sizes.h"
#include "data/line_pair_files.h"
#include "data/split_files.h"
#include "data/text_file.h"

namespace quatrain::data {
namespace fs = std::filesystem;
namespace {

struct PairEntry {
  Reader reader;
  TextForm text;
  const char *source, *target;         // endings; null: the folder's
  std::vector<std::string> folders;    // below the one that is named
  std::vector<std::string> dev, test;  // stems of the files
  bool unseen = false;                 // pairs of test that are in train are left out
};

constexpr const char* kMath = "math";
constexpr const char* kReverse = "reverse";
constexpr const char* kTsv = "tsv";

const std::vector<PairEntry>& pair_entries() {
  static const std::vector<PairEntry> all{
      {{kMath, "questions such as y=691,x=-999,y*x: and their answers, generated", false},
       TextForm::tokenised,
       nullptr,
       nullptr,
       {},
       {},
       {}},
      {{kReverse, "words and the same words in reverse order, generated", false},
       TextForm::tokenised,
       nullptr,
       nullptr,
       {},
       {},
       {}},
      {{"parallel", "your pairs (train.SOURCE and train.TARGET, dev or valid or val, test; plain or .gz)",
        true},
       TextForm::raw,
       nullptr,
       nullptr,
       {""},
       kDevStems,
       {"test"}},
      {{kTsv, "your pairs (train.tsv, dev.tsv, test.tsv: source, tab, target; plain or .gz)", true},
       TextForm::raw,
       nullptr,
       nullptr,
       {""},
       kDevStems,
       {"test"}},
      {{"multi30k", "Multi30k, captions of pictures; de to en unless named otherwise, test 2016", true},
       TextForm::raw,
       "de",
       "en",
       {"", "multi30k", "mt/multi30k", "mt/mt/multi30k"},
       {"val", "dev", "valid"},
       {"test_2016_flickr", "test"}},
      {{"enja", "small English-Japanese set; lower-cased, tokenised", true},
       TextForm::tokenised,
       "en",
       "ja",
       {"", "enja", "mt/enja", "mt/mt/enja"},
       {"dev"},
       {"test"}},
      {{"shakespeare", "modern English to Shakespeare's; test pairs that are in train are left out", true},
       TextForm::tokenised,
       "modern",
       "original",
       {"", "shakespeare"},
       {"dev"},
       {"test"},
       true},
  };
  return all;
}

/// Made by rule, line by line.
class GeneratedReader final : public LinePairReader {
 public:
  GeneratedReader(std::string name, int64_t count, std::function<LinePair(int64_t)> line)
      : name_(std::move(name)), count_(count), line_(std::move(line)) {}
  bool next(LinePair& pair) override {
    if (at_ == count_) return false;
    pair = line_(at_++);
    return true;
  }
  std::string place() const override { return name_ + ":" + std::to_string(at_); }

 private:
  std::string name_;
  int64_t count_, at_ = 0;
  std::function<LinePair(int64_t)> line_;
};

class GeneratedCorpus final : public LinePairCorpus {
 public:
  explicit GeneratedCorpus(const LinePairSource& source)
      : LinePairCorpus(source.text.value_or(TextForm::tokenised), groups_of(source)), source_(source) {}

  bool has(std::string_view split) const override {
    return split == "train" || split == "dev" || split == "test";
  }
  std::vector<fs::path> files(std::string_view) const override { return {}; }
  std::unique_ptr<LinePairReader> open(std::string_view split) const override {
    TORCH_CHECK(has(split), "data: the sets of '", source_.reader, "' are train, dev and test, got ",
                quote(split));
    const std::string name = source_.reader + "." + std::string(split);
    if (split == "train" && source_.reader == kMath)
      return std::make_unique<GeneratedReader>(
          name, source_.math.train, [options = source_.math](int64_t i) { return math_line(options, i); });
    if (split == "train")
      return std::make_unique<GeneratedReader>(
          name, source_.reverse.train,
          [options = source_.reverse](int64_t i) { return reverse_line(options, i); });
    LinePairSplits splits = held_out(source_);
    auto& lines = split == "dev" ? splits.dev : splits.test;
    const auto count = static_cast<int64_t>(lines.size());
    return std::make_unique<GeneratedReader>(
        name, count, [lines = std::move(lines)](int64_t i) { return lines[static_cast<size_t>(i)]; });
  }

 private:
  /// Dev and test, which are few; one line of train.
  static LinePairSplits held_out(LinePairSource source) {
    const auto made = [](auto& options, const auto& generate) {
      check_sizes("data", options.train, options.dev, options.test);
      options.train = 1;
      return generate(options);
    };
    return source.reader == kMath ? made(source.math, generate_math) : made(source.reverse, generate_reverse);
  }
  static std::vector<std::string> groups_of(LinePairSource source) {
    return held_out(std::move(source)).groups;
  }

  LinePairSource source_;
};

class FileCorpus final : public LinePairCorpus {
 public:
  struct Set {
    fs::path source, target;  // of tsv the first alone
  };
  FileCorpus(TextForm text, std::string name, fs::path folder, std::map<std::string, Set, std::less<>> sets,
             std::vector<std::string> unread, bool skip_bad, bool unseen)
      : LinePairCorpus(text, {}),
        name_(std::move(name)),
        folder_(std::move(folder)),
        sets_(std::move(sets)),
        unread_(std::move(unread)),
        skip_bad_(skip_bad),
        unseen_(unseen) {}

  bool has(std::string_view split) const override { return sets_.contains(split); }
  std::vector<fs::path> files(std::string_view split) const override {
    const Set& set = find(split);
    return set.target.empty() ? std::vector{set.source} : std::vector{set.source, set.target};
  }
  std::vector<std::string> unread() const override { return unread_; }
  std::unique_ptr<LinePairReader> open(std::string_view split) const override {
    const Set& set = find(split);
    BadPairRule rule{count_anew(split), std::string(split), skip_bad_};
    if (!unseen_ || split != "test") return read(set, rule);
    const BadPairRule aside{std::make_shared<BadExamples>(), "test", skip_bad_};
    return read_unseen(read(set, aside), *read(find("train"), aside), read(set, rule), rule);
  }

 private:
  const Set& find(std::string_view split) const {
    const auto found = sets_.find(split);
    std::vector<std::string> known;
    for (const auto& [name, set] : sets_) known.push_back(name);
    TORCH_CHECK(found != sets_.end(), "data: the ", name_, " format found no ", split, " set in ",
                folder_.string(), ", only ", join(known));
    return found->second;
  }
  static std::unique_ptr<LinePairReader> read(const Set& set, const BadPairRule& rule) {
    return set.target.empty() ? read_pair_columns(set.source, rule)
                              : read_parallel(set.source, set.target, rule);
  }

  std::string name_;
  fs::path folder_;
  std::map<std::string, Set, std::less<>> sets_;
  std::vector<std::string> unread_;
  bool skip_bad_, unseen_;
};

/// The two files of a set, for messages.
std::string both_of(const std::string& stem) {
  return stem + ".SOURCE and " + stem + ".TARGET";
}

/// The endings of source and target: as named, else the reader's own, else the two that are there. `folder`
/// holds a file of one of the stems.
std::pair<std::string, std::string> endings(const PairEntry& entry, const LinePairSource& source,
                                            const fs::path& folder, std::vector<std::string> stems) {
  const std::string format = entry.reader.name;
  std::string from = !source.source.empty() ? source.source : entry.source ? entry.source : "";
  std::string to = !source.target.empty() ? source.target : entry.target ? entry.target : "";
  // Unless both are named those of train, if it is there: other sets may be of more languages.
  auto known = from.empty() || to.empty() ? split_endings(folder, {"train"}) : std::vector<std::string>();
  if (known.empty())
    known = split_endings(folder, stems);
  else
    stems = {"train"};
  const char* const columns = known == std::vector<std::string>{kTsv}
                                  ? ": --set task.data=tsv --set task.source= --set task.target= reads it"
                                  : "";
  if (from.empty() || to.empty()) {
    TORCH_CHECK(known.size() != 1, "data: the ", format, " format needs ", both_of(stems[0]), " in ",
                folder.string(), ", but the only ending there is ", known[0], columns);
    TORCH_CHECK(known.size() == 2, "data: the ", format, " format needs ", both_of(stems[0]), " in ",
                folder.string(), "; the endings there are ", join(known),
                ", so say which is the source's and which the target's (task.source, task.target)");
    if (from.empty()) from = known[0] == to ? known[1] : known[0];
    if (to.empty()) to = known[0] == from ? known[1] : known[0];
  }
  TORCH_CHECK(from != to, "data: source and target must be different files, but both end in ", quote(from));
  for (const auto& ending : {from, to})
    TORCH_CHECK(std::find(known.begin(), known.end(), ending) != known.end(), "data: the ", format,
                " format needs ", (folder / (stems[0] + "." + ending)).string(), " or ", stems[0], ".",
                ending, ".gz, but the endings there are ", join(known), columns,
                known.size() == 2 && source.only.empty() ? ": name them in task.source and task.target" : "");
  return {from, to};
}

/// Names under which the folder has whole sets, other than those that a reader looks for.
std::vector<std::string> unread_sets(const fs::path& folder, const std::string& from, const std::string& to,
                                     const std::map<std::string, std::vector<std::string>>& stems_of) {
  std::vector<std::string> unread = split_stems(folder, from);
  const auto partners = to.empty() ? unread : split_stems(folder, to);
  std::erase_if(unread, [&](const std::string& stem) {
    return !std::ranges::binary_search(partners, stem) || std::ranges::any_of(stems_of, [&](const auto& set) {
      return std::ranges::find(set.second, stem) != set.second.end();
    });
  });
  return unread;
}

std::unique_ptr<LinePairCorpus> open_files(const PairEntry& entry, const LinePairSource& source) {
  const bool columns = entry.reader.name == std::string_view(kTsv);
  TORCH_CHECK(
      !columns || (source.source.empty() && source.target.empty()),
      "data: a tsv file has both sides, so source and target, the endings of two files, must be empty, got ",
      quote(source.source.empty() ? source.target : source.source),
      " (--set task.source= --set task.target=)");
  const std::map<std::string, std::vector<std::string>> stems_of{
      {"train", {"train"}}, {"dev", entry.dev}, {"test", entry.test}};
  // A test set without the pairs of the training set needs that, too.
  const std::string needed = needed_set(entry.unseen ? "" : source.only, "pairs");
  const auto& needed_stems = stems_of.at(needed);
  const fs::path folder = find_split_folder(entry.reader.name, source.folder, entry.folders, needed_stems,
                                            columns ? needed_stems[0] + ".tsv" : both_of(needed_stems[0]));
  std::string from = kTsv, to;
  if (!columns) std::tie(from, to) = endings(entry, source, folder, needed_stems);

  std::map<std::string, FileCorpus::Set, std::less<>> sets;
  const auto add = [&](const char* split, const std::vector<std::string>& stems) {
    FileCorpus::Set set;
    const auto sides_of = [&](const std::string& stem) {
      return std::pair(find_split_file(folder, stem, from),
                       columns ? fs::path() : find_split_file(folder, stem, to));
    };
    const auto is_whole = [&](const std::string& stem) {
      const auto [one, other] = sides_of(stem);
      return !one.empty() && (columns || !other.empty());
    };
    const bool any_whole = std::any_of(stems.begin(), stems.end(), is_whole),
               asked = source.only.empty() || split == source.only || split == needed;
    find_one(stems, [&](const std::string& stem) {
      const auto [one, other] = sides_of(stem);
      // One side alone may belong to another pair of languages.
      if ((one.empty() && other.empty()) || ((any_whole || !asked) && !is_whole(stem))) return fs::path();
      TORCH_CHECK(!one.empty() && (columns || !other.empty()), "data: ", (one.empty() ? other : one).string(),
                  " has no partner ", (folder / (stem + "." + (one.empty() ? from : to))).string());
      set = {one, other};
      return one;
    });
    if (!set.source.empty()) sets.emplace(split, std::move(set));
  };
  for (const auto& [split, stems] : stems_of) add(split.c_str(), stems);
  const std::string file = needed_stems[0] + "." + from;  // tsv: of two files endings are looked for above
  TORCH_CHECK(sets.contains(needed), "data: the ", entry.reader.name, " format needs ",
              (folder / file).string(), " or ", file, ".gz, but there is neither");
  return std::make_unique<FileCorpus>(source.text.value_or(entry.text), entry.reader.name, folder,
                                      std::move(sets), unread_sets(folder, from, to, stems_of),
                                      source.skip_bad, entry.unseen);
}

}  // namespace

LinePairCorpus::LinePairCorpus(TextForm text, std::vector<std::string> groups)
    : text_(text), groups_(std::move(groups)), bad_(std::make_shared<BadExamples>()) {}
LinePairCorpus::~LinePairCorpus() = default;

std::shared_ptr<BadExamples> LinePairCorpus::count_anew(std::string_view split) const {
  bad_->forget(split);
  return bad_;
}

const std::vector<Reader>& line_pair_readers() {
  static const std::vector<Reader> all = [] {
    std::vector<Reader> list;
    for (const auto& entry : pair_entries()) list.push_back(entry.reader);
    return list;
  }();
  return all;
}

std::unique_ptr<LinePairCorpus> open_line_pairs(const LinePairSource& source) {
  std::vector<std::string> known;
  for (const auto& entry : pair_entries()) {
    known.emplace_back(entry.reader.name);
    if (source.reader != entry.reader.name) continue;
    if (!entry.reader.needs_folder) return std::make_unique<GeneratedCorpus>(source);
    return open_files(entry, source);
  }
  TORCH_CHECK(false, "data: the reader of pairs must be one of ", join(known), ", got ",
              quote(source.reader));
}

}  // namespace quatrain::data
