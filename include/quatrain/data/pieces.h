#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "quatrain/api.h"

namespace quatrain::data {

/// What a line is cut into.
///   characters     its characters (Unicode code points), spaces too
///   words          what stands between white space
///   basic_english  torchtext's tokenizer of that name: lower case, marks of punctuation are words, others
///                  (quotes, semicolons, colons) are dropped
///   unigram, bpe   pieces of words, found by SentencePiece
enum class PieceKind { characters, words, basic_english, unigram, bpe };
/// All of them, for lists and messages.
inline constexpr std::array kPieceKinds{PieceKind::characters, PieceKind::words, PieceKind::basic_english,
                                        PieceKind::unigram, PieceKind::bpe};
QUATRAIN_API const char* name(PieceKind kind);
/// True for the kinds that SentencePiece learns.
QUATRAIN_API bool is_sentencepiece(PieceKind kind);
/// True for the kinds whose pieces are words.
QUATRAIN_API bool is_of_words(PieceKind kind);
/// The text in one line, and in one column of a table: control characters become spaces.
QUATRAIN_API std::string in_one_line(std::string text);
/// An unknown name is an error that lists the known ones.
QUATRAIN_API PieceKind parse_piece_kind(std::string_view name);

/// Options of Pieces::train.
struct QUATRAIN_API PieceOptions {
  PieceKind kind = PieceKind::unigram;
  /// How many pieces, the four marks included. unigram, bpe: exactly. Others: at most, the commonest are
  /// kept; 0: no limit.
  int64_t size = 8000;
  int64_t min_count = 1;  ///< characters, words, basic_english: rarer ones become <unk>
  // The rest is SentencePiece's: unigram, bpe.
  std::string normalization =
      "nmt_nfkc";              ///< nmt_nfkc, nfkc, nmt_nfkc_cf, nfkc_cf (cf: lower case), identity
  bool byte_fallback = false;  ///< characters that no piece has become their bytes instead of <unk>
  double coverage = 1.0;       ///< share of the text whose characters are pieces
  int64_t sample = 1000000;    ///< lines it learns from at most, drawn by the seed
  /// Bytes of these lines at most; fewer lines are drawn where they are long. unigram takes 25 times the
  /// memory, bpe 5 times.
  int64_t sample_bytes = 256 << 20;
  uint64_t seed = 0;
};

/// How lines become numbers and numbers lines. A copy shares what it holds, which never changes; all of it
/// may be called from several threads at once.
class QUATRAIN_API Pieces {
 public:
  static constexpr int64_t kPad = 0, kUnknown = 1, kBegin = 2, kEnd = 3;

  /// Learns the pieces from lines, which should be those of the training set alone; `next_line` gives them
  /// one after another and false at the end. The result is the same on every machine. No lines, or too few
  /// for the size asked for: an error that names the largest possible size. `tell`, where given, is told now
  /// and then how many lines were read, and when SentencePiece begins to learn from much text.
  static Pieces train(const std::function<bool(std::string&)>& next_line, const PieceOptions& options,
                      const std::function<void(const std::string&)>& tell = {});
  /// Reads what save() wrote. Errors name the file.
  static Pieces load(const std::filesystem::path& file);
  /// Reads a model of SentencePiece (spm.model), unigram or bpe, that others have trained. Its marks,
  /// whatever they are, become ours, and its other pieces follow in their order. Errors name the file.
  static Pieces load_sentencepiece(const std::filesystem::path& file);
  /// One file for every kind, which says what it is. Written beside and renamed.
  void save(const std::filesystem::path& file) const;

  PieceKind kind() const;
  /// The marks included.
  int64_t size() const;
  /// The piece's text; the marks are <pad>, <unk>, <s>, </s>.
  std::string piece(int64_t id) const;
  /// The number of a piece, or kUnknown.
  int64_t id(std::string_view piece) const;

  /// Without begin and end marks; a text never becomes a mark other than <unk>. A line without words gives
  /// none.
  std::vector<int32_t> encode(std::string_view line) const;
  /// What `encode` looks up, one text for each number: characters, words, basic_english. SentencePiece's
  /// pieces are an error.
  std::vector<std::string> cut(std::string_view line) const;
  /// The text as a reader would write it. <pad>, <s> and </s> are left out, <unk> is written so.
  std::string decode(const std::vector<int64_t>& ids) const;
  /// The same of what follows a text: with the space before its first word, which SentencePiece leaves out.
  std::string decode_following(const std::vector<int64_t>& ids) const;

  /// The same kind, pieces and numbers: whatever one encodes, the other encodes alike.
  bool operator==(const Pieces& other) const;

  struct State;

 private:
  explicit Pieces(std::shared_ptr<const State> state);
  std::shared_ptr<const State> state_;
};

}  // namespace quatrain::data
