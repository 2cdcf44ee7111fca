#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "quatrain/data/bad_examples.h"
#include "quatrain/data/example.h"
#include "quatrain/tasks/about.h"
#include "quatrain/tasks/kind.h"
#include "quatrain/train/task.h"

/// What the tasks of several kinds do alike.
namespace quatrain::tasks {

/// Selects by that figure of the dev set.
train::Selection selection_by(const Figure& figure);

/// A figure that is a share, of the sums {those that count, all}; 0 of none.
double share_of(const std::vector<int64_t>& sums);

/// What the predictions and targets of an evaluation, numbers of labels, say of the answers: accuracy, F1 and
/// count; those and the precision of each label that occurs ("precision/label=good"); and the file
/// SPLIT.confusions.tsv. `part` is what a label is called.
void add_label_figures(train::Evaluation& result, std::string_view split,
                       const std::vector<std::string>& labels, const std::string& part = "label");

/// Loads the weights of a checkpoint. Where they do not fit, the error asks whether the files that the module
/// was made by belong to them: "recipe.toml and classes.txt (10 classes)".
void load_own_weights(torch::nn::Module& module, const std::filesystem::path& folder,
                      const std::string& files);

/// What there is to say of examples that were left out; `what` one is called: "pair".
std::vector<std::string> notes_of(const data::BadExamples& bad, const std::string& what);

/// What an error says without the function that says it: of "filter_bank: too many" what follows the colon.
std::string without_function(const std::string& said);

/// Numbers of examples for a message: "3, 17, 20".
std::string list_of(const std::vector<int64_t>& indices);

/// The names of labels in a file of a checkpoint, a line each. Reading throws where they are not two at
/// least, each another one.
void write_labels(const std::filesystem::path& file, const std::vector<std::string>& labels);
std::vector<std::string> read_labels(const std::filesystem::path& file);

/// The module that starts anew where training starts from the weights of a run whose labels, in this file of
/// its checkpoint, are others: "head"; else none.
std::vector<std::string> head_of_other_labels(const std::vector<std::string>& labels,
                                              const std::filesystem::path& file);
/// Model::head_rows for these labels.
std::vector<int64_t> rows_of_labels(const std::vector<std::string>& labels,
                                    const std::filesystem::path& file);

/// Accuracy and count of each group of the examples, with the share of its commonest label beside. `groups`:
/// of each example, below 0 of none; `name_of` a group: "attractors=2".
void add_group_figures(train::Evaluation& result, const std::vector<int64_t>& groups,
                       const data::Majority& majority, const std::function<std::string(int64_t)>& name_of);

/// The recipe of the checkpoint whose vocabulary is taken (DataRequest::vocabulary).
Recipe recipe_of_vocabulary(const DataRequest& request);
/// An error where a setting of the command line has another value in `taken`, which has that run's.
void refuse_overruled(Recipe asked, Recipe taken, const DataRequest& request);
/// Gives the options of a kind those of that recipe which belong to its vocabulary: take(own, known).
template <class Own, class Take>
void take_options(Recipe& recipe, const DataRequest& request, const Take& take) {
  const Recipe asked = recipe, known = recipe_of_vocabulary(request);
  take(recipe.own<Own>(), known.own<Own>());
  if (!request.resumes) refuse_overruled(asked, recipe, request);
}
/// What there is to say where one is taken; a note or none.
std::vector<std::string> note_of_vocabulary(const DataRequest& request);
/// Adds what there is to say where the labels in this file of that checkpoint are others.
void note_head(std::vector<std::string>& notes, const DataRequest& request,
               const std::vector<std::string>& labels, const char* file);
std::string note_of_new_head(size_t labels, const std::filesystem::path& known);

/// The checksums of the files that a run's data were read from, by the files' names.
using Checksums = std::map<std::string, std::string>;

void add_checksums(Checksums& checksums, const std::vector<std::filesystem::path>& files);

/// Writes each into a checkpoint's folder as FILE.checksum: a resumed run compares them and names the file
/// that is another.
void store_checksums(const Checksums& checksums, const std::filesystem::path& folder);

/// The names of those that differ from what was stored there; one that was not stored is not compared.
std::vector<std::string> other_than_stored(const Checksums& checksums, const std::filesystem::path& folder);

/// What there is to say of the labels of a training set, by the number of each example's: "labels: bad 30,
/// good 31 of 61 texts".
std::string label_counts(const std::vector<std::string>& labels, const std::vector<int64_t>& examples,
                         const std::string& what);

}  // namespace quatrain::tasks
