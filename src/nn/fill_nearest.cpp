#include "nn/fill_nearest.h"

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <set>

#include "nn/check.h"
#include "nn/head_order.h"
#include "nn/real_state.h"
#include "nn/torch_layers.h"
#include "quatrain/nn/attention.h"
#include "quatrain/nn/convert.h"
#include "quatrain/nn/linear.h"
#include "quatrain/nn/multiplies_inputs.h"
#include "quatrain/ops.h"

namespace quatrain::nn {
namespace {

std::string shown(const std::string& name) {
  return name.empty() ? "the module" : "'" + name + "'";
}

void copy(const at::Tensor& from, const at::Tensor& to, const std::string& name) {
  require(from.sizes() == to.sizes(), "fill_nearest: '", name, "' must have one shape in both models, got ",
          from.sizes(), " and ", to.sizes(),
          ": it is copied as it is; where it depends on the algebra, as a whitening norm does, leave it out "
          "of both models, or train the twin from its own start");
  to.copy_(from);
}

// Rows or columns taken in another order; undefined indices leave it.
at::Tensor ordered(const at::Tensor& t, int64_t axis, const at::Tensor& order) {
  return order.defined() && t.defined() ? t.index_select(axis, order.to(t.device())) : t;
}

// With rows of zeros where n does not divide their number and the twin has the next multiple: those of tokens
// that a vocabulary in an algebra is filled up by.
at::Tensor filled_up(const at::Tensor& rows, int64_t wanted, int64_t n) {
  if (!rows.defined() || rows.dim() == 0 || rows.size(0) >= wanted || rows.size(0) + n <= wanted) return rows;
  std::vector<int64_t> more(static_cast<size_t>(2 * rows.dim()), 0);
  more.back() = wanted - rows.size(0);
  return at::constant_pad_nd(rows, more);
}

class Filler {
 public:
  explicit Filler(ConversionReport& report) : report_(report) {}

  void visit(const torch::nn::Module& real, torch::nn::Module& twin, const std::string& name) {
    if (const auto* multiplies = dynamic_cast<const MultipliesInputs*>(&twin))
      same_products(real, *multiplies, name);
    if (auto* layer = dynamic_cast<LinearImpl*>(&twin)) return linear(real, *layer, name, {}, {});
    if (auto* attention = dynamic_cast<MultiheadAttentionImpl*>(&twin))
      if (const auto* from = dynamic_cast<const MultiheadAttentionImpl*>(&real))
        return this->attention(*from, *attention, name);
    if (auto* layer = dynamic_cast<HypercomplexLayer*>(&twin)) return weights(real, twin, *layer, name);
    tensors(real.named_parameters(false), twin.named_parameters(false), name);
    tensors(real.named_buffers(false), twin.named_buffers(false), name);
    visit_children(real, twin, name);
  }

 private:
  static void same_products(const torch::nn::Module& real, const MultipliesInputs& twin,
                            const std::string& name) {
    const auto* from = dynamic_cast<const MultipliesInputs*>(&real);
    const std::string algebra = twin.algebra_of_products().text();
    require(
        !from || from->algebra_of_products().text() == algebra, "fill_nearest: ", shown(name),
        " cannot be converted to ", algebra,
        ", because it multiplies its inputs, and their products are others there: train the twin from its "
        "own start");
  }

  void visit_children(const torch::nn::Module& real, torch::nn::Module& twin, const std::string& name) {
    children(real, twin, name, [&](const auto& from, auto& to, const std::string& child) {
      visit(from, to, joined(name, child));
    });
  }

  void attention(const MultiheadAttentionImpl& real, MultiheadAttentionImpl& twin, const std::string& name) {
    require(real.options.width() == twin.options.width() && real.options.heads() == twin.options.heads(),
            "fill_nearest: ", shown(name), " must have one width and number of heads in both models, got ",
            real.options.width(), " / ", real.options.heads(), " and ", twin.options.width(), " / ",
            twin.options.heads());
    children(real, twin, name, [&](const auto& from, auto& to, const std::string& child) {
      const at::Tensor order = head_order(real.options, twin.options, child == "packed" ? 3 : 1);
      const bool output = child == "output";
      linear(from, dynamic_cast<LinearImpl&>(to), joined(name, child), output ? at::Tensor() : order,
             output ? order : at::Tensor());
    });
  }

