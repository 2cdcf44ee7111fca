#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "quatrain/data/sequence_store.h"
#include "quatrain/data/text_source.h"
#include "quatrain/data/window_loader.h"
#include "quatrain/tasks/kind.h"
#include "tasks/language_model/model.h"
#include "tasks/task_parts.h"

namespace quatrain::tasks {

/// One set: a text as tokens.
struct TextSet {
  std::shared_ptr<const data::TokenStore> text;
  int64_t words = 0;  ///< between white space, with the marks of ends
};

using TextSets = std::map<std::string, TextSet, std::less<>>;

/// Texts, and the pieces of the training set or those of a trained model.
class LanguageData : public Data {
 public:
  LanguageData(Recipe recipe, const data::TextCorpus& corpus, data::Pieces pieces,
               const DataRequest& request);

  bool has(std::string_view split) const override { return sets_->contains(split); }
  /// {tokens}.
  std::vector<Input> inputs(std::string_view split, const Recipe& recipe, int64_t size,
                            int64_t count) const override;
  std::unique_ptr<Model> make_model(const Recipe& recipe) const override;
  std::unique_ptr<train::Task> make_task(std::shared_ptr<Model> model) const override;
  std::vector<std::string> notes() const override { return notes_; }
  Checksums checksums() const override { return *checksums_; }

 private:
  data::Pieces pieces_;
  bool only_scored_;
  std::vector<std::string> notes_;
  std::shared_ptr<TextSets> sets_;
  std::shared_ptr<Checksums> checksums_;  // of the files, by name
};

/// See Kind::load_data.
std::unique_ptr<Data> load_texts(Recipe recipe, const DataRequest& request);

}  // namespace quatrain::tasks
