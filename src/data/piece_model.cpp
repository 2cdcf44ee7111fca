#include <c10/util/Exception.h>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <utility>

#include "data/pieces_state.h"
#include "data/random.h"
#include "data/sentencepiece_model.h"
#include "support/numbers.h"
#include "support/text.h"

namespace quatrain::data {
namespace {

constexpr std::array kNormalizations{"nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"};

class PieceModel final : public Pieces::State {
 public:
  PieceModel(PieceKind kind, std::string content, const std::string& what)
      : kind_(kind), content_(std::move(content)) {
    const auto status = processor_.LoadFromSerializedProto(content_);
    TORCH_CHECK(status.ok(), what, " holds no model of SentencePiece: ", status.ToString());
    TORCH_CHECK(processor_.pad_id() == Pieces::kPad && processor_.unk_id() == Pieces::kUnknown &&
                    processor_.bos_id() == Pieces::kBegin && processor_.eos_id() == Pieces::kEnd,
                what,
                " holds a model of SentencePiece with other marks than <pad>, <unk>, <s>, </s> as 0 to 3");
  }

  PieceKind kind() const override { return kind_; }
  int64_t size() const override { return processor_.GetPieceSize(); }
  std::string piece(int64_t id) const override {
    if (id >= 0 && id < kMarkCount) return kMarks[id];
    return processor_.IdToPiece(static_cast<int>(id));
  }
  int64_t id(std::string_view piece) const override {
    const auto* const mark = std::find(std::begin(kMarks), std::end(kMarks), piece);
    return mark != std::end(kMarks) ? mark - kMarks : processor_.PieceToId(piece);
  }
  std::vector<std::string> cut(std::string_view) const override {
    TORCH_CHECK(false, "Pieces::cut: the pieces must be characters or words, got ", name(kind_));
  }
  std::vector<int32_t> encode(std::string_view line) const override {
    std::vector<int> ids;
    const auto status = processor_.Encode(line, &ids);
    TORCH_CHECK(status.ok(), "Pieces::encode: SentencePiece failed: ", status.ToString());
    return ids;
  }
  std::string decode(const std::vector<int>& ids) const override {
    std::string text;
    const auto status = processor_.Decode(ids, &text);
    TORCH_CHECK(status.ok(), "Pieces::decode: SentencePiece failed: ", status.ToString());
    return text;
  }
  std::string content() const override { return content_; }