  // A layer of any other kind: weight by weight, and what else it has, from where they lie in the real layer.
  void weights(const torch::nn::Module& real, torch::nn::Module& twin, HypercomplexLayer& layer,
               const std::string& name) {
    require_same_recurrence(real, twin, shown(name));
    require_same_convolution(real, twin, shown(name));
    const auto* from = dynamic_cast<const HypercomplexLayer*>(&real);
    if (from && from->algebra().text() == layer.algebra().text() && keys(*from) == keys(layer)) {
      copy_weights(real, twin, layer, name);
    } else {
      if (from)
        require(layer.bound_to_algebra().empty(), "fill_nearest: ", shown(name), " cannot be converted to ",
                layer.algebra().text(), ": ", layer.bound_to_algebra());
      nearest_weights(RealState(real), twin, layer, name);
    }
    tensors(real.named_buffers(false), twin.named_buffers(false), name);
    visit_children(real, twin, name);
  }

  static std::vector<std::string> keys(const HypercomplexLayer& layer) {
    std::vector<std::string> result;
    for (const HypercomplexWeight* weight : layer.weights()) result.push_back(weight->key());
    return result;
  }

  // Of one algebra: the parameters as they are.
  void copy_weights(const torch::nn::Module& real, torch::nn::Module& twin, const HypercomplexLayer& layer,
                    const std::string& name) {
    tensors(real.named_parameters(false), twin.named_parameters(false), name);
    for (const HypercomplexWeight* weight : layer.weights()) {
      weight->drop_prepared();
      const int64_t count = part_count(*weight);
      report_.layers.push_back({weight_name(name, layer, *weight),
                                weight->in_features(),
                                weight->out_features(),
                                count,
                                count,
                                {},
                                "is of the algebra " + weight->spec().text() + " in both"});
    }
  }

  void nearest_weights(const RealState& real, torch::nn::Module& twin, HypercomplexLayer& layer,
                       const std::string& name) {
    auto own = twin.named_parameters(false);
    std::set<std::string> taken;
    const auto take = [&](const std::string& parameter) {
      const auto place = layer.place_in_real(parameter);
      require(real.contains(place.name), "fill_nearest: '", joined(name, parameter),
              "' is in the twin, not in the real model");
      taken.insert(place.name);
      return std::pair(place, real.part(place, "fill_nearest: '" + joined(name, parameter) + "'"));
    };
    report_.algebra = layer.algebra().text();
    for (HypercomplexWeight* weight : layer.weights()) {
      const auto [place, whole] = take(weight->key());
      const at::Tensor H = filled_up(whole, weight->out_features(), layer.algebra().n);
      const std::string full = weight_name(name, layer, *weight);
      const int64_t columns =
          weight->S.numel() * weight->S.size(0) / weight->out_features();  // with the kernel
      require(H.dim() >= 2 && H.size(0) == weight->out_features() && H.numel() == columns * H.size(0),
              "fill_nearest: '", full, "' must have one size in both models, got ", H.sizes(), " and ",
              weight->in_features(), " -> ", weight->out_features());
      const int64_t before = real.count(place.name) * whole.size(0) / real.rows(place.name);
      LayerConversion line{
          full, weight->in_features(), weight->out_features(), before, part_count(*weight), {}, {}};
      line.error = weight->set_nearest(H);
      for (const auto& part : weight->parts()) own.erase(part.name);
      report_.layers.push_back(std::move(line));
    }
    for (const auto& item : own) copy(take(item.key()).second, item.value(), joined(name, item.key()));
    for (const std::string& parameter : real.names())
      require(taken.contains(parameter), "fill_nearest: '", joined(name, parameter),
              "' is in the real model, not in the twin");
  }

