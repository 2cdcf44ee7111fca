#include "train/state.h"

#include <torch/optim.h>
#include <torch/types.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "quatrain/nn/weights.h"
#include "quatrain/ops.h"
#include "support/atomic_file.h"
#include "train/own_json.h"

namespace quatrain::train {
namespace {

using Json = nlohmann::ordered_json;

const std::string kGenerator = "generator/";      // before the kind of its device
constexpr const char* kStructure = "/structure";  // after the name of a learned A, in older checkpoints
constexpr const char* kStructureFile = "structure.safetensors";

/// `older`: where else a checkpoint may have them; what is found there is taken out.
void take_structures(const NamedParameters& parameters, const std::filesystem::path& folder,
                     nn::NamedTensors& older) {
  const auto file = folder / kStructureFile;
  nn::Safetensors stored;
  if (std::filesystem::exists(file)) stored = nn::read_safetensors(file);
  for (const auto& [name, parameter] : parameters) {
    at::Tensor state;
    std::filesystem::path from = file;
    if (const at::Tensor* held = stored.find(name)) state = *held;
    std::erase_if(older, [&, &name = name](const auto& item) {
      if (item.first != name + kStructure) return false;
      state = item.second, from = folder / "training.safetensors";
      return true;
    });
    try {
      ops::set_structure_state(parameter, state);
    } catch (const c10::Error&) {
      throw std::runtime_error(
          "'" + from.string() + "' does not belong to the weights beside it: its factors of '" + name +
          "' are not theirs; put the right file back" +
          (from == file ? ", or delete it and accept that (quatrain check RUN --accept): then the model "
                          "computes without factors, and training finds new ones"
                        : ""));
    }
  }
}

// JSON has no infinity and no NaN, and null is that there is no figure: they are texts.
Json figure_json(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

double figure_of(const Json& json) {
  if (json.is_null()) return std::nan("");  // of best_figures, as older versions wrote it
  if (!json.is_string()) return json.get<double>();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (json == "nan") return std::nan("");
  return json == "inf" ? kInfinity : json == "-inf" ? -kInfinity : json.get<double>();
}

Json figures_json(const Figures& figures) {
  Json json = Json::object();
  for (const auto& [name, value] : figures) json[name] = figure_json(value);
  return json;
}

Json optional(const std::optional<double>& value) {
  return value ? figure_json(*value) : Json();
}

std::optional<double> optional(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional(figure_of(json));
}

Json to_json(const State& s) {
  return {
      {"step", s.step},
      {"steps_per_epoch", s.steps_per_epoch},
      {"evaluated_step", s.evaluated_step},
      {"figure", s.figure},
      {"last", optional(s.last)},
      {"best", optional(s.best)},
      {"best_step", s.best_step},
      {"best_figures", figures_json(s.best_figures)},
      {"bad", s.bad},
      {"stopped_early", s.stopped_early},
      {"plateau",
       {{"best", optional(s.plateau.best)}, {"bad", s.plateau.bad}, {"reductions", s.plateau.reductions}}},
      {"window_loss", s.window_loss},
      {"window_examples", s.window_examples},
      {"logged_loss", s.logged_loss},
      {"skipped", s.skipped},
      {"skipped_in_row", s.skipped_in_row},
      {"seconds", s.seconds},
      {"metrics_lines", s.metrics_lines},
      {"device", s.device}};
}

State from_json(const Json& json) {
  State s;
  json.at("step").get_to(s.step);
  json.at("steps_per_epoch").get_to(s.steps_per_epoch);
  json.at("evaluated_step").get_to(s.evaluated_step);
  s.last = optional(json.at("last"));
  s.best = optional(json.at("best"));
  json.at("best_step").get_to(s.best_step);
  for (const auto& [name, value] : json.at("best_figures").items()) s.best_figures[name] = figure_of(value);
  json.at("bad").get_to(s.bad);
  json.at("stopped_early").get_to(s.stopped_early);
  s.plateau.best = optional(json.at("plateau").at("best"));
  json.at("plateau").at("bad").get_to(s.plateau.bad);
  json.at("plateau").at("reductions").get_to(s.plateau.reductions);
  json.at("window_loss").get_to(s.window_loss);
  json.at("window_examples").get_to(s.window_examples);
  json.at("logged_loss").get_to(s.logged_loss);
  json.at("skipped").get_to(s.skipped);
  json.at("skipped_in_row").get_to(s.skipped_in_row);
  json.at("seconds").get_to(s.seconds);
  s.figure = json.value("figure", s.figure);  // older versions wrote none of these
  s.metrics_lines = json.value("metrics_lines", s.metrics_lines);
  s.device = json.value("device", s.device);
  return s;
}

}  // namespace

nn::NamedTensors structures_of(torch::nn::Module& module) {
  nn::NamedTensors structures;
  for (const auto& [name, parameter] : trained_parameters(module))
    if (const at::Tensor held = ops::structure_state(parameter); held.defined())
      structures.emplace_back(name, held);
  return structures;
}

void write_structures(const nn::NamedTensors& structures, const std::filesystem::path& folder) {
  if (!structures.empty()) nn::write_safetensors(folder / kStructureFile, structures);
}

void load_structures(torch::nn::Module& module, const std::filesystem::path& folder) {
  nn::NamedTensors none;
  take_structures(trained_parameters(module), folder, none);
}

void load_model(torch::nn::Module& module, const std::filesystem::path& folder) {
  nn::load_weights(module, folder / "model.safetensors");
  load_structures(module, folder);
}

void save_state(const State& state, const Session& session, const torch::optim::Optimizer& optimizer,
                const NamedParameters& parameters, const std::filesystem::path& folder) {
  nn::NamedTensors tensors = optimizer_state(optimizer, parameters);
  for (const auto& [kind, generator] : session.generators())
    tensors.emplace_back(kGenerator + kind, generator);
  nn::write_safetensors(folder / "training.safetensors", tensors);
  write_state(state, folder);
}

void write_state(const State& state, const std::filesystem::path& folder) {
  write_text(folder / "training.json", to_json(state).dump(2) + "\n");
}

State read_state(const std::filesystem::path& folder) {
  try {
    return from_json(read_own<Json>(folder / "training.json"));
  } catch (const Json::exception&) {
    throw std::runtime_error("'" + (folder / "training.json").string() +
                             "' cannot be read: it is not what a trainer wrote");
  }
}

State load_state(const Session& session, torch::optim::Optimizer& optimizer,
                 const NamedParameters& parameters, const std::filesystem::path& folder) {
  State state = read_state(folder);
  auto [tensors, metadata] = nn::read_safetensors(folder / "training.safetensors");
  Session::Generators generators;
  std::erase_if(tensors, [&](const auto& item) {
    const bool is_one = item.first.starts_with(kGenerator);
    if (is_one) generators.emplace_back(item.first.substr(kGenerator.size()), item.second);
    return is_one;
  });
  TORCH_CHECK(!generators.empty(), "'", (folder / "training.safetensors").string(),
              "' has no generator state");
  take_structures(parameters, folder, tensors);
  load_optimizer_state(optimizer, parameters, tensors);
  session.set_generators(generators, static_cast<uint64_t>(state.step));
  return state;
}

}  // namespace quatrain::train
