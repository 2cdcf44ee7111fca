#include <c10/util/Exception.h>
#include <utf8proc.h>

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "data/pieces_state.h"
#include "quatrain/data/tokenizer.h"
#include "support/characters.h"
#include "support/text.h"

namespace quatrain::data {
namespace {

/// The character that a text begins with, and its bytes: one byte and -1 where it is none.
std::pair<utf8proc_int32_t, size_t> first_character(std::string_view text) {
  utf8proc_int32_t character = -1;
  const auto bytes = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                      static_cast<utf8proc_ssize_t>(text.size()), &character);
  return bytes > 0 ? std::pair(character, static_cast<size_t>(bytes)) : std::pair(-1, size_t{1});
}

/// In lower case, without double quotes, which torchtext takes out before anything else.
std::string lowered(std::string_view line) {
  std::string text;
  while (!line.empty()) {
    const auto [character, bytes] = first_character(line);
    if (character < 128) {
      const char c = line[0];
      if (c != '"') text += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    } else {
      utf8proc_uint8_t small[4];
      const auto size = utf8proc_encode_char(utf8proc_tolower(character), small);
      text.append(reinterpret_cast<const char*>(small), static_cast<size_t>(size));
    }
    line.remove_prefix(bytes);
  }
  return text;
}

template <class Take>
void each_basic_english(std::string_view line, const Take& take) {
  constexpr std::string_view kBreak = "<br />", kDropped = ";:", kWords = "'.,()!?";
  const std::string text = lowered(line);
  size_t begin = 0;
  const auto end_word = [&](size_t end, size_t next) {
    if (end > begin) take(std::string_view(text).substr(begin, end - begin));
    begin = next;
  };
  for (size_t i = 0; i < text.size();) {
    const std::string_view rest = std::string_view(text).substr(i);
    const auto [character, bytes] = first_character(rest);
    size_t next = i + bytes;
    if (rest.starts_with(kBreak)) {
      end_word(i, next = i + kBreak.size());
    } else if (is_white_space(static_cast<uint32_t>(character)) || kDropped.find(rest[0]) != kDropped.npos) {
      end_word(i, next);
    } else if (kWords.find(rest[0]) != kWords.npos) {
      end_word(i, next);
      take(rest.substr(0, 1));
    }
    i = next;
  }
  end_word(text.size(), text.size());
}

template <class Take>
void each_piece(PieceKind kind, std::string_view line, const Take& take) {
  if (kind == PieceKind::characters) {
    for (size_t bytes; !line.empty(); line.remove_prefix(bytes)) {
      bytes = first_character(line).second;
      take(line.substr(0, bytes));
    }
  } else if (kind == PieceKind::words) {
    for (const auto& word : split(line, Tokenizer::whitespace)) take(std::string_view(word));
  } else {
    each_basic_english(line, take);
  }
}

struct PieceHash : std::hash<std::string_view> {
  using is_transparent = void;
};

class PieceList final : public Pieces::State {
 public:
  /// Pieces from number kMarkCount on, all different and none of them a mark.
  PieceList(PieceKind kind, std::vector<std::string> pieces) : kind_(kind) {
    pieces_.reserve(pieces.size() + kMarkCount);
    for (const char* mark : kMarks) pieces_.emplace_back(mark);
    for (auto& piece : pieces) pieces_.push_back(std::move(piece));
    ids_.reserve(pieces_.size());
    for (size_t i = 0; i < pieces_.size(); ++i) ids_.emplace(pieces_[i], static_cast<int32_t>(i));
  }

