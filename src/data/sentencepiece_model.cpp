#include "data/sentencepiece_model.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "data/pieces_state.h"
#include "support/text.h"

// A model is a message of protocol buffers, sentencepiece_model.proto. Debian's package has no header for it,
// and of all its fields few matter here.
namespace quatrain::data {
namespace {

static_assert(kNamesOfMarks.size() == kMarkCount);

enum Wire : uint64_t { kVarint = 0, kEightBytes = 1, kSized = 2, kFourBytes = 5 };
constexpr uint64_t kWireBits = 3;

// Of a model, of a piece, of how the model was trained, and of how text is normalised.
enum ModelField : uint64_t { kPiece = 1, kTrainer = 2, kNormalizer = 3, kDenormalizer = 5 };
enum PieceField : uint64_t { kText = 1, kType = 3 };
enum TrainerField : uint64_t { kModelType = 3, kSize = 4, kUnknownText = 44 };
enum NormalizerField : uint64_t { kRules = 2 };
enum PieceType : uint64_t { kNormal = 1, kUnknownPiece = 2, kControl = 3 };

// Where the trainer's fields have the numbers and the names of our marks, in their order.
constexpr std::array<uint64_t, kMarkCount> kMarkId{43, 40, 41, 42}, kMarkName{48, 45, 46, 47};

struct Field {
  uint64_t number = 0;
  uint64_t value = 0;                // of a varint
  std::string_view text = {};        // of what is sized
  std::string_view as_written = {};  // with its number
};

// The fields of a message, one after the other.
class Fields {
 public:
  explicit Fields(std::string_view message) : rest_(message) {}

  // False at the end, and where the message is broken.
  bool next(Field& field) {
    if (rest_.empty() || broken_) return false;
    const std::string_view before = rest_;
    const uint64_t key = varint();
    field = {.number = key >> kWireBits};
    broken_ = broken_ || key >> 32;  // of which SentencePiece reads the lower half
    switch (key & ((1 << kWireBits) - 1)) {
      case kVarint:
        field.value = varint();
        break;
      case kEightBytes:
        take(8);
        break;
      case kFourBytes:
        take(4);
        break;
      case kSized:
        field.text = take(varint());
        break;
      default:
        broken_ = true;
    }
    field.as_written = before.substr(0, before.size() - rest_.size());
    return !broken_;
  }
  bool broken() const { return broken_; }

 private:
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      value |= uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    broken_ = true;
    return 0;
  }
  std::string_view take(uint64_t bytes) {
    broken_ = broken_ || bytes > rest_.size();
    const std::string_view taken = rest_.substr(0, broken_ ? 0 : bytes);
    rest_.remove_prefix(taken.size());
    return taken;
  }