  // The order of the twin's rows and columns, in places of the real one.
  void linear(const torch::nn::Module& real, LinearImpl& twin, const std::string& name,
              const at::Tensor& rows, const at::Tensor& columns) {
    at::Tensor H, bias;
    std::string same;
    if (const auto* from = dynamic_cast<const LinearImpl*>(&real)) {
      H = from->matrix();
      bias = from->bias;
      const auto &a = from->options.algebra(), &b = twin.options.algebra();
      if (a.text() == b.text()) same = "is of the algebra " + a.text() + " in both";
    } else if (const auto* torchs = dynamic_cast<const torch::nn::LinearImpl*>(&real)) {
      H = torchs->weight;
      bias = torchs->bias;
      if (twin.options.algebra().n == 1) same = "is real in both";
    } else {
      refuse("fill_nearest: ", shown(name), " must be a linear layer in both models, got ", real.name());
    }
    H = filled_up(H, twin.options.out_features(), twin.options.algebra().n);
    bias = filled_up(bias, twin.options.out_features(), twin.options.algebra().n);
    LayerConversion line{name, H.size(1), H.size(0), parameter_count(real), parameter_count(twin), {}, same};
    require(H.size(0) == twin.options.out_features() && H.size(1) == twin.options.in_features(),
            "fill_nearest: ", shown(name), " must have one size in both models, got ", H.size(1), " -> ",
            H.size(0), " and ", twin.options.in_features(), " -> ", twin.options.out_features());
    require(bias.defined() == twin.bias.defined(), "fill_nearest: ", shown(name),
            " must have a bias in both models or in neither");
    const bool moved = rows.defined() || columns.defined();
    if (!same.empty() && !moved && dynamic_cast<const LinearImpl*>(&real)) {
      tensors(real.named_parameters(false), twin.named_parameters(false), name);
      ops::drop_prepared(twin.S);
    } else {
      if (twin.bias.defined()) twin.bias.copy_(ordered(bias, 0, rows));
      const double error = twin.set_nearest(ordered(ordered(H, 0, rows), 1, columns));
      if (same.empty() || twin.options.algebra().n > 1) {
        line.error = error;
        line.skipped.clear();
        report_.algebra = twin.options.algebra().text();
      }
    }
    report_.layers.push_back(std::move(line));
  }

  template <typename Dict>
  void tensors(const Dict& real, const Dict& twin, const std::string& name) {
    for (const auto& item : twin) {
      const std::string full = joined(name, item.key());
      const at::Tensor* from = real.find(item.key());
      require(from != nullptr, "fill_nearest: '", full, "' is in the twin, not in the real model");
      copy(*from, item.value(), full);
    }
    require(real.size() == twin.size(), "fill_nearest: ", shown(name), " has ", real.size(),
            " tensors of its own in the real model, ", twin.size(), " in the twin");
  }

  template <typename Each>
  void children(const torch::nn::Module& real, torch::nn::Module& twin, const std::string& name,
                const Each& each) {
    const auto from = real.named_children();
    const auto to = twin.named_children();
    for (const auto& child : to) {
      const auto* found = from.find(child.key());
      require(found != nullptr, "fill_nearest: '", joined(name, child.key()),
              "' is in the twin, not in the real model");
      each(**found, *child.value(), child.key());
    }
    require(from.size() == to.size(), "fill_nearest: ", shown(name), " has ", from.size(),
            " children in the real model, ", to.size(), " in the twin");
  }

  ConversionReport& report_;
};

}  // namespace

void fill_part(const torch::nn::Module& real, torch::nn::Module& twin, const std::string& name,
               ConversionReport& report) {
  const at::NoGradGuard no_grad;
  Filler(report).visit(real, twin, name);
}

ConversionReport fill_nearest(const torch::nn::Module& real, torch::nn::Module& twin) {
  const at::NoGradGuard no_grad;
  ConversionReport report;
  Filler(report).visit(real, twin, "");
  report.before = parameter_count(real);
  report.after = parameter_count(twin);
  return report;
}

}  // namespace quatrain::nn
