#include "tasks/sequence_keys.h"

namespace quatrain::tasks {
namespace {

constexpr double kLongest = 1 << 20;
constexpr double kMostPieces = kLongest * 16;
constexpr double kMostSeen = 1e12;

}  // namespace

// One shape for all entries reads better than what fits on a line.
// clang-format off
void describe_pieces(train::Keys& keys, data::PieceOptions& pieces, std::string& file) {
  using data::PieceKind;
  constexpr const char *kLearned = "an empty vocabulary.file", *kListed = "vocabulary.pieces = characters, words or basic_english, and an empty vocabulary.file",
                       *kTrained = "vocabulary.pieces = unigram or bpe, and an empty vocabulary.file";
  const auto are_learned = [&file] { return file.empty(); };
  const auto are_trained = [&pieces, &file] { return file.empty() && data::is_sentencepiece(pieces.kind); };
  const auto are_listed = [&pieces, &file] { return file.empty() && !data::is_sentencepiece(pieces.kind); };
  keys.text("file", file,
            "A model of SentencePiece (`spm.model`) whose pieces are taken; empty: pieces are learned. A relative path that is not here is looked for in the data folder. A run keeps a copy.");
  keys.choice("pieces", pieces.kind, {PieceKind::characters, PieceKind::words, PieceKind::basic_english, PieceKind::unigram, PieceKind::bpe},
              "`characters`; `words` between white space; `basic_english` (torchtext's tokenizer of that name); pieces of words as "
              "SentencePiece finds them, by a `unigram` language model or by `bpe`.").only(kLearned, are_learned);
  keys.number("size", pieces.size, 0, kMostPieces,
              "Number of pieces, four marks included: exactly so many for `unigram` and `bpe`, else at most, the commonest first; 0: no limit.").only(kLearned, are_learned);
  keys.number("min_count", pieces.min_count, 1, kMostSeen, "`characters` and words seen less often become `<unk>`.").only(kListed, are_listed);
  keys.text("normalization", pieces.normalization, "SentencePiece's normalisation of text (`unigram`, `bpe`).",
            {"nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"}).only(kTrained, are_trained);
  keys.flag("byte_fallback", pieces.byte_fallback, "Characters without a piece become their bytes instead of `<unk>` (`unigram`, `bpe`).").only(kTrained, are_trained);
  keys.number("coverage", pieces.coverage, 0.98, 1, "Share of the text whose characters get a piece (`unigram`, `bpe`).").only(kTrained, are_trained);
  keys.number("sample", pieces.sample, 1, 1e9, "Most lines that `unigram` and `bpe` learn from, drawn by the seed; fewer where they are more than 256 MiB.").only(kTrained, are_trained);
}

void describe_sequence(train::Keys& keys, models::SequenceSettings& settings) {
  using models::OutputLayer, models::Positions;
  keys.flag("embedding_in_algebra", settings.embedding_in_algebra, "Embeddings are in the model's algebra. Where n does not divide the size of the vocabulary, unused entries fill it up.");
  keys.flag("embedding_scale", settings.embedding_scale, "Embeddings are multiplied by the square root of the width.");
  keys.choice("output", settings.output, {OutputLayer::tied, OutputLayer::real, OutputLayer::algebra},
              "What scores the next token: the embedding of what is written (`tied`), a `real` linear map, or one in the model's `algebra`.");
  keys.choice("positions", settings.positions, {Positions::sinusoidal, Positions::learned}, "Fixed sinusoids or learned vectors.");
  keys.number("max_positions", settings.max_length, 1, kLongest, "Learned positions: the longest text.").only("model.positions = learned", [&settings] { return settings.positions == Positions::learned; });
}
// clang-format on

data::Pieces load_pieces(const std::string& file, data::PieceOptions& pieces) {
  data::Pieces loaded = data::Pieces::load_sentencepiece(file);
  pieces.kind = loaded.kind();
  pieces.size = loaded.size();
  return loaded;
}

}  // namespace quatrain::tasks
