// Convolutions on a CPU through a plane's ways: in float32, and in bfloat16, which is multiplied in float32,
// where the processor has no much faster products of it. Everything else takes the composed form.

#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "ops/convolution/epilogue.h"
#include "ops/convolution/plane.h"
#include "ops/convolution/schema.h"
#include "ops/map/bilinear_map.h"
#include "ops/map/choice.h"
#include "ops/map/prepared.h"
#include "ops/memory/recycled.h"
#include "quatrain/layer_ops.h"

namespace quatrain::ops {

namespace {

/// as_matrices(), with F's own count of writes: a view that is made below autograd has one of its own, which
/// no write to F would move, and what is prepared of it would never be out of date.
at::Tensor matrices_of(const at::Tensor& F) {
  at::Tensor matrices = as_matrices(F);
  if (!F.is_inference() && matrices.is_alias_of(F))
    matrices.unsafeGetTensorImpl()->set_version_counter(F.unsafeGetTensorImpl()->version_counter());
  return matrices;
}

using plane::Images;
using plane::Plane;

/// The user lets oneDNN's convolutions compute with fewer bits than float32 has.
bool less_precision_allowed() {
  const auto precision =
      at::globalContext().float32Precision(at::Float32Backend::MKLDNN, at::Float32Op::CONV);
  return precision == at::Float32Precision::TF32 || precision == at::Float32Precision::BF16;
}

/// What a call is resolved to, once.
class Resolved {
 public:
  Resolved(const at::Tensor& x, const at::Tensor& F, const ConvolutionCall& call, BilinearMap::Pass pass)
      : versions_(F, call.map), call_(call), F_(F), plane_(plane::make_plane(x, F, call)) {
    const at::ScalarType dtype = call.map.compute_dtype(x);
    const bool widened = dtype == at::kBFloat16 && !has_fast_halves(),
               engine = dtype == at::kFloat || widened;
    const int64_t planes = plane_.batch * plane_.b_size[plane::kDeep], height = plane_.b_size[plane::kDown],
                  width = plane_.b_size[plane::kAcross];
    const bool fits = fits_winograd(F, call) && (engine || (call.axes() == 2 && call.groups == 1));
    plan_ = plan({.n = plane_.n,
                  .units_in = plane_.a_in_group(),
                  .units_out = plane_.b_in_group(),
                  .axes = call.axes(),
                  .planes = planes,
                  .height = height,
                  .width = width,
                  .fits_winograd = fits,
                  .engine = engine,
                  .plain_products = dtype == at::kDouble,
                  .fast_dense = widened && engine::multiplies_halves(),
                  .gives_A = call.map.learned() && pass == BilinearMap::Pass::backward,
                  .less_precision = engine && less_precision_allowed()},
                 call.map.way, call.winograd);
    composes_factors_ =
        call.map.way == Way::factored || (plan_.way == Way::factored && !engine && call.map.rank() > 0);
    if (!engine || plan_.way != Way::factored || x.numel() == 0) return;
    // Factors that are followed beside a learned A may be missing, and are not insisted on.
    if (call.map.rank() > 0) call_.map.way = Way::factored;
    map_.emplace(matrices_of(F), call_.map, planes * height * width, at::kFloat, pass,
                 BilinearMap::Use{.often = true});
    call_.map = map_->call();
  }

  bool on_engine() const { return map_ && map_->on_engine() && map_->way() == Way::factored; }
  /// For what the engine does not do: the call with its way decided.
  ConvolutionCall composed() const {
    ConvolutionCall call = call_;
    call.map.way = composes_factors_ ? Way::factored : Way::materialised;
    call.winograd = plan_.tile == 0 ? Winograd::none : plan_.tile == 2 ? Winograd::f2 : Winograd::f4;
    return call;
  }
  const Plane& plane() const { return plane_; }
  const engine::Mixings& factors() const { return map_->factors(); }
  /// F in float32, contiguous.
  const float* weights() const { return map_->weight().const_data_ptr<float>(); }

  /// From x's side of the plane to y's, or back.
  plane::Direction way(bool forward) const {
    const engine::Mixings& f = factors();
    const bool from_a = forward != call_.transposed;
    return forward ? plane::Direction{from_a, &f.V_in, &f.U_in, &f.W_out, f.rank}
                   : plane::Direction{from_a, &f.W_in, &f.U_in, &f.V_out, f.rank};
  }

  /// One way through the plane.
  void run(bool forward, const Images& in, const Images& out, const engine::Epilogue& epilogue) const {
    const plane::Direction taken = way(forward);
    const at::Tensor packed = packed_for(taken, forward);
    const float* weights = packed.const_data_ptr<float>();
    if (plan_.tile > 0)
      plane::run_winograd(plane_, taken, weights, plan_.tile, in, out, epilogue);
    else
      plane::run_direct(plane_, taken, weights, in, out, epilogue);
  }

