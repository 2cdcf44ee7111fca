#include "quatrain/nn/convert.h"

#include <torch/torch.h>

#include <map>
#include <typeinfo>
#include <vector>

#include "nn/fill_nearest.h"
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

  // Whose tensor is a weight, by all the names that it goes by.
  void note_owners(const torch::nn::Module& module, const std::string& name) {
    for (const auto& item : module.named_parameters(false))
      owners_[item.value().unsafeGetTensorImpl()].push_back(joined(name, item.key()));
    for (const auto& child : module.named_children()) note_owners(*child.value(), joined(name, child.key()));
  }

  void visit(torch::nn::Module& module, const std::string& name) {
    if (auto* layer = dynamic_cast<LinearImpl*>(&module)) {
      linear(*layer, name);
    } else if (const auto* torchs = dynamic_cast<const torch::nn::LinearImpl*>(&module)) {
      torch_linear(*torchs, nullptr, name);
    } else if (auto* found = dynamic_cast<MultiheadAttentionImpl*>(&module);
               !found || !attention(*found, name)) {
      auto* sequential = dynamic_cast<torch::nn::SequentialImpl*>(&module);
      for (const auto& child : module.named_children()) {
        const std::string full = joined(name, child.key());
        const auto* torchs = dynamic_cast<const torch::nn::LinearImpl*>(child.value().get());
        if (!torchs)
          visit(*child.value(), full);
        else if (Linear twin = torch_linear(*torchs, sequential, full); !twin.is_empty())
          replace(*sequential, child.key(), child.value().get(), twin);
      }
    }
  }

 private:
  int64_t n() const { return options_.algebra().n; }

  // A Sequential calls what is in its list, and tells of what is among its children.
  static void replace(torch::nn::SequentialImpl& sequential, const std::string& name,
                      const torch::nn::Module* before, const Linear& after) {
    for (torch::nn::AnyModule& module : sequential)
      if (module.ptr().get() == before) module = torch::nn::AnyModule(after);
    sequential.replace_module(name, after);
  }

  // Why a layer stays as it is; empty where it does not.
  std::string reason(const std::string& name, const torch::nn::Module& layer, const at::Tensor& weight,
                     const char* weight_name, int64_t in, int64_t out) const {
    if (options_.where() && !options_.where()(name, layer)) return "excluded by where";
    for (const std::string& other : owners_.at(weight.unsafeGetTensorImpl()))
      if (other != joined(name, weight_name)) return "its weight is tied to " + other;
    for (const int64_t size : {in, out})
      if (size == 0 || size % n() != 0) return c10::str("n = ", n(), " does not divide ", size);
    return "";
  }

  std::string reason(const std::string& name, const LinearImpl& layer) const {
    const auto& o = layer.options;
    if (o.algebra().n > 1) return "is hypercomplex already (" + o.algebra().text() + ")";
    return reason(name, layer, layer.S, "S", o.in_features(), o.out_features());
  }

  LayerConversion line(const std::string& name, int64_t in, int64_t out,
                       const torch::nn::Module& layer) const {
    const int64_t count = parameter_count(layer);
    return {name, in, out, count, count, {}, {}};
  }

  // In place, so that whoever holds the layer holds the new one.
  void linear(LinearImpl& layer, const std::string& name) {
    LayerConversion done = line(name, layer.options.in_features(), layer.options.out_features(), layer);
    done.skipped = reason(name, layer);
    if (done.skipped.empty()) {
      Linear twin(LinearOptions(layer.options).algebra(options_.algebra()));
      settle(*twin, layer.S, layer.is_training());
      fill(*twin, layer.S, layer.S[0], layer.bias, done);
      ops::drop_prepared(layer.S);
      layer = *twin;
    }
    report_.layers.push_back(std::move(done));
  }

  // The layer to stand in its place; null where it stays.
  Linear torch_linear(const torch::nn::LinearImpl& layer, const torch::nn::SequentialImpl* sequential,
                      const std::string& name) {
    const int64_t in = layer.options.in_features(), out = layer.options.out_features();
    LayerConversion done = line(name, in, out, layer);
    done.skipped = reason(name, layer, layer.weight, "weight", in, out);
    if (done.skipped.empty() && (!sequential || typeid(layer) != typeid(torch::nn::LinearImpl)))
      done.skipped = "a torch::nn::Linear can be replaced only in a torch::nn::Sequential";
    Linear twin{nullptr};
    if (done.skipped.empty()) {
      twin = Linear(LinearOptions(in, out).algebra(options_.algebra()).bias(layer.bias.defined()));
      settle(*twin, layer.weight, layer.is_training());
      fill(*twin, layer.weight, layer.weight, layer.bias, done);
    }
    report_.layers.push_back(std::move(done));
    return twin;
  }

  void fill(LinearImpl& twin, const at::Tensor& weight, const at::Tensor& H, const at::Tensor& bias,
            LayerConversion& done) {
    if (!options_.fresh()) done.error = set_nearest(twin, H.detach(), bias);
    keep_frozen(twin, weight, bias);
    done.after = parameter_count(twin);
  }

  static void keep_frozen(LinearImpl& twin, const at::Tensor& weight, const at::Tensor& bias) {
    for (const at::Tensor& part : {twin.A, twin.factors, twin.w, twin.S})
      if (part.defined()) part.set_requires_grad(weight.requires_grad());
    if (bias.defined()) twin.bias.set_requires_grad(bias.requires_grad());
  }

  // Whole, if all its layers can be; else false, and they are converted one by one, its heads as they are.
  bool attention(MultiheadAttentionImpl& attention, const std::string& name) {
    const auto& o = attention.options;
    if (o.algebra().n > 1 || o.width() % (n() * o.heads()) != 0) return false;
    for (const auto& child : attention.named_children())
      if (!reason(joined(name, child.key()), *child.value()->as<LinearImpl>()).empty()) return false;
    auto options = MultiheadAttentionOptions(o).algebra(options_.algebra());
    if (!options_.fresh()) options.attention(AttentionKind::real);
    MultiheadAttention twin(options);
    settle(*twin, attention.output->S, attention.is_training());
    ConversionReport filled;
    if (!options_.fresh()) fill_attention(attention, *twin, name, filled);
    size_t place = 0;
    for (const auto& child : attention.named_children()) {
      const auto& before = *child.value()->as<LinearImpl>();
      auto& after = *twin->named_children()[child.key()]->as<LinearImpl>();
      LayerConversion done = line(joined(name, child.key()), before.options.in_features(),
                                  before.options.out_features(), before);
      if (!options_.fresh()) done.error = filled.layers[place++].error;
      done.after = parameter_count(after);
      keep_frozen(after, before.S, before.bias);
      ops::drop_prepared(before.S);
      report_.layers.push_back(std::move(done));
    }
    attention = *twin;
    return true;
  }

  const ConvertOptions& options_;
  ConversionReport& report_;
  std::map<const c10::TensorImpl*, std::vector<std::string>> owners_;
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
  report.after = parameter_count(module);
  return report;
}

}  // namespace quatrain::nn
