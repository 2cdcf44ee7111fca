#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "quatrain/data/pieces.h"

namespace quatrain::data {

/// What Pieces share: one class for lists of pieces, one for SentencePiece's models.
struct Pieces::State {
  virtual ~State() = default;
  virtual PieceKind kind() const = 0;
  virtual int64_t size() const = 0;
  virtual std::string piece(int64_t id) const = 0;
  virtual int64_t id(std::string_view piece) const = 0;
  virtual std::vector<int32_t> encode(std::string_view line) const = 0;
  virtual std::vector<std::string> cut(std::string_view line) const = 0;
  /// Numbers of pieces that are no marks other than <unk>.
  virtual std::string decode(const std::vector<int>& ids) const = 0;
  /// What a file holds, without its first line. Equal contents are equal pieces.
  virtual std::string content() const = 0;
};

inline constexpr const char* kMarks[] = {"<pad>", "<unk>", "<s>", "</s>"};
inline constexpr int64_t kMarkCount = 4;

using NextLine = std::function<bool(std::string&)>;

/// characters, words, basic_english. `what` names the file in messages.
std::shared_ptr<const Pieces::State> train_list(const NextLine& next_line, const PieceOptions& options);
std::shared_ptr<const Pieces::State> load_list(PieceKind kind, std::string_view content,
                                               const std::string& what);
/// unigram, bpe. `tell` may be empty.
std::shared_ptr<const Pieces::State> train_model(const NextLine& next_line, const PieceOptions& options,
                                                 const std::function<void(const std::string&)>& tell);
std::shared_ptr<const Pieces::State> load_model(PieceKind kind, std::string content, const std::string& what);

}  // namespace quatrain::data
