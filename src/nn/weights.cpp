#include "quatrain/nn/weights.h"

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "algebra/file.h"
#include "nn/algebra_metadata.h"
#include "nn/visit.h"
#include "quatrain/algebra.h"
#include "quatrain/nn/safetensors.h"
#include "quatrain/ops.h"
#include "support/numbers.h"
#include "support/text.h"

namespace quatrain::nn {
namespace {

// Parameters and buffers, in the order of the module.
NamedTensors state_of(const torch::nn::Module& module) {
  NamedTensors result;
  for (const auto& item : module.named_parameters()) result.emplace_back(item.key(), item.value());
  for (const auto& item : module.named_buffers()) result.emplace_back(item.key(), item.value());
  return result;
}

// Calls visit(name, algebra) for each hypercomplex layer; real layers have no algebra to tell.
template <typename Visit>
void visit_algebras(const torch::nn::Module& module, const Visit& visit) {
  visit_layers(module, "", [&](const std::string& name, const HypercomplexLayer& layer) {
    if (layer.algebra().n > 1) visit(name, layer.algebra());
  });
}

// Why a layer's stored algebra is not the module's; empty where it is.
std::string algebra_problem(const std::string& layer, const algebra::Spec& spec, const Texts& metadata) {
  const std::string shown = layer.empty() ? "the layer" : "layer '" + layer + "'";
  const auto found = metadata.find(std::string(kAlgebra) + layer);
  if (found == metadata.end()) return "the file does not say which algebra " + shown + " was trained with";
  return difference(shown, spec, found->second);
}

// True of these modules and of what they consist of.
bool is_part(const std::string& name, const std::vector<std::string>& modules) {
  return std::any_of(modules.begin(), modules.end(), [&](const std::string& module) {
    return name == module || name.starts_with(module + ".");
  });
}

std::vector<std::string> problems(const NamedTensors& state, const torch::nn::Module& module,
                                  const Safetensors& file, const std::vector<std::string>& without) {
  std::vector<std::string> result;
  visit_algebras(module, [&](const std::string& layer, const algebra::Spec& spec) {
    if (is_part(layer, without)) return;
    const std::string prefix = layer.empty() ? "" : layer + ".";
    const bool there = std::any_of(file.tensors.begin(), file.tensors.end(),
                                   [&](const auto& item) { return item.first.starts_with(prefix); });
    if (!there) return;  // which is said of its tensors
    if (auto problem = algebra_problem(layer, spec, file.metadata); !problem.empty())
      result.push_back(problem);
  });
  std::set<std::string> known;
  for (const auto& [name, tensor] : state) {
    known.insert(name);
    if (is_part(name, without)) continue;
    const at::Tensor* stored = file.find(name);
    if (!stored) {
      result.push_back(c10::str("the model's '", name, "' ", tensor.sizes(), " is not in the file"));
    } else if (stored->sizes() != tensor.sizes()) {
      result.push_back(c10::str("'", name, "' has shape ", stored->sizes(), " in the file and ",
                                tensor.sizes(), " in the model"));
    } else if (stored->is_floating_point() != tensor.is_floating_point() ||
               (!tensor.is_floating_point() && stored->scalar_type() != tensor.scalar_type())) {
      result.push_back(c10::str("'", name, "' has type ", stored->scalar_type(), " in the file and ",
                                tensor.scalar_type(), " in the model"));
    }
  }
  for (const auto& [name, tensor] : file.tensors)
    if (!known.contains(name) && !is_part(name, without))
      result.push_back(c10::str("the file's '", name, "' ", tensor.sizes(), " is not in the model"));
  for (const std::string& part : without) {
    const auto belongs = [&](const std::string& name) { return is_part(name, {part}); };
    if (!std::ranges::any_of(known, belongs) &&
        !std::ranges::any_of(file.tensors, [&](const auto& item) { return belongs(item.first); }))
      result.push_back("neither has a part '" + part + "' that could be left out");
  }
  return result;
}

}  // namespace

Safetensors weights_of(const torch::nn::Module& module) {
  Safetensors weights{state_of(module), {{"format", "pt"}}};
  visit_algebras(module, [&](const std::string& layer, const algebra::Spec& spec) {
    note_algebra(weights.metadata, layer, spec);
  });
  return weights;
}

void save_weights(const torch::nn::Module& module, const std::filesystem::path& path) {
  const Safetensors weights = weights_of(module);
  write_safetensors(path, weights.tensors, weights.metadata);
}

void load_weights(torch::nn::Module& module, const std::filesystem::path& path,
                  const std::vector<std::string>& without) {
  const Safetensors file = read_safetensors(path);
  const NamedTensors state = state_of(module);
  if (const auto found = problems(state, module, file, without); !found.empty()) {
    const std::string more =
        found.size() > 1 ? " (and " + counted(static_cast<int64_t>(found.size()) - 1, "more difference") + ")"
                         : "";
    throw std::runtime_error("weights: '" + path.string() + "' does not fit the model: " + found.front() +
                             more);
  }
  const torch::NoGradGuard no_grad;
  for (const auto& [name, tensor] : state) {
    if (is_part(name, without)) continue;
    at::Tensor(tensor).copy_(*file.find(name));
    ops::drop_prepared(tensor);
  }
}

void add_algebras(const std::filesystem::path& path) {
  for (const auto& [key, text] : read_safetensors(path).metadata) {
    if (!key.starts_with(kTable)) continue;
    const std::string name = key.substr(kTable.size());
    const std::string where =
        "add_algebras: '" + path.string() + "': the table of algebra '" + shorten(name) + "'";
    try {
      auto read = algebra::describe(text, algebra::Notation::json, where, name);
      const algebra::Algebra* known = nullptr;
      try {
        known = &algebra::get(name);
      } catch (const std::invalid_argument&) {
        algebra::add(name, read.n, std::move(read.table));
        continue;
      }
      if (known->table() != read.table)
        throw std::runtime_error(where + " differs from the algebra already registered under this name");
    } catch (const std::invalid_argument& error) {
      throw std::runtime_error(error.what());
    }
  }
}

}  // namespace quatrain::nn
