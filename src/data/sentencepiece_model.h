#pragma once

#include <array>
#include <string>
#include <string_view>

#include "quatrain/data/pieces.h"

namespace quatrain::data {

// The marks' names in a model. SentencePiece learns nothing from what a text has of these: of a text with the
// word "<unk>", as WikiText's, it would learn neither that word nor its brackets.
inline constexpr std::array kNamesOfMarks{"\uE000pad", "\uE000unk", "\uE000begin", "\uE000end"};

/// A model of SentencePiece, and what it finds.
struct SentencePieceModel {
  PieceKind kind = PieceKind::unigram;
  std::string content;
};

/// A model that others have trained, with our marks as its pieces 0 to 3, whatever marks it has and wherever,
/// and its other pieces behind them in their order: so it cuts lines as before. One of our own stays as it
/// is. What is no such model, is damaged or has no pieces of words: an error that begins with `what`, the
/// file.
SentencePieceModel with_our_marks(std::string_view model, const std::string& what);

}  // namespace quatrain::data
