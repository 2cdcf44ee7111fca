#include "data/line_pair_files.h"

#include <string>
#include <unordered_set>
#include <utility>

#include "data/pair_gate.h"
#include "data/text_file.h"

namespace quatrain::data {
namespace fs = std::filesystem;
namespace {

class ParallelReader final : public LinePairReader {
 public:
  ParallelReader(const fs::path& source, const fs::path& target, BadPairRule rule)
      : source_(source), target_(target), gate_(std::move(rule)) {}

  bool next(LinePair& pair) override {
    for (std::string_view source, target;;) {
      const bool more = source_.next(source);
      if (more != target_.next(target)) refuse_lengths();
      if (!more) return false;
      if (!gate_.fits(source, source_) || !gate_.fits(target, target_)) continue;
      if (!gate_.is_text(source, source_) || !gate_.is_text(target, target_)) continue;
      if (!gate_.has_word(source, "source", source_) || !gate_.has_word(target, "target", target_)) continue;
      pair.source = source;
      pair.target = target;
      pair.group = -1;
      return true;
    }
  }
  std::string place() const override { return source_.place(); }

 private:
  [[noreturn]] void refuse_lengths() {
    for (LineFile* file : {&source_, &target_})
      for (std::string_view line; file->next(line);) {
      }
    TORCH_CHECK(false, "data: ", source_.file().string(), " has ", source_.number(), " lines, but ",
                target_.file().string(), " has ", target_.number(),
                "; line after line of the one must belong to the other's");
  }

  LineFile source_, target_;
  PairGate gate_;
};

class ColumnsReader final : public LinePairReader {
 public:
  ColumnsReader(const fs::path& file, BadPairRule rule) : file_(file), gate_(std::move(rule)) {}

  bool next(LinePair& pair) override {
    for (std::string_view line; file_.next(line);) {
      if (!gate_.fits(line, file_) || !gate_.is_text(line, file_)) continue;
      const auto fields = columns(line);
      if (fields.size() != 2) {
        gate_.refuse("a line has other than 2 columns",
                     "a line must have 2 columns (source, target) separated by one tab, got " +
                         std::to_string(fields.size()) + " in " + quote(line),
                     file_);
        continue;
      }
      if (!gate_.has_word(fields[0], "source", file_) || !gate_.has_word(fields[1], "target", file_))
        continue;
      pair.source = fields[0];
      pair.target = fields[1];
      pair.group = -1;
      return true;
    }
    return false;
  }
  std::string place() const override { return file_.place(); }

 private:
  LineFile file_;
  PairGate gate_;
};

/// One text for both sides, which hold no line break.
std::string joined(const LinePair& pair) {
  return pair.source + '\n' + pair.target;
}

class UnseenReader final : public LinePairReader {
 public:
  UnseenReader(std::unique_ptr<LinePairReader> reader, std::unordered_set<std::string> seen, BadPairRule rule)
      : reader_(std::move(reader)), seen_(std::move(seen)), rule_(std::move(rule)) {}

  bool next(LinePair& pair) override {
    while (reader_->next(pair)) {
      if (!seen_.contains(joined(pair))) return true;
      rule_.counted->add(rule_.set, "the pair is in train too", reader_->place());
    }
    return false;
  }
  std::string place() const override { return reader_->place(); }

 private:
  std::unique_ptr<LinePairReader> reader_;
  std::unordered_set<std::string> seen_;
  BadPairRule rule_;
};

}  // namespace

std::unique_ptr<LinePairReader> read_parallel(const fs::path& source, const fs::path& target,
                                              BadPairRule rule) {
  return std::make_unique<ParallelReader>(source, target, std::move(rule));
}

std::unique_ptr<LinePairReader> read_pair_columns(const fs::path& file, BadPairRule rule) {
  return std::make_unique<ColumnsReader>(file, std::move(rule));
}

std::unique_ptr<LinePairReader> read_unseen(std::unique_ptr<LinePairReader> test, LinePairReader& train,
                                            std::unique_ptr<LinePairReader> again, BadPairRule rule) {
  std::unordered_set<std::string> asked, seen;
  LinePair pair;
  while (test->next(pair)) asked.insert(joined(pair));
  while (train.next(pair)) {
    std::string both = joined(pair);
    if (asked.contains(both)) seen.insert(std::move(both));
  }
  return std::make_unique<UnseenReader>(std::move(again), std::move(seen), std::move(rule));
}

}  // namespace quatrain::data
