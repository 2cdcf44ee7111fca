#include "quatrain/nn/convert.h"

#include <torch/nn/module.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <functional>
#include <map>
#include <vector>

#include "nn/fill_nearest.h"
#include "nn/real_state.h"
#include "nn/torch_layers.h"
#include "quatrain/nn/attention.h"
#include "quatrain/nn/linear.h"
#include "quatrain/ops.h"

namespace quatrain::nn {
namespace {

// Puts a layer that was made with the defaults where the old one was.
void settle(torch::nn::Module& layer, const at::Tensor& like, bool training) {
  layer.to(like.device(), like.scalar_type());
  layer.train(training);
}

class Converter {
 public:
  Converter(const ConvertOptions& options, ConversionReport& report) : options_(options), report_(report) {}

  // The names of every weight's tensor, to find tied weights.
  void note_owners(const torch::nn::Module& module, const std::string& name) {
    for (const auto& item : module.named_parameters(false))
      owners_[item.value().unsafeGetTensorImpl()].push_back(joined(name, item.key()));
    for (const auto& child : module.named_children()) note_owners(*child.value(), joined(name, child.key()));
  }

  // Finds what becomes of each layer and makes the twins; the model stays as it is until apply().
  void visit(torch::nn::Module& module, const std::string& name) {
    if (auto* layer = dynamic_cast<HypercomplexLayer*>(&module)) {
      hypercomplex(module, *layer, name);
    } else if (const auto torchs = torch_layer(module)) {
      replacement(module, *torchs, nullptr, name);
    } else if (is_recurrent(module)) {
      const at::Tensor first = module.parameters(false).front();
      LayerConversion kept = line(name, first.size(1), first.size(0), parameter_count(module));
      kept.skipped =
          "a recurrent layer of torch::nn is held by its type: build quatrain::nn's and take fill_nearest";
      report_.layers.push_back(std::move(kept));
    } else if (auto* found = dynamic_cast<MultiheadAttentionImpl*>(&module);
               !found || !attention(*found, name)) {
      auto* sequential = dynamic_cast<torch::nn::SequentialImpl*>(&module);
      for (const auto& child : module.named_children()) {
        const std::string full = joined(name, child.key());
        const auto torchs = torch_layer(*child.value());
        if (!torchs)
          visit(*child.value(), full);
        else if (auto twin = replacement(*child.value(), *torchs, sequential, full); !twin.is_empty())
          changes_.emplace_back([sequential, key = child.key(), before = child.value(), twin] {
            replace(*sequential, key, before.get(), twin);
          });
      }
    }
  }

  // Puts all twins in their places: nothing here can fail, so that a model is converted wholly or not at all.
  void apply() const {
    for (const auto& change : changes_) change();
  }

 private:
  int64_t n() const { return options_.algebra().n; }

  // A Sequential calls the modules in its list, but reports its children: both must be replaced.
  static void replace(torch::nn::SequentialImpl& sequential, const std::string& name,
                      const torch::nn::Module* before, const torch::nn::AnyModule& after) {
    for (torch::nn::AnyModule& module : sequential)
      if (module.ptr().get() == before) module = after;
    sequential.replace_module(name, after.ptr());
  }

  // Why a layer stays as it is; empty where it does not.
  std::string reason(const std::string& name, const torch::nn::Module& layer, const at::Tensor& weight,
                     const std::string& key, int64_t in, int64_t out) const {
    if (options_.where() && !options_.where()(name, layer)) return "excluded by where";
    for (const std::string& other : owners_.at(weight.unsafeGetTensorImpl()))
      if (other != joined(name, key)) return "its weight is tied to " + other;
    for (const int64_t size : {in, out})
      if (size == 0 || size % n() != 0) return c10::str("n = ", n(), " does not divide ", size);
    return "";
  }