 private:
  PieceKind kind_;
  std::string content_;
  sentencepiece::SentencePieceProcessor processor_;
};

/// Lines in memory, as SentencePiece reads them.
class Lines final : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(const std::vector<std::string>& lines) : lines_(lines) {}
  bool done() const override { return at_ == lines_.size(); }
  void Next() override { ++at_; }
  const std::string& value() const override { return lines_[at_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  const std::vector<std::string>& lines_;
  size_t at_ = 0;
};

using Tell = std::function<void(const std::string&)>;

struct Sample {
  std::vector<std::string> lines;
  size_t bytes = 0;
};

/// At most so many lines, and bytes of them, each line with the same chance.
Sample draw_lines(const NextLine& next_line, const PieceOptions& options) {
  Random random(options.seed);
  Sample sample;
  auto& [lines, bytes] = sample;
  auto most = static_cast<uint64_t>(options.sample);
  uint64_t count = 0;
  for (std::string line; next_line(line);) {
    if (is_blank(line)) continue;
    ++count;
    if (count <= most) {
      bytes += line.size();
      lines.push_back(line);
    } else if (const uint64_t place = random.below(count); place < most) {
      bytes += line.size() - lines[place].size();
      lines[place] = std::string(line);  // no larger than it is
    }
    for (; bytes > static_cast<size_t>(options.sample_bytes) && lines.size() > 1; most = lines.size()) {
      std::swap(lines[random.below(lines.size())], lines.back());
      bytes -= lines.back().size();
      lines.pop_back();
    }
  }
  return sample;
}

/// The number behind a word of SentencePiece's message.
std::optional<std::string> number_behind(const std::string& message, const std::string& word) {
  const size_t at = message.find(word);
  if (at == message.npos) return std::nullopt;
  const size_t begin = at + word.size(), end = message.find_first_not_of("0123456789", begin);
  if (end == begin || begin >= message.size()) return std::nullopt;
  return message.substr(begin, end - begin);
}

}  // namespace

std::shared_ptr<const Pieces::State> train_model(const NextLine& next_line, const PieceOptions& options,
                                                 const Tell& tell) {
  constexpr int64_t kLargest = 10000000;
  TORCH_CHECK(options.size > kMarkCount && options.size <= kLargest, "pieces: size must be from ",
              kMarkCount + 1, " to ", kLargest, " for ", name(options.kind), ", got ", options.size);
  TORCH_CHECK(options.coverage >= 0.98 && options.coverage <= 1,
              "pieces: coverage must be from 0.98 to 1, got ", options.coverage);
  TORCH_CHECK(options.sample >= 1, "pieces: sample must be at least 1 line, got ", options.sample);
  TORCH_CHECK(options.sample_bytes >= 1, "pieces: sample_bytes must be at least 1, got ",
              options.sample_bytes);
  TORCH_CHECK(std::find(kNormalizations.begin(), kNormalizations.end(),
                        std::string_view(options.normalization)) != kNormalizations.end(),
              "pieces: normalization must be one of ", join({kNormalizations.begin(), kNormalizations.end()}),
              ", got ", quote(options.normalization));
  const auto [lines, bytes] = draw_lines(next_line, options);
  TORCH_CHECK(!lines.empty(), "pieces: there must be a line to learn from that is not empty, got none");
  constexpr size_t kMuch = 1 << 19;  // bytes, for which it takes seconds
  if (tell && bytes >= kMuch)
    tell("vocabulary: learning " + grouped(options.size) + " pieces from " +
         grouped(static_cast<int64_t>(lines.size())) + " lines");

  const std::unordered_map<std::string, std::string> arguments{
      {"model_type", name(options.kind)},
      {"vocab_size", std::to_string(options.size)},
      {"character_coverage", std::to_string(options.coverage)},
      {"normalization_rule_name", options.normalization},
      {"byte_fallback", options.byte_fallback ? "true" : "false"},
      {"pad_id", std::to_string(Pieces::kPad)},
      {"unk_id", std::to_string(Pieces::kUnknown)},
      {"bos_id", std::to_string(Pieces::kBegin)},
      {"eos_id", std::to_string(Pieces::kEnd)},
      {"pad_piece", kNamesOfMarks[Pieces::kPad]},
      {"unk_piece", kNamesOfMarks[Pieces::kUnknown]},
      {"bos_piece", kNamesOfMarks[Pieces::kBegin]},
      {"eos_piece", kNamesOfMarks[Pieces::kEnd]},
      {"unk_surface", kMarks[Pieces::kUnknown]},
      {"max_sentence_length", std::to_string(kLongestLine)},
      {"num_threads", "4"},  // a fixed number: sums are rounded by threads
      {"minloglevel", "2"},  // errors; its messages come back in the status
  };
  Lines iterator(lines);
  std::string content;
  const auto status = sentencepiece::SentencePieceTrainer::Train(arguments, &iterator, &content);
  if (!status.ok()) {
    const std::string message = status.ToString();
    if (const auto most = number_behind(message, "to a value <= ")) {
      TORCH_CHECK(false, "pieces: size must be at most ", *most, " for ", lines.size(),
                  " training lines, which have no more pieces, got ", options.size);
    }
    if (const auto least = number_behind(message, " vs ")) {
      TORCH_CHECK(false, "pieces: size must be at least ", *least,
                  " (the marks and all characters of the training lines), got ", options.size,
                  "; ask for more, or lower coverage");
    }
    TORCH_CHECK(false, "pieces: SentencePiece failed: ", message);
  }
  return std::make_shared<PieceModel>(options.kind, std::move(content), "pieces: what was trained");
}

std::shared_ptr<const Pieces::State> load_model(PieceKind kind, std::string content,
                                                const std::string& what) {
  return std::make_shared<PieceModel>(kind, std::move(content), what);
}

}  // namespace quatrain::data