  /// The gradients of F and A that are wanted, from images of a and the gradient of those of b. That of A
  /// needs the gradients of all n n blocks of H, which give F's too.
  std::tuple<at::Tensor, at::Tensor> weight_gradients(const at::Tensor& a, const at::Tensor& b, bool of_F,
                                                      bool of_A) const {
    const engine::Mixings& f = factors();
    const int64_t n = plane_.n;
    if (!of_A) {
      const plane::WeightPass pass{call_.transposed ? &f.W_in : &f.V_in, call_.transposed ? &f.V_in : &f.W_in,
                                   &f.U_out, f.rank, n};
      const at::Tensor dF = at::empty(F_.sizes(), F_.options().dtype(at::kFloat));
      run_weights(pass, a, b, dF);
      return {dF.to(F_.scalar_type()), at::Tensor()};
    }
    std::vector<double> outer(static_cast<size_t>(n * n * n)), inner = outer;  // block (i, j) is n i + j
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j)
        outer[static_cast<size_t>((n * i + j) * n + i)] = inner[static_cast<size_t>((n * i + j) * n + j)] = 1;
    const auto of_results = engine::Mixing::from_rows(outer.data(), n * n, n),
               of_inputs = engine::Mixing::from_rows(inner.data(), n * n, n);
    const plane::WeightPass pass{call_.transposed ? &of_results : &of_inputs,
                                 call_.transposed ? &of_inputs : &of_results, nullptr, n * n, n * n};
    const int64_t rows = F_.size(1), columns = map_->weight().size(2);
    const at::Tensor blocks = recycled_empty({n, n, rows, columns});
    run_weights(pass, a, b, blocks);
    const auto [dS, dA] =
        traced::weight_gradients(blocks.permute({0, 2, 1, 3}).reshape({n * rows, n * columns}),
                                 matrices_of(F_), call_.map, of_F, true);
    return {of_F ? dS.view(F_.sizes()) : dS, dA};
  }

 private:
  void run_weights(const plane::WeightPass& pass, const at::Tensor& a, const at::Tensor& b,
                   const at::Tensor& to) const {
    float* const data = to.mutable_data_ptr<float>();
    const at::Tensor from_a = plane::dense(a), from_b = plane::dense(b);
    const Images images_a = plane::images_of(from_a), images_b = plane::images_of(from_b);
    if (plan_.tile > 0)
      plane::run_winograd_weights(plane_, pass, plan_.tile, images_a, images_b, data);
    else
      plane::run_direct_weights(plane_, pass, images_a, images_b, data);
  }

  at::Tensor packed_for(const plane::Direction& taken, bool forward) const {
    const int64_t size = plan_.tile > 0 ? plane::winograd_packed_size(plane_, taken, plan_.tile)
                                        : plane::direct_packed_size(plane_, taken);
    const auto fill = [&](const at::Tensor& to) {
      float* const data = to.mutable_data_ptr<float>();
      plan_.tile > 0 ? plane::pack_winograd(plane_, taken, weights(), plan_.tile, data)
                     : plane::pack_direct(plane_, taken, weights(), data);
      return to;
    };
    if (!call_.map.constant || !forward) return fill(recycled_empty({size}));
    const auto reader = plan_.tile == 0 ? Form::direct : plan_.tile == 2 ? Form::winograd2 : Form::winograd4;
    at::DimVector geometry = geometry_of(call_);
    // A result that is smaller than a stride has fewer phases (direct_view.h).
    for (int axis = 0; call_.transposed && axis < plane::kAxes; ++axis)
      geometry.push_back(std::min(plane_.stride[axis], plane_.a_size[axis]));
    return prepared(F_, call_.map, versions_,
                    {reader, Way::factored, at::kFloat, F_.scalar_type(), map_->followed(), geometry},
                    [&] { return fill(at::empty({size}, F_.options().dtype(at::kFloat))); });
  }

