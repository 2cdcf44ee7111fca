#include "quatrain/data/pieces.h"

#include <c10/util/Exception.h>
#include <zlib.h>

#include <array>
#include <cstdio>
#include <utility>

#include "data/pieces_state.h"
#include "data/sentencepiece_model.h"
#include "support/atomic_file.h"
#include "support/enum_names.h"
#include "support/numbers.h"
#include "support/telling.h"
#include "support/text.h"

namespace quatrain::data {
namespace {

constexpr EnumNames<PieceKind, 5> kPieceKindNames{{{PieceKind::characters, "characters"},
                                                   {PieceKind::words, "words"},
                                                   {PieceKind::basic_english, "basic_english"},
                                                   {PieceKind::unigram, "unigram"},
                                                   {PieceKind::bpe, "bpe"}}};

/// The first line of a file: what it holds, how many bytes follow, and their CRC-32.
std::string title(PieceKind kind, std::string_view content) {
  const auto sum = crc32_z(0, reinterpret_cast<const unsigned char*>(content.data()), content.size());
  std::array<char, 120> line{};
  std::snprintf(line.data(), line.size(), "quatrain pieces 1 %s %zu %08lx\n", name(kind), content.size(),
                static_cast<unsigned long>(sum));
  return line.data();
}

/// `what` begins the message of an error.
std::string content_of(const std::filesystem::path& file, const std::string& what) {
  constexpr size_t kMost = size_t{1} << 30;
  try {
    return read_file(file, kMost);
  } catch (const std::invalid_argument& error) {
    TORCH_CHECK(false, what, " cannot be read: ", error.what());
  }
}

}  // namespace

const char* name(PieceKind kind) {
  return name_of(kPieceKindNames, kind);
}
bool is_sentencepiece(PieceKind kind) {
  return kind == PieceKind::unigram || kind == PieceKind::bpe;
}
bool is_of_words(PieceKind kind) {
  return kind == PieceKind::words || kind == PieceKind::basic_english;
}
std::string in_one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  return text;
}
PieceKind parse_piece_kind(std::string_view text) {
  return parse_name(kPieceKindNames, "pieces:", text);
}

Pieces::Pieces(std::shared_ptr<const State> state) : state_(std::move(state)) {}

Pieces Pieces::train(const std::function<bool(std::string&)>& next_line, const PieceOptions& options,
                     const std::function<void(const std::string&)>& tell) {
  Telling telling(tell);
  int64_t count = 0;
  const NextLine told = [&](std::string& line) {
    if (!next_line(line)) return false;
    ++count;
    telling([&] { return "vocabulary: " + grouped(count) + " lines read"; });
    return true;
  };
  return Pieces(is_sentencepiece(options.kind) ? train_model(told, options, tell)
                                               : train_list(told, options));
}

Pieces Pieces::load(const std::filesystem::path& file) {
  const std::string what = "pieces: " + file.string(), text = content_of(file, what);
  const size_t end = text.find('\n');
  std::string first = text.substr(0, end == text.npos ? 0 : end + 1), content = text.substr(first.size());
  for (const PieceKind kind : kPieceKinds) {
    if (!first.starts_with("quatrain pieces 1 " + std::string(name(kind)) + " ")) continue;
    TORCH_CHECK(first == title(kind, content), what,
                " is damaged: its first line does not fit what follows; copy it again");
    return Pieces(is_sentencepiece(kind) ? load_model(kind, std::move(content), what)
                                         : load_list(kind, content, what));
  }
  TORCH_CHECK(false, what, " must begin with \"quatrain pieces 1\" and a kind (", list_names(kPieceKindNames),
              "); is it a file of pieces?");
}

Pieces Pieces::load_sentencepiece(const std::filesystem::path& file) {
  const std::string what = "pieces: " + file.string();
  SentencePieceModel model = with_our_marks(content_of(file, what), what);
  return Pieces(load_model(model.kind, std::move(model.content), what));
}

void Pieces::save(const std::filesystem::path& file) const {
  const std::string content = state_->content();
  write_text(file, title(kind(), content) + content);
}

PieceKind Pieces::kind() const {
  return state_->kind();
}

int64_t Pieces::size() const {
  return state_->size();
}

std::string Pieces::piece(int64_t id) const {
  TORCH_CHECK(id >= 0 && id < size(), "Pieces::piece: id must be from 0 to ", size() - 1, ", got ", id);
  return state_->piece(id);
}

int64_t Pieces::id(std::string_view piece) const {
  return state_->id(piece);
}

std::vector<int32_t> Pieces::encode(std::string_view line) const {
  return state_->encode(line);
}
std::vector<std::string> Pieces::cut(std::string_view line) const {
  return state_->cut(line);
}

std::string Pieces::decode(const std::vector<int64_t>& ids) const {
  std::vector<int> text;
  text.reserve(ids.size());
  for (const int64_t id : ids) {
    TORCH_CHECK_VALUE(id >= 0 && id < size(), "Pieces::decode: ids must be from 0 to ", size() - 1, ", got ",
                      id);
    if (id == kUnknown || id >= kMarkCount) text.push_back(static_cast<int>(id));
  }
  return in_one_line(state_->decode(text));  // pieces of bytes may be anything
}

std::string Pieces::decode_following(const std::vector<int64_t>& ids) const {
  constexpr std::string_view kSpace = "\u2581";
  const bool begins_word = is_sentencepiece(kind()) && !ids.empty() && piece(ids.front()).starts_with(kSpace);
  return (begins_word ? " " : "") + decode(ids);
}

bool Pieces::operator==(const Pieces& other) const {
  return state_ == other.state_ || (kind() == other.kind() && state_->content() == other.state_->content());
}

}  // namespace quatrain::data
