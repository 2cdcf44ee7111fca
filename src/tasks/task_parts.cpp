#include "tasks/task_parts.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <stdexcept>

#include "quatrain/nn/weights.h"
#include "quatrain/scores/classification.h"
#include "support/atomic_file.h"
#include "support/numbers.h"
#include "support/text.h"
#include "train/checksum.h"

namespace quatrain::tasks {
namespace {

bool same_in_any_order(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return std::is_permutation(a.begin(), a.end(), b.begin(), b.end());
}

}  // namespace

namespace fs = std::filesystem;

void load_own_weights(torch::nn::Module& module, const fs::path& folder, const std::string& files) {
  try {
    nn::load_weights(module, folder / "model.safetensors");
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(std::string(error.what()) + "; do " + files + " beside it belong to it?");
  }
}

std::vector<std::string> notes_of(const data::BadExamples& bad, const std::string& what) {
  std::vector<std::string> all;
  for (const auto& one : bad.reasons)
    all.push_back(one.set + (one.set.empty() ? "" : " set: ") + counted(one.count, what) + " left out (" +
                  one.reason + "), the first at " + one.first);
  return all;
}

train::Selection selection_by(const Figure& figure) {
  return {figure.name, figure.higher_is_better};
}

double share_of(const std::vector<int64_t>& sums) {
  return sums[1] > 0 ? static_cast<double>(sums[0]) / static_cast<double>(sums[1]) : 0;
}

void add_label_figures(train::Evaluation& result, std::string_view split,
                       const std::vector<std::string>& labels, const std::string& part) {
  scores::LabelTally tally(static_cast<int64_t>(labels.size()));
  for (size_t i = 0; i < result.targets.size(); ++i) tally.add(result.predictions[i], result.targets[i]);
  auto& figures = result.figures;
  figures["accuracy"] = tally.all().recall();
  figures["f1"] = tally.f1();
  figures["count"] = static_cast<double>(tally.all().examples);
  for (size_t label = 0; label < labels.size(); ++label) {
    const scores::LabelCounts& counts = tally.of(static_cast<int64_t>(label));
    if (counts.examples == 0) continue;
    const std::string of = "/" + part + "=" + labels[label];
    figures["accuracy" + of] = counts.recall();
    figures["precision" + of] = counts.precision();
    figures["f1" + of] = counts.f1();
    figures["count" + of] = static_cast<double>(counts.examples);
  }
  result.files[std::string(split) + ".confusions.tsv"] = tally.confusion_table(labels, part);
}

std::string without_function(const std::string& said) {
  const size_t colon = said.find(": ");
  return colon == said.npos ? said : said.substr(colon + 2);
}

std::string list_of(const std::vector<int64_t>& indices) {
  std::string text;
  for (const int64_t i : indices) text += (text.empty() ? "" : ", ") + std::to_string(i);
  return text;
}

void write_labels(const fs::path& file, const std::vector<std::string>& labels) {
  std::string lines;
  for (const std::string& label : labels) lines += label + "\n";
  write_text(file, lines);
}

std::vector<std::string> read_labels(const fs::path& file) {
  std::ifstream stream = open_named(file);
  std::vector<std::string> labels;
  std::set<std::string> known;
  for (std::string line; std::getline(stream, line);) {
    if (!known.insert(line).second)
      throw std::runtime_error(file.string() + " names " + quote(line) +
                               " twice, but must have another label in each line; copy it again");
    labels.push_back(std::move(line));
  }
  if (labels.size() < 2)
    throw std::runtime_error(file.string() + " must have two labels at least, one a line, got " +
                             std::to_string(labels.size()) + "; copy it again");
  return labels;
}

std::vector<std::string> head_of_other_labels(const std::vector<std::string>& labels, const fs::path& file) {
  if (same_in_any_order(read_labels(file), labels)) return {};
  return {"head"};
}

std::vector<int64_t> rows_of_labels(const std::vector<std::string>& labels, const fs::path& file) {
  const auto known = read_labels(file);
  std::vector<int64_t> rows;
  if (known == labels || !same_in_any_order(known, labels)) return rows;
  for (const auto& label : labels)
    rows.push_back(std::find(known.begin(), known.end(), label) - known.begin());
  return rows;
}

void add_group_figures(train::Evaluation& result, const std::vector<int64_t>& groups,
                       const data::Majority& majority, const std::function<std::string(int64_t)>& name_of) {
  std::map<int64_t, std::vector<int64_t>> shares;  // right answers and all
  for (size_t i = 0; i < groups.size(); ++i) {
    if (groups[i] < 0) continue;
    auto& share = shares.try_emplace(groups[i], 2).first->second;
    share[0] += result.predictions[i] == result.targets[i];
    ++share[1];
  }
  for (const auto& [group, share] : shares) {
    const std::string of = "/" + name_of(group);
    result.figures["accuracy" + of] = share_of(share);
    result.figures["majority" + of] = majority.by_group.at(group).share();
    result.figures["count" + of] = static_cast<double>(share[1]);
  }
}

Recipe recipe_of_vocabulary(const DataRequest& request) {
  nn::add_algebras(request.vocabulary / "model.safetensors");  // which the recipe may name
  return read_recipe((request.vocabulary / "recipe.toml").string());
}

void refuse_overruled(Recipe asked, Recipe taken, const DataRequest& request) {
  const auto before = keys_of(asked), after = keys_of(taken);
  for (size_t i = 0; i < before.size(); ++i) {
    const std::string name = before[i].full_name();
    const auto origin = asked.origins.find(name);
    if (origin != asked.origins.end() && origin->second.starts_with("--set ") &&
        before[i].get() != after[i].get())
      asked.refuse(name, "would do nothing: the vocabulary is that of " + request.vocabulary.string() +
                             ", from which the weights are taken");
  }
}

std::vector<std::string> note_of_vocabulary(const DataRequest& request) {
  if (request.model || request.resumes || request.vocabulary.empty()) return {};
  return {"the vocabulary is that of " + request.vocabulary.string() + ", from which the weights are taken"};
}

void note_head(std::vector<std::string>& notes, const DataRequest& request,
               const std::vector<std::string>& labels, const char* file) {
  if (request.model || request.resumes || request.vocabulary.empty()) return;
  const fs::path known = request.vocabulary / file;
  if (!head_of_other_labels(labels, known).empty()) notes.push_back(note_of_new_head(labels.size(), known));
}

std::string note_of_new_head(size_t labels, const fs::path& known) {
  return "the last layer starts from random weights: the labels of these data, " + std::to_string(labels) +
         " in all, are not those in " + known.string();
}

void add_checksums(Checksums& checksums, const std::vector<fs::path>& files) {
  for (const auto& file : files) checksums[file.filename().string()] = train::checksum_of_file(file);
}

void store_checksums(const Checksums& checksums, const fs::path& folder) {
  for (const auto& [file, checksum] : checksums) write_text(folder / (file + ".checksum"), checksum + "\n");
}

std::vector<std::string> other_than_stored(const Checksums& checksums, const fs::path& folder) {
  std::vector<std::string> others;
  for (const auto& [file, checksum] : checksums) {
    const fs::path path = folder / (file + ".checksum");
    if (!fs::exists(path)) continue;
    std::ifstream stream = open_named(path);
    std::string stored;
    std::getline(stream, stored);
    if (stored != checksum) others.push_back(file);
  }
  return others;
}

std::string label_counts(const std::vector<std::string>& labels, const std::vector<int64_t>& examples,
                         const std::string& what) {
  constexpr size_t kMost = 10;
  std::vector<int64_t> counts(labels.size());
  for (const int64_t label : examples) ++counts[static_cast<size_t>(label)];
  std::vector<std::string> parts;
  for (size_t i = 0; i < std::min(kMost, labels.size()); ++i)
    parts.push_back(shorten(labels[i]) + " " + grouped(counts[i]));
  std::string text = "labels: " + join(parts);
  if (labels.size() > kMost) text += " and " + grouped(static_cast<int64_t>(labels.size() - kMost)) + " more";
  return text + " of " + grouped(std::ssize(examples)) + " " + what;
}

}  // namespace quatrain::tasks
