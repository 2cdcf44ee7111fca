#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "quatrain/data/pieces.h"
#include "quatrain/models/seq2seq.h"
#include "quatrain/models/shortlist.h"
#include "quatrain/tasks/kind.h"
#include "tasks/seq2seq/options.h"

namespace quatrain::tasks {

/// The vocabularies of both sides; the same twice where they are joint.
struct PairPieces {
  data::Pieces source, target;

  /// source.pieces and, where they are not joint, target.pieces.
  void save(const std::filesystem::path& folder) const;
  static PairPieces load(const std::filesystem::path& folder, bool joint);
  /// Of the files in a folder, whose pieces it tells from all others.
  static std::string checksum(const std::filesystem::path& folder, bool joint);
  bool operator==(const PairPieces&) const = default;
};

/// An encoder-decoder with its vocabularies.
class Seq2SeqModel : public Model {
 public:
  Seq2SeqModel(Recipe recipe, PairPieces pieces);

  torch::nn::Module& module() override { return *network; }
  /// {source, target} or {source, target, source_padding, target_padding}: scores (B, L, vocabulary).
  at::Tensor forward(const std::vector<at::Tensor>& input) override;
  /// The best target of each line, or several with their scores, or scores of targets that are given, as
  /// [decode] says.
  std::vector<std::string> predict(const std::vector<std::string>& lines) override;
  /// Of lines "source", or "source, tab, target", whatever decode.reads says. A source alone has an empty
  /// target, of which the model reads the mark of its beginning.
  std::vector<at::Tensor> inputs(const std::vector<std::string>& lines) override;
  /// As targets are written.
  std::vector<std::string> texts(const std::vector<std::vector<int64_t>>& numbers) const override;
  void answer_with(const Model& other) override;
  void store(const std::filesystem::path& folder) const override { pieces.save(folder); }
  std::unique_ptr<Model> in_algebra(const std::string& algebra) const override;
  std::string summary() const override;
  /// Several batches, of lines that are alike in length.
  size_t portion() const override {
    return static_cast<size_t>(
        std::max(own().translation.batch, std::min<int64_t>(8 * own().translation.batch, 2048)));
  }
  std::vector<std::string> export_to(const ExportRequest& request) const override;

  const Seq2SeqTaskOptions& own() const { return recipe_.own<Seq2SeqTaskOptions>(); }
  /// A line as the network reads it.
  struct Source {
    std::vector<int64_t> tokens;  ///< with the mark of its end, cut at task.max_source
    bool empty = false, cut = false;
  };
  Source encode(const std::string& line) const;
  using Tokens = std::vector<int64_t>;
  /// The best targets of sources' tokens, the best first; each begins with its prefix, where there are any.
  std::vector<std::vector<models::Hypothesis>> translate(const std::vector<Tokens>& sources,
                                                         const models::TranslationOptions& options,
                                                         const std::vector<Tokens>& prefixes = {},
                                                         const std::function<void()>& after_batch = {});
  /// A target as [decode] writes it.
  struct Written {
    std::string text;
    Tokens places;  ///< of the source's tokens that its tokens come from; none where nothing asks for them
  };
  /// The text that a target was told to begin with, and how many of its tokens that is.
  struct Beginning {
    std::string text;
    size_t tokens = 0;
  };
  /// Targets of these lines, whose tokens are `sources`. Beginnings, of each or of none, stay as they were
  /// given.
  std::vector<Written> write(const std::vector<std::string>& lines, const std::vector<Tokens>& sources,
                             const std::vector<Tokens>& targets,
                             const std::vector<Beginning>& beginnings = {}) const;

  PairPieces pieces;
  models::Seq2Seq network{nullptr};
  /// Of the run that it was loaded from, where decode.shortlist asks for it.
  std::shared_ptr<const models::Shortlist> shortlist;
  /// The network, and those that answer with it.
  models::Ensemble ensemble() const;
  /// The most tokens beside a mark that all of them have a place for.
  int64_t most_places() const;

 private:
  struct Asked;
  Asked read(const std::vector<std::string>& lines);
  std::vector<std::string> search(const Asked& asked);
  std::vector<std::string> score(const Asked& asked);
  int64_t longest_source() const;
  /// A target's text as [decode] writes it: without the marks of cut words.
  std::string whole_words(std::string text) const;
  /// Most tokens of a target that is given, and the key that says so.
  std::pair<int64_t, const char*> longest_given() const;

  std::vector<models::Seq2Seq> others_;  // that answer together with this one
  std::vector<Tokens> banned_;           // decode.banned as tokens
  int64_t cut_ = 0, tokens_ = 0;         // of predict(): lines that were cut, and tokens of the targets
  double seconds_ = 0;
};

}  // namespace quatrain::tasks