  std::string reason(const std::string& name, const torch::nn::Module& module,
                     const HypercomplexLayer& layer) const {
    if (layer.algebra().n > 1) return "is hypercomplex already (" + layer.algebra().text() + ")";
    if (n() > 1)
      if (std::string bound = layer.bound_to_algebra(); !bound.empty()) return bound;
    for (const HypercomplexWeight* weight : layer.weights()) {
      const auto found =
          reason(name, module, weight->S, weight->key(), weight->in_features(), weight->out_features());
      if (!found.empty()) return found;
    }
    return "";
  }

  LayerConversion line(const std::string& name, int64_t in, int64_t out, int64_t count) const {
    return {name, in, out, count, count, {}, {}};
  }

  // A line for each weight; the layer's other parameters count with its first.
  std::vector<LayerConversion> lines(const std::string& name, const torch::nn::Module& module,
                                     const HypercomplexLayer& layer) const {
    std::vector<LayerConversion> result;
    int64_t rest = 0;
    for (const at::Tensor& parameter : module.parameters(false)) rest += parameter.numel();
    for (const HypercomplexWeight* weight : layer.weights()) {
      int64_t count = 0;
      for (const auto& part : weight->parts()) count += part.value.numel();
      result.push_back(
          line(weight_name(name, layer, *weight), weight->in_features(), weight->out_features(), count));
      rest -= count;
    }
    result.front().before += rest;
    result.front().after += rest;
    return result;
  }

  // In place, so that whoever holds the layer holds the new one.
  void hypercomplex(torch::nn::Module& module, HypercomplexLayer& layer, const std::string& name) {
    auto done = lines(name, module, layer);
    const std::string skipped = reason(name, module, layer);
    if (skipped.empty()) {
      const auto twin = layer.with_algebra(options_.algebra());
      settle(*twin, layer.weights().front()->S, module.is_training());
      ConversionReport filled;
      if (!options_.fresh()) fill_part(module, *twin, name, filled);
      keep_frozen(module, *twin);
      // The twin may have other weights: one for each gate.
      auto& made = dynamic_cast<HypercomplexLayer&>(*twin);
      done = lines(name, *twin, made);
      int64_t rest = parameter_count(module);
      for (size_t i = 0; i < done.size(); ++i) {
        done[i].before = made.weights()[i]->S.numel() * n();
        rest -= done[i].before;
        if (!options_.fresh()) done[i].error = filled.layers[i].error;
      }
      done.front().before += rest;
      changes_.emplace_back([&layer, twin] {
        for (const HypercomplexWeight* weight : layer.weights()) weight->drop_prepared();
        layer.become(*twin);
      });
    }
    for (LayerConversion& one : done) {
      one.skipped = skipped;
      report_.layers.push_back(std::move(one));
    }
  }

  // The layer to stand in the place of one of torch's; empty where that stays.
  torch::nn::AnyModule replacement(const torch::nn::Module& module, const TorchLayer& layer,
                                   const torch::nn::SequentialImpl* sequential, const std::string& name) {
    LayerConversion done = line(name, layer.in, layer.out, parameter_count(module));
    done.skipped = reason(name, module, layer.weight, "weight", layer.in, layer.out);
    if (done.skipped.empty() && layer.groups > 1)
      done.skipped =
          "its groups are runs of channels, where a hypercomplex layer's are parts of every component";
    torch::nn::AnyModule twin;
    if (done.skipped.empty() && sequential) twin = twin_of(module, options_.algebra());
    if (done.skipped.empty() && twin.is_empty())
      done.skipped = (layer.convolution ? "a convolution of torch::nn" : "a torch::nn::Linear") +
                     std::string(" can be replaced only in a torch::nn::Sequential");
    if (done.skipped.empty()) {
      torch::nn::Module& made = *twin.ptr();
      auto& weight = dynamic_cast<HypercomplexWeight&>(made);
      settle(made, layer.weight, module.is_training());
      const at::Tensor bias = layer.bias.defined() ? made.named_parameters(false)["bias"] : at::Tensor();
      if (!options_.fresh()) {
        done.error = weight.set_nearest(layer.H.detach());
        if (bias.defined()) bias.copy_(layer.bias);
      }
      keep_frozen(weight, layer.weight.requires_grad());
      if (bias.defined()) bias.set_requires_grad(layer.bias.requires_grad());
      done.after = parameter_count(made);
    }
    report_.layers.push_back(std::move(done));
    return twin;
  }

