#include "quatrain/models/ctranslate2.h"
#include "support/atomic_file.h"
#include "support/atomic_folder.h"
#include "support/text.h"
#include "tasks/seq2seq/model.h"
#include "tasks/task_parts.h"

namespace quatrain::tasks {
namespace {

namespace fs = std::filesystem;
using data::PieceKind, data::Pieces;

std::vector<std::string> texts_of(const Pieces& pieces) {
  std::vector<std::string> texts;
  for (int64_t i = 0; i < pieces.size(); ++i) texts.push_back(pieces.piece(i));
  return texts;
}

// SentencePiece's own file: what Pieces::save() writes behind its first line.
void write_sentencepiece(const Pieces& pieces, const fs::path& file) {
  constexpr size_t kMost = size_t{1} << 30;
  pieces.save(file);
  const std::string text = read_file(file, kMost);
  write_text(file, text.substr(text.find('\n') + 1));
}

// How a line becomes what CTranslate2 takes.
std::string how_to_cut(PieceKind kind, const fs::path& folder) {
  switch (kind) {
    case PieceKind::unigram:
    case PieceKind::bpe:
      return "cut lines into pieces with SentencePiece and " + (folder / "source.spm").string() +
             ", and put translations together with " + (folder / "target.spm").string();
    case PieceKind::words:
      return "cut lines at white space";
    case PieceKind::basic_english:
      return "cut lines as torchtext's basic_english does";
    case PieceKind::characters:
      return "cut lines into characters, spaces too";
  }
  return "";
}

}  // namespace

std::vector<std::string> Seq2SeqModel::export_to(const ExportRequest& request) const {
  if (request.format != "ctranslate2") return Model::export_to(request);
  AtomicFolder made(request.folder);
  try {
    models::write_ctranslate2(made.path(), network, texts_of(pieces.source), texts_of(pieces.target));
  } catch (const std::invalid_argument& error) {
    throw RecipeError("the model cannot be written: " + without_function(error.what()));
  }
  const PieceKind kind = pieces.source.kind();
  if (data::is_sentencepiece(kind)) {
    write_sentencepiece(pieces.source, made.path() / "source.spm");
    write_sentencepiece(pieces.target, made.path() / "target.spm");
  }
  made.commit();
  std::vector<std::string> notes{how_to_cut(kind, request.folder) + "; CTranslate2 adds </s> itself"};
  if (own().limits.max_source > 0)
    notes.push_back("CTranslate2 cuts sources where its max_input_length says, 1,024 by default, not at " +
                    std::to_string(own().limits.max_source) + " pieces");
  return notes;
}

}  // namespace quatrain::tasks
