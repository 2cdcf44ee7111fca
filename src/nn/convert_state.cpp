#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <set>

#include "nn/algebra_metadata.h"
#include "nn/check.h"
#include "nn/fill_nearest.h"
#include "nn/head_order.h"
#include "quatrain/nn/convert.h"
#include "quatrain/ops.h"

namespace quatrain::nn {
namespace {

// "a.b.S" -> "a.b"; empty where the last part is another.
std::string layer_of(const std::string& tensor, const std::string& part) {
  const std::string end = "." + part;
  return tensor.ends_with(end) ? tensor.substr(0, tensor.size() - end.size()) : "";
}

bool looks_like_embedding(const std::string& layer) {
  std::string part;
  const auto is_embedding = [&] { return part.find("emb") != part.npos || part == "wte" || part == "wpe"; };
  for (const char c : layer) {
    if (c == '.') {
      if (is_embedding()) return true;
      part.clear();
    } else {
      part += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return is_embedding();
}

// Files have no two names for one tensor; tied weights are there twice.
bool same_values(const at::Tensor& a, const at::Tensor& b) {
  if (a.is_same(b)) return true;
  if (a.scalar_type() != b.scalar_type() || a.numel() != b.numel() || a.numel() == 0) return false;
  const at::Tensor x = a.cpu().contiguous(), y = b.cpu().contiguous();
  return std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0 && x.any().item<bool>();
}

constexpr const char* kConvolution =
    "is a convolution, of which a file has not all options: convert the run, or the model in Python";

class StateConverter {
 public:
  StateConverter(Safetensors& state, const ConvertStateOptions& options) : state_(state), options_(options) {
    for (const auto& [name, tensor] : state.tensors)
      own_ = own_ || (!layer_of(name, "S").empty() && tensor.dim() == 3);
  }

  ConversionReport run() {
    report_.algebra = options_.algebra().text();
    report_.before = count();
    // A layer's reason to stay may be another layer, so all are settled before the first is changed.
    for (const auto& [name, tensor] : state_.tensors) {
      const std::string layer = layer_of(name, own_ ? "S" : "weight");
      keep_convolution(name, tensor);
      if (layer.empty() || !is_linear(tensor)) continue;
      const int64_t size = tensor.numel() + numel(layer + ".bias");
      report_.layers.push_back({layer,
                                tensor.size(-1),
                                tensor.size(-2) * (own_ ? tensor.size(0) : 1),
                                size,
                                size,
                                {},
                                reason(layer, name, tensor)});
      if (own_) report_.layers.back().in_features *= tensor.size(0);
      if (own_ && report_.layers.back().skipped.empty()) attention_of(layer);
    }
    for (LayerConversion& layer : report_.layers)
      if (layer.skipped.empty()) convert(layer);
    report_.after = count();
    return std::move(report_);
  }

 private:
  // The file does not say how a convolution is made of its kernel: groups, and which axis is the input's.
  void keep_convolution(const std::string& name, const at::Tensor& tensor) {
    const bool ours = !layer_of(name, "F").empty();
    const std::string layer = layer_of(name, ours ? "F" : "weight");
    const int64_t first = ours ? 1 : 0;  // behind n blocks
    if (layer.empty() || !tensor.is_floating_point() || tensor.dim() < first + 3) return;
    const int64_t n = ours ? tensor.size(0) : 1, size = tensor.numel() + numel(layer + ".bias");
    report_.layers.push_back(
        {layer, n * tensor.size(first + 1), n * tensor.size(first), size, size, {}, kConvolution});
  }

  bool is_linear(const at::Tensor& tensor) const {
    return tensor.is_floating_point() && tensor.dim() == (own_ ? 3 : 2);
  }

  int64_t count() const {
    int64_t sum = 0;
    for (const auto& [name, tensor] : state_.tensors)
      if (tensor.is_floating_point()) sum += tensor.numel();
    return sum;
  }

  int64_t numel(const std::string& name) const {
    const at::Tensor* found = state_.find(name);
    return found ? found->numel() : 0;
  }

  std::string reason(const std::string& layer, const std::string& name, const at::Tensor& tensor) const {
    if (own_) {
      const auto algebra = state_.metadata.find(std::string(kAlgebra) + layer);
      if (algebra != state_.metadata.end()) return "is hypercomplex already (" + algebra->second + ")";
      if (tensor.size(0) != 1) return "is hypercomplex, and the file does not say its algebra";
    }
    if (options_.except() && options_.except()(layer)) return "excluded by except";
    if (options_.where() ? !options_.where()(layer) : !own_ && looks_like_embedding(layer))
      return options_.where() ? "excluded by where" : "its name looks like an embedding's";
    for (const auto& [other, values] : state_.tensors)
      if (other != name && same_values(tensor, values)) return "its weight is tied to " + other;
    for (const int64_t axis : {-1, -2})
      if (tensor.size(axis) == 0 || tensor.size(axis) % n() != 0)
        return c10::str("n = ", n(), " does not divide ", tensor.size(axis));
    return "";
  }

  int64_t n() const { return options_.algebra().n; }

  // The attention module that a layer of our own file belongs to, to be converted whole; empty: none.
  std::string attention_of(const std::string& layer) const {
    const size_t dot = layer.rfind('.');
    const std::string parent = dot == layer.npos ? "" : layer.substr(0, dot + 1);
    const std::string child = layer.substr(parent.size());
    for (const auto& parts :
         {std::set<std::string>{"query", "key", "value", "output"}, {"packed", "output"}}) {
      const bool all = std::all_of(parts.begin(), parts.end(),
                                   [&](const auto& part) { return state_.find(parent + part + ".S"); });
      if (!parts.contains(child) || !all) continue;
      const at::Tensor& output = *state_.find(parent + "output.S");
      require(
          options_.heads() > 0, "convert_state: '",
          parent.substr(0, parent.size() - (parent.empty() ? 0 : 1)),
          "' is attention, whose channels change places with the algebra: say its number of heads (heads; 1 "
          "leaves the places)");
      const int64_t width = output.size(-1) * output.size(0);
      require_divisible("convert_state", "an attention's width", width, options_.heads() * n(), "n * heads");
      return parent;
    }
    return "";
  }

  // In the places of the new layer's heads, if it is of attention that is converted whole.
  at::Tensor order_of(const std::string& layer, int64_t width, int64_t parts) const {
    const std::string parent = attention_of(layer);
    if (parent.empty()) return {};
    for (const LayerConversion& other : report_.layers) {
      const bool sibling =
          other.name.starts_with(parent) && other.name.find('.', parent.size()) == other.name.npos;
      if (sibling && !other.skipped.empty()) return {};
    }
    const auto real = MultiheadAttentionOptions(width, options_.heads()).algebra("real");
    return head_order(real, MultiheadAttentionOptions(real).algebra(options_.algebra()), parts);
  }

  void convert(LayerConversion& layer) {
    const std::string key = layer.name + (own_ ? ".S" : ".weight");
    const auto place = std::find_if(state_.tensors.begin(), state_.tensors.end(),
                                    [&](const auto& item) { return item.first == key; });
    at::Tensor H = own_ ? place->second[0] : place->second;
    if (own_) {
      const std::string child = layer.name.substr(layer.name.rfind('.') + 1);
      const bool output = child == "output";
      const at::Tensor order = order_of(layer.name, layer.in_features, child == "packed" ? 3 : 1);
      if (order.defined()) {
        H = H.index_select(output ? 1 : 0, order);
        const auto bias = std::find_if(state_.tensors.begin(), state_.tensors.end(),
                                       [&](const auto& item) { return item.first == layer.name + ".bias"; });
        if (!output && bias != state_.tensors.end()) bias->second = bias->second.index_select(0, order);
      }
    }
    const algebra::Spec& spec = options_.algebra();
    const ops::Nearest found = ops::nearest(H, spec.text());
    layer.error = found.error;
    layer.after += found.S.numel() - H.numel();
    *place = {layer.name + ".S", found.S};
    const auto add = [&](const char* part, const at::Tensor& values) {
      state_.tensors.emplace_back(layer.name + part, values);
      layer.after += values.numel();
    };
    if (spec.learned) add(".A", found.A);
    if (spec.weighted) add(".w", torch::ones({spec.n}, found.S.options()));
    note_algebra(state_.metadata, layer.name, spec);
  }

  Safetensors& state_;
  const ConvertStateOptions& options_;
  ConversionReport report_;
  bool own_ = false;
};

}  // namespace

ConversionReport convert_state(Safetensors& state, const ConvertStateOptions& options) {
  const at::NoGradGuard no_grad;
  require(options.algebra().n > 1, "convert_state: the algebra must be hypercomplex, got ",
          options.algebra().text(), " (quaternion, phm(4), ...)");
  require(options.heads() >= 0, "convert_state: heads must not be negative, got ", options.heads());
  return StateConverter(state, options).run();
}

}  // namespace quatrain::nn