  static void keep_frozen(HypercomplexWeight& twin, bool trained) {
    for (const auto& part : twin.parts()) at::Tensor(part.value).set_requires_grad(trained);
  }

  // Frozen parameters stay frozen; new parameters of a weight follow it, and parts of one weight that one.
  static void keep_frozen(const torch::nn::Module& before, torch::nn::Module& twin) {
    const auto known = before.named_parameters();
    std::map<std::string, bool> trained;
    visit_layers(before, "", [&](const std::string& name, const HypercomplexLayer& layer) {
      for (const HypercomplexWeight* weight : layer.weights())
        trained[joined(name, layer.place_in_real(weight->key()).name)] = weight->S.requires_grad();
    });
    visit_layers(twin, "", [&](const std::string& name, HypercomplexLayer& layer) {
      for (HypercomplexWeight* weight : layer.weights()) {
        const auto found = trained.find(joined(name, layer.place_in_real(weight->key()).name));
        if (found != trained.end()) keep_frozen(*weight, found->second);
      }
    });
    for (const auto& item : twin.named_parameters())
      if (const at::Tensor* same = known.find(item.key()))
        at::Tensor(item.value()).set_requires_grad(same->requires_grad());
  }

  // Converts the module as a whole if all its layers can be converted. Otherwise returns false; then its
  // layers are converted one by one, and its heads stay.
  bool attention(MultiheadAttentionImpl& attention, const std::string& name) {
    const auto& o = attention.options;
    if (o.algebra().n > 1 || o.width() % (n() * o.heads()) != 0) return false;
    bool whole = true;
    visit_layers(attention, name, [&](const std::string& child, const HypercomplexLayer& layer) {
      whole = whole && reason(child, dynamic_cast<const torch::nn::Module&>(layer), layer).empty();
    });
    if (!whole) return false;
    auto options = MultiheadAttentionOptions(o).algebra(options_.algebra());
    if (!options_.fresh()) options.attention(AttentionKind::real);
    MultiheadAttention twin(options);
    settle(*twin, attention.output->S, attention.is_training());
    ConversionReport filled;
    if (!options_.fresh()) fill_part(attention, *twin, name, filled);
    keep_frozen(attention, *twin);
    size_t place = 0;
    for (const auto& child : attention.named_children()) {
      const auto& before = *child.value()->as<LinearImpl>();
      LayerConversion done = line(joined(name, child.key()), before.in_features(), before.out_features(),
                                  parameter_count(before));
      if (!options_.fresh()) done.error = filled.layers[place++].error;
      done.after = parameter_count(*twin->named_children()[child.key()]);
      report_.layers.push_back(std::move(done));
    }
    changes_.emplace_back([&attention, twin] {
      for (const auto& child : attention.named_children()) child.value()->as<LinearImpl>()->drop_prepared();
      attention = *twin;
    });
    return true;
  }

  const ConvertOptions& options_;
  ConversionReport& report_;
  std::map<const c10::TensorImpl*, std::vector<std::string>> owners_;
  std::vector<std::function<void()>> changes_;
};

}  // namespace

ConversionReport convert(torch::nn::Module& module, const ConvertOptions& options) {
  const at::NoGradGuard no_grad;
  ConversionReport report;
  report.algebra = options.algebra().text();
  report.before = parameter_count(module);
  Converter converter(options, report);
  converter.note_owners(module, "");
  converter.visit(module, "");
  converter.apply();
  report.after = parameter_count(module);
  return report;
}

}  // namespace quatrain::nn