  std::string_view rest_;
  bool broken_ = false;
};

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
std::string as_field(uint64_t field, uint64_t value) {
  return varint(field << kWireBits | kVarint) + varint(value);
}
std::string as_field(uint64_t field, std::string_view text) {
  return varint(field << kWireBits | kSized) + varint(text.size()) + std::string(text);
}

uint32_t unit(std::string_view units, size_t place) {
  uint32_t value = 0;
  std::memcpy(&value, units.data() + place * sizeof value, sizeof value);
  return value;
}

// SentencePiece follows the places in these rules, a trie of Darts and the texts that its values point into,
// without looking whether they are there.
bool are_sound_rules(std::string_view rules) {
  if (rules.empty()) return true;
  if (rules.size() <= sizeof(uint32_t)) return false;
  const size_t bytes = unit(rules, 0);
  rules.remove_prefix(sizeof(uint32_t));
  if (bytes == 0 || bytes % sizeof(uint32_t) != 0 || bytes >= rules.size() || rules.back() != '\0')
    return false;
  const size_t units = bytes / sizeof(uint32_t), texts = rules.size() - bytes;
  for (size_t i = 0; i < units; ++i) {
    const uint32_t here = unit(rules, i);
    if (i > 0 && here >> 31) continue;  // a value, which is reached from its node
    const size_t children = i ^ (here >> 10 << ((here & 0x200) >> 6));
    if ((children | 0xFF) >= units) return false;
    const bool has_value = here >> 8 & 1;
    if (has_value && (unit(rules, children) & 0x7FFFFFFF) >= texts) return false;
  }
  return true;
}

struct ModelParts {
  std::vector<std::string_view> pieces;
  std::string trainer, others;  // the message, and all other fields as they are written
  bool sound = true;
};

// A message that comes in several parts is their concatenation.
ModelParts parts_of(std::string_view model) {
  ModelParts parts;
  bool normalizes = false;
  Field field;
  Fields fields(model);
  while (fields.next(field)) {
    if (field.number == kPiece) {
      parts.pieces.push_back(field.as_written);
      continue;
    }
    if (field.number == kTrainer) {
      parts.trainer += field.text;
      continue;
    }
    parts.others += field.as_written;
    if (field.number != kNormalizer && field.number != kDenormalizer) continue;
    normalizes = normalizes || field.number == kNormalizer;
    Fields rules(field.text);
    while (rules.next(field))
      if (field.number == kRules) parts.sound &= are_sound_rules(field.text);
  }
  if (fields.broken() || !normalizes || parts.trainer.empty()) parts.pieces.clear();
  return parts;
}

// How the model was trained.
struct Training {
  explicit Training(std::string_view message) {
    Field field;
    Fields fields(message);
    while (fields.next(field)) {
      if (field.number == kModelType) type = field.value;
      const auto* const mark = std::ranges::find(kMarkName, field.number);
      if (mark != kMarkName.end()) marks[static_cast<size_t>(mark - kMarkName.begin())] = field.text;
    }
    sound = !fields.broken();
  }
  uint64_t type = 1;
  std::vector<std::string> marks{kMarks, kMarks + kMarkCount};
  bool sound = true;
};

struct OnePiece {
  explicit OnePiece(std::string_view as_written) {
    Field field;
    Fields(as_written).next(field);
    Fields fields(field.text);
    while (fields.next(field)) {
      if (field.number == kText) text = field.text;
      if (field.number == kType) type = field.value;
    }
    sound = !fields.broken() && !text.empty() && find_bad_utf8(text) == text.npos &&
            text.find('\0') == text.npos;  // where SentencePiece would end it
  }
  bool is_mark(const std::vector<std::string>& marks) const {
    return type == kUnknownPiece || (type == kControl && std::ranges::find(marks, text) != marks.end());
  }
  std::string text;
  uint64_t type = kNormal;
  bool sound = true;
};

}  // namespace

SentencePieceModel with_our_marks(std::string_view model, const std::string& what) {
  const ModelParts parts = parts_of(model);
  TORCH_CHECK(!parts.pieces.empty(), what,
              " must be a whole model of SentencePiece, as spm_train writes it (NAME.model)");
  const Training training(parts.trainer);
  constexpr std::array kKinds{PieceKind::unigram, PieceKind::bpe};
  TORCH_CHECK(training.type >= 1 && training.type <= kKinds.size(), what,
              " must be a model of SentencePiece with model_type unigram or bpe, got one of ",
              training.type == 3 ? "words" : "characters");

  std::string content;
  for (size_t i = 0; i < kMarkCount; ++i)
    content += as_field(kPiece, as_field(kText, kNamesOfMarks[i]) +
                                    as_field(kType, i == Pieces::kUnknown ? kUnknownPiece : kControl));
  bool sound = parts.sound && training.sound;
  std::vector<std::string> first;
  uint64_t size = kMarkCount;
  for (const std::string_view as_written : parts.pieces) {
    const OnePiece piece(as_written);
    sound &= piece.sound;
    if (first.size() < kMarkCount) first.push_back(piece.text);
    if (piece.is_mark(training.marks)) continue;
    TORCH_CHECK(std::ranges::find(kMarks, piece.text) == std::end(kMarks), what, " has the piece ",
                piece.text, " for text, which is the name of a mark; train the model without it");
    content += as_written;
    ++size;
  }
  TORCH_CHECK(sound, what, " holds a model of SentencePiece that is damaged; copy it again");
  const std::vector<std::string> ours{kNamesOfMarks.begin(), kNamesOfMarks.end()};
  if (training.marks == ours && first == ours)
    return {kKinds[training.type - 1], std::string(model)};  // equal to the bit
  // Of a field that comes twice the last one counts.
  std::string trainer = parts.trainer + as_field(kSize, size);
  trainer += as_field(kUnknownText, kMarks[Pieces::kUnknown]);
  for (size_t i = 0; i < kMarkCount; ++i)
    trainer += as_field(kMarkId[i], i) + as_field(kMarkName[i], kNamesOfMarks[i]);
  content += as_field(kTrainer, trainer) + parts.others;
  return {kKinds[training.type - 1], std::move(content)};
}

}  // namespace quatrain::data