  PieceKind kind() const override { return kind_; }
  int64_t size() const override { return static_cast<int64_t>(pieces_.size()); }
  std::string piece(int64_t id) const override { return pieces_[static_cast<size_t>(id)]; }
  int64_t id(std::string_view piece) const override {
    const auto found = ids_.find(piece);
    return found == ids_.end() ? Pieces::kUnknown : found->second;
  }
  std::vector<std::string> cut(std::string_view line) const override {
    std::vector<std::string> texts;
    each_piece(kind_, line, [&](std::string_view piece) { texts.emplace_back(piece); });
    return texts;
  }
  std::vector<int32_t> encode(std::string_view line) const override {
    std::vector<int32_t> ids;
    each_piece(kind_, line, [&](std::string_view piece) {
      const int64_t known = id(piece);  // a text may say "<pad>", but that is no padding
      ids.push_back(static_cast<int32_t>(known < kMarkCount ? Pieces::kUnknown : known));
    });
    return ids;
  }
  std::string decode(const std::vector<int>& ids) const override {
    std::string text;
    for (const int id : ids) {
      if (kind_ != PieceKind::characters && !text.empty()) text += ' ';
      text += pieces_[static_cast<size_t>(id)];
    }
    return text;
  }
  std::string content() const override {
    std::string lines;
    for (size_t i = kMarkCount; i < pieces_.size(); ++i) lines += pieces_[i] + '\n';
    return lines;
  }

 private:
  PieceKind kind_;
  std::vector<std::string> pieces_;
  std::unordered_map<std::string, int32_t, PieceHash, std::equal_to<>> ids_;
};

bool is_mark(std::string_view piece) {
  return std::find(std::begin(kMarks), std::end(kMarks), piece) != std::end(kMarks);
}

}  // namespace

std::shared_ptr<const Pieces::State> train_list(const NextLine& next_line, const PieceOptions& options) {
  TORCH_CHECK(options.min_count >= 1, "pieces: min_count must be at least 1, got ", options.min_count);
  TORCH_CHECK(options.size == 0 || options.size > kMarkCount, "pieces: size must be at least ",
              kMarkCount + 1, " (four marks and a piece), or 0 for no limit, got ", options.size);
  std::unordered_map<std::string, int64_t, PieceHash, std::equal_to<>> counts;
  for (std::string line; next_line(line);) {
    each_piece(options.kind, line, [&](std::string_view piece) {
      const auto known = counts.find(piece);
      if (known != counts.end()) {
        ++known->second;
      } else if (piece.find('\n') == piece.npos && find_bad_utf8(piece) == piece.npos) {
        counts.emplace(piece, 1);
      }
    });
  }
  for (const char* mark : kMarks) counts.erase(mark);

  std::vector<std::pair<std::string, int64_t>> kept;
  for (const auto& entry : counts)
    if (entry.second >= options.min_count) kept.push_back(entry);
  TORCH_CHECK(!kept.empty(), "pieces: the training lines have no tokens (", name(options.kind),
              ") that occur ", options.min_count, " times or more");
  std::sort(kept.begin(), kept.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  if (options.size > 0) kept.resize(std::min(kept.size(), static_cast<size_t>(options.size - kMarkCount)));
  TORCH_CHECK(kept.size() < static_cast<size_t>(std::numeric_limits<int32_t>::max() - kMarkCount),
              "pieces: there must be fewer than 2^31 different ", name(options.kind), ", got ", kept.size(),
              "; raise min_count");
  std::vector<std::string> pieces;
  pieces.reserve(kept.size());
  for (auto& entry : kept) pieces.push_back(std::move(entry.first));
  return std::make_shared<PieceList>(options.kind, std::move(pieces));
}

std::shared_ptr<const Pieces::State> load_list(PieceKind kind, std::string_view content,
                                               const std::string& what) {
  std::vector<std::string> pieces;
  for (size_t begin = 0; begin < content.size();) {
    const size_t end = std::min(content.find('\n', begin), content.size());
    pieces.emplace_back(content.substr(begin, end - begin));
    begin = end + 1;
  }
  std::unordered_map<std::string_view, size_t> seen;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const auto& piece = pieces[i];
    bool whole = false;  // a line of nothing else gives it back
    each_piece(kind, piece, [&](std::string_view part) { whole = part == piece; });
    TORCH_CHECK(whole && !is_mark(piece) && find_bad_utf8(piece) == piece.npos, what, ":", i + 2,
                ": must be one of ", name(kind), ", got ", quote(piece));
    const auto [known, fresh] = seen.emplace(piece, i);
    TORCH_CHECK(fresh, what, ":", i + 2, ": a piece must occur once, ", quote(piece), " is already in line ",
                known->second + 2);
  }
  TORCH_CHECK(!pieces.empty(), what, " has no pieces");
  return std::make_shared<PieceList>(kind, std::move(pieces));
}

}  // namespace quatrain::data
