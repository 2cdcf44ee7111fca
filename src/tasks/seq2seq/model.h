#pragma once

#include <memory>
#include <string>
#include <vector>

#include "quatrain/data/pieces.h"
#include "quatrain/models/seq2seq.h"
#include "quatrain/tasks/kind.h"
#include "tasks/seq2seq/options.h"

namespace quatrain::tasks {

/// The vocabularies of both sides; the same twice where they are joint.
struct PairPieces {
  data::Pieces source, target;

  /// source.pieces and, where they are not joint, target.pieces.
  void save(const std::filesystem::path& folder) const;
  static PairPieces load(const std::filesystem::path& folder, bool joint);
  bool operator==(const PairPieces&) const = default;
};

/// An encoder-decoder with its vocabularies.
class Seq2SeqModel : public Model {
 public:
  Seq2SeqModel(Recipe recipe, PairPieces pieces);

  torch::nn::Module& module() override { return *network; }
  /// {source, target} or {source, target, source_padding, target_padding}: scores (B, L, vocabulary).
  at::Tensor forward(const std::vector<at::Tensor>& input) override;
  /// The best target of each line, or several with their scores, as [decode] says.
  std::vector<std::string> predict(const std::vector<std::string>& lines) override;
  void store(const std::filesystem::path& folder) const override { pieces.save(folder); }
  void check_same_meaning(const std::filesystem::path& checkpoint) const override;
  std::unique_ptr<Model> in_algebra(const std::string& algebra) const override;
  std::string summary() const override;
  std::vector<std::string> export_to(const std::string& format,
                                     const std::filesystem::path& folder) const override;

  const Seq2SeqTaskOptions& own() const { return recipe_.own<Seq2SeqTaskOptions>(); }
  /// A line as the network reads it.
  struct Source {
    std::vector<int64_t> tokens;  ///< with the mark of its end, cut at task.max_source
    bool empty = false, cut = false;
  };
  Source encode(const std::string& line) const;
  /// The best targets of sources' tokens, the best first.
  std::vector<std::vector<models::Hypothesis>> translate(const std::vector<std::vector<int64_t>>& sources,
                                                         const models::TranslationOptions& options,
                                                         const std::function<void()>& after_batch = {});

  PairPieces pieces;
  models::Seq2Seq network{nullptr};

 private:
  std::vector<std::vector<int64_t>> banned_;  // decode.banned as tokens
  int64_t cut_ = 0, tokens_ = 0;              // of predict(): lines that were cut, and tokens of the answers
  double seconds_ = 0;
};

}  // namespace quatrain::tasks
