#include "quatrain/tasks/kind.h"

#include <torch/types.h>

#include <algorithm>
#include <map>

#include "support/nearest_name.h"
#include "support/text.h"

namespace quatrain::tasks {

void require_finite(const at::Tensor& rows) {
  const at::Tensor good = rows.isfinite().flatten(1).all(1);
  if (!good.all().item<bool>())
    throw LineError(static_cast<size_t>(good.logical_not().nonzero().min().item<int64_t>()),
                    "the answer is not finite: numbers of the line, or weights of the model, are too large");
}

std::string Model::line_problem(const std::string&) const {
  return "";
}

std::vector<at::Tensor> Model::inputs(const std::vector<std::string>&) {
  throw RecipeError("models of kind " + recipe_.about().name + " make no tensors of lines");
}

std::vector<std::string> Model::texts(const std::vector<std::vector<int64_t>>&) const {
  throw RecipeError("models of kind " + recipe_.about().name + " write no pieces of texts");
}

std::unique_ptr<Live> Model::listen(int64_t) {
  throw RecipeError("models of kind " + recipe_.about().name +
                    " answer lines, not sound: leave out --live, and pass the lines");
}

Recipe Model::recipe_alone() const {
  Recipe alone = recipe_;
  alone.twins.clear();
  alone.origins.clear();
  return alone;
}

void Model::answer_with(const Model& other) {
  const bool same = other.recipe().kind == recipe_.kind;
  throw RecipeError(same ? "models of kind " + recipe_.about().name + " answer alone"
                         : "they are of kinds " + recipe_.about().name + " and " +
                               other.recipe().about().name);
}

void Model::store(const std::filesystem::path&) const {}

std::vector<std::string> Model::keeps_own(const std::filesystem::path&) const {
  return {};
}

std::vector<int64_t> Model::head_rows(const std::filesystem::path&) const {
  return {};
}

std::unique_ptr<Model> Model::in_algebra(const std::string&) const {
  throw std::invalid_argument("models of kind " + recipe_.about().name +
                              " cannot be converted to another algebra");
}

std::vector<std::string> Model::export_to(const ExportRequest& request) const {
  const std::string& format = request.format;
  std::vector<std::string> able, formats;
  for (const Kind* kind : kinds())
    for (const auto& [name, scores_data] : kind->about().exports) {
      if (name == format) able.push_back(kind->about().name);
      if (std::find(formats.begin(), formats.end(), name) == formats.end()) formats.push_back(name);
    }
  if (able.empty())
    throw RecipeError("there is no format '" + format + "' to write a model in" +
                      did_you_mean(format, formats) + ": the formats are " + join(formats));
  throw RecipeError("models of kind " + recipe_.about().name + " cannot be written for " + format +
                    ": those of kind " + join(able) + " can");
}

const About* find_about(std::string_view name) {
  for (const Kind* kind : kinds())
    if (kind->about().name == name) return &kind->about();
  return nullptr;
}

std::vector<std::string> groups_of(const std::map<std::string, double>& figures) {
  std::map<std::pair<int64_t, std::string>, std::string> groups;  // numbers by their value, then names
  const std::string_view prefix = "count/";
  for (const auto& [name, value] : figures) {
    const auto equals = name.find('=');
    if (!name.starts_with(prefix) || equals == name.npos) continue;
    const std::string of = name.substr(equals + 1);
    constexpr size_t kMostDigits = 18;  // of what an int64_t holds; a label may have any name
    const bool is_number =
        !of.empty() && of.size() <= kMostDigits && of.find_first_not_of("0123456789") == of.npos;
    groups.emplace(std::pair(is_number ? std::stoll(of) : std::numeric_limits<int64_t>::max(), of),
                   name.substr(prefix.size() - 1));
  }
  std::vector<std::string> all;
  for (const auto& [number, group] : groups) all.push_back(group);
  return all;
}

}  // namespace quatrain::tasks