  Versions versions_;  // before anything is read
  ConvolutionCall call_;
  at::Tensor F_;
  Plane plane_;
  ConvolutionPlan plan_;
  std::optional<BilinearMap> map_;
  bool composes_factors_ = false;  // where the engine does not serve
};

at::Tensor empty_result(const at::Tensor& x, const at::Tensor& F, const ConvolutionCall& call) {
  return empty_in_order(result_sizes(x, F, call), x.options().dtype(at::kFloat), format_of(x));
}

at::Tensor multiplied(const Resolved& resolved, const at::Tensor& x, const at::Tensor& F,
                      const ConvolutionFinish& finish, const ConvolutionCall& call) {
  const KernelEpilogue kernel(finish);
  const at::Tensor inputs = plane::dense(x), y = empty_result(x, F, call);
  resolved.run(true, plane::images_of(inputs), plane::images_of(y), kernel.epilogue());
  return (kernel.knows_activation() ? y : activation(finish.activation)(y)).to(call.map.compute_dtype(x));
}

/// True for a kernel of one pixel without padding: `linear` on the pixels that it meets.
bool pointwise(const at::Tensor& x, const at::Tensor& F, const ConvolutionCall& call) {
  if (call.transposed || call.groups != 1 || x.numel() == 0) return false;
  for (int64_t axis = 0; axis < call.axes(); ++axis)
    if (F.size(3 + axis) != 1 || call.padding[static_cast<size_t>(axis)] != 0) return false;
  return true;
}
/// These pixels, as a view of x.
at::Tensor met_pixels(const at::Tensor& x, const ConvolutionCall& call) {
  at::Tensor met = x;
  for (int64_t axis = 0; axis < call.axes(); ++axis)
    met = met.slice(2 + axis, std::nullopt, std::nullopt, call.stride[static_cast<size_t>(axis)]);
  return met;
}
bool channels_last(const at::Tensor& x) {
  return format_of(x) != at::MemoryFormat::Contiguous;
}
at::Tensor by_pixels(const at::Tensor& x, const at::Tensor& F, const Optional& bias,
                     const ConvolutionCall& call) {
  return dispatch_linear(met_pixels(x, call).movedim(1, -1), matrices_of(F), bias, call.map).movedim(-1, 1);
}

at::Tensor convolution_cpu(const at::Tensor& x, const at::Tensor& F, const Optional& bias,
                           const ConvolutionCall& call) {
  check_convolution("convolution", x, F, call);
  check_convolution_bias(bias, F, call);
  if (pointwise(x, F, call) && channels_last(x)) return by_pixels(x, F, bias, call);
  const Resolved resolved(x, F, call, BilinearMap::Pass::forward);
  if (!resolved.on_engine()) return composed::convolution(x, F, bias, resolved.composed());
  return multiplied(resolved, x, F, {std::nullopt, bias, std::nullopt, "identity"}, call);
}

Gradients convolution_backward_cpu(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& F,
                                   const ConvolutionCall& call, Mask mask) {
  check_convolution("convolution_backward", x, F, call);
  check_convolution_grad(grad, x, F, call);
  mask[2] = mask[2] && call.map.learned();
  at::Tensor dx, dF, dA;
  if (pointwise(x, F, call)) {
    std::tie(dx, dF, dA) = dispatch_linear_backward(grad.movedim(1, -1), met_pixels(x, call).movedim(1, -1),
                                                    matrices_of(F), call.map, mask);
    if (mask[0]) {
      const at::Tensor met = dx.movedim(-1, 1);
      if (met.sizes() == x.sizes()) {
        dx = in_order(met, format_of(x));
      } else {
        dx = empty_in_order(x.sym_sizes(), met.options(), format_of(x)).zero_();  // at::zeros has no format
        met_pixels(dx, call).copy_(met);
      }
    }
    if (mask[1]) dF = dF.view(F.sizes());
    return {dx, dF, dA};
  }
  const Resolved resolved(x, F, call, BilinearMap::Pass::backward);
  if (mask[1] || mask[2]) mark_in_training(F);
  if (mask[0] && resolved.on_engine()) {
    const at::Tensor g = plane::dense(grad);
    const at::Tensor to = empty_in_order(x.sym_sizes(), x.options().dtype(at::kFloat), format_of(x));
    resolved.run(false, plane::images_of(g), plane::images_of(to), {});
    dx = to.to(x.scalar_type());
    mask[0] = false;
  }
  if ((mask[1] || mask[2]) && resolved.on_engine()) {
    std::tie(dF, dA) =
        resolved.weight_gradients(call.transposed ? grad : x, call.transposed ? x : grad, mask[1], mask[2]);
    mask[1] = mask[2] = false;
  }
  if (mask[0] || mask[1] || mask[2]) {
    const auto [dx_, dF_, dA_] = composed::convolution_backward(grad, x, F, resolved.composed(), mask);
    if (mask[0]) dx = dx_;
    if (mask[1]) dF = dF_;
    if (mask[2]) dA = dA_;
  }
  return {dx, dF, dA};
}

}  // namespace

at::Tensor convolution_with_epilogue_cpu(const at::Tensor& x, const at::Tensor& F,
                                         const ConvolutionFinish& finish, const ConvolutionCall& call) {
  check_convolution("convolution_with_epilogue", x, F, call);
  check_finish(finish, x, F, call);
  const at::MemoryFormat format = format_of(x);
  if (pointwise(x, F, call) && channels_last(x))
    return finished_on_cpu(by_pixels(x, F, {}, call), finish, format);
  const Resolved resolved(x, F, call, BilinearMap::Pass::forward);
  if (!resolved.on_engine())
    return finished_on_cpu(composed::convolution(x, F, {}, resolved.composed()), finish, format);
  return multiplied(resolved, x, F, finish, call);
}

TORCH_LIBRARY_IMPL(quatrain, CPU, m) {
  m.impl("convolution", &convolution_schema<&convolution_cpu>);
  m.impl("convolution_backward", &convolution_backward_schema<&convolution_backward_cpu>);
}

}  // namespace quatrain::ops
