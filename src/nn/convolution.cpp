#include "quatrain/nn/convolution.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>

#include "nn/check.h"
#include "nn/convolution_options.h"
#include "ops/order.h"

namespace quatrain::nn {

namespace {

/// False for what is no batch of images, or has no pixel, which the operator refuses. Refuses padding that a
/// mode would take from more pixels than the image has.
bool can_be_padded(const std::string& layer, const at::Tensor& x, const std::string& mode,
                   const std::vector<std::pair<int64_t, int64_t>>& around) {
  const auto axes = static_cast<int64_t>(around.size());
  if (x.dim() != axes + 2 ||
      std::any_of(x.sizes().begin() + 2, x.sizes().end(), [](int64_t n) { return n < 1; }))
    return false;
  for (int64_t axis = 0; axis < axes && (mode == "reflect" || mode == "circular"); ++axis) {
    const auto [before, behind] = around[static_cast<size_t>(axis)];
    const int64_t pixels = x.size(2 + axis), most = mode == "reflect" ? pixels - 1 : pixels,
                  got = std::max(before, behind);
    require(got <= most, layer, ": with padding_mode ", mode, " padding must be at most ", most,
            " on spatial axis ", axis, " of ", pixels, " pixels, got ", got);
  }
  return true;
}

}  // namespace

template <size_t D, bool transposed>
ConvNdImpl<D, transposed>::ConvNdImpl(Options options) : options(std::move(options)) {
  const auto& o = this->options;
  const std::string layer = convolution_name(D, transposed);
  const char* const name = layer.c_str();
  const int64_t n = o.algebra().n, groups = o.groups();
  require(groups >= 1, name, ": groups must be at least 1, got ", groups);
  const char* const divisor = groups > 1 ? "n * groups" : "n";
  require_divisible(name, "in_channels", o.in_channels(), n * groups, divisor,
                    n > 1 ? "add channels, or give a first layer the algebra \"real\"" : "");
  require_divisible(name, "out_channels", o.out_channels(), n * groups, divisor);
  const auto at_least = [&](const char* argument, const auto& sizes, int64_t least) {
    for (const int64_t size : values(sizes))
      require(size >= least, name, ": ", argument, " must be at least ", least, ", got ", size);
  };
  at_least("kernel_size", o.kernel_size(), 1), at_least("stride", o.stride(), 1);
  at_least("dilation", o.dilation(), 1), at_least("output_padding", o.output_padding(), 0);
  const auto* padding = std::get_if<typename Options::Sizes>(&o.padding());
  if (padding) at_least("padding", *padding, 0);
  if constexpr (transposed) {
    require(padding, name, ": padding must be a number of pixels, got same or valid");
    require(std::holds_alternative<torch::enumtype::kZeros>(o.padding_mode()), name,
            ": padding_mode must be zeros, got ", mode_name(o.padding_mode()));
  } else {
    for (const int64_t size : values(o.output_padding()))
      require(size == 0, name, ": output_padding is a transposed convolution's, got ", size);
    if (std::holds_alternative<torch::enumtype::kSame>(o.padding()))
      for (const int64_t stride : values(o.stride()))
        require(stride == 1, name, ": padding can be same only where the stride is 1, got ", stride);
  }
  ConvNdImpl::reset();
}

template <size_t D, bool transposed>
void ConvNdImpl<D, transposed>::reset() {
  WeightOptions weight;
  weight.algebra = options.algebra();
  weight.in_features = options.in_channels() / (transposed ? 1 : options.groups());
  weight.out_features = options.out_channels() / (transposed ? options.groups() : 1);
  weight.kernel = values(options.kernel_size());
  weight.inputs_first = transposed;
  weight.initialiser = options.initialiser();
  weight.name = "F";
  make(*this, std::move(weight));
  if (options.bias()) bias = this->register_parameter("bias", torch::zeros({options.out_channels()}));
}

template <size_t D, bool transposed>
void ConvNdImpl<D, transposed>::reset_parameters() {
  draw();
  const at::NoGradGuard no_grad;
  if (bias.defined()) bias.zero_();
}

template <size_t D, bool transposed>
std::string ConvNdImpl<D, transposed>::bound_to_algebra() const {
  return options.groups() > 1 ? "its groups are parts of every component, other channels in each algebra"
                              : "";
}

template <size_t D, bool transposed>
void ConvNdImpl<D, transposed>::pretty_print(std::ostream& stream) const {
  stream << "quatrain::nn::" << convolution_name(D, transposed) << "(" << options.in_channels() << " -> "
         << options.out_channels() << ", kernel_size=" << at::IntArrayRef(values(options.kernel_size()))
         << ", stride=" << at::IntArrayRef(values(options.stride()));
  if (options.groups() > 1) stream << ", groups=" << options.groups();
  stream << ", algebra=" << options.algebra().text() << ", bias=" << (options.bias() ? "true" : "false")
         << ")";
}

template <size_t D, bool transposed>
at::Tensor ConvNdImpl<D, transposed>::forward(const at::Tensor& x) {
  return run(x, std::nullopt, nullptr);
}

template <size_t D, bool transposed>
at::Tensor ConvNdImpl<D, transposed>::forward_to_size(const at::Tensor& x,
                                                      at::IntArrayRef output_size) requires transposed {
  return run(x, output_size, nullptr);
}

template <size_t D, bool transposed>
at::Tensor ConvNdImpl<D, transposed>::forward_with_epilogue(const at::Tensor& x,
                                                            const ops::ConvolutionEpilogue& epilogue) {
  return run(x, std::nullopt, &epilogue);
}

template <size_t D, bool transposed>
at::Tensor ConvNdImpl<D, transposed>::run(const at::Tensor& given, std::optional<at::IntArrayRef> size,
                                          const ops::ConvolutionEpilogue* epilogue) {
  constexpr int64_t axes = D;
  const bool single = given.dim() == axes + 1;
  // With the channels where they lie, first or last.
  at::Tensor x = single ? given.movedim(0, -1).unsqueeze(0).movedim(-1, 1) : given;
  ops::ConvolutionOptions to{.stride = values(options.stride()),
                             .dilation = values(options.dilation()),
                             .transposed = transposed,
                             .output_padding = values(options.output_padding()),
                             .groups = options.groups(),
                             .way = options.way(),
                             .winograd = options.winograd()};
  // The operator pads with zeros, as many on both sides.
  const auto around = sides<D>(options);
  const bool zeros = std::holds_alternative<torch::enumtype::kZeros>(options.padding_mode());
  std::vector<int64_t> before;
  to.padding.clear();
  for (const auto& [left, right] : around) {
    const int64_t both = zeros ? std::min(left, right) : 0;
    to.padding.push_back(both);
    before.insert(before.begin(), {left - both, right - both});  // the last axis first
  }
  const char* const mode = mode_name(options.padding_mode());
  if (std::any_of(before.begin(), before.end(), [](int64_t pixels) { return pixels > 0; }) &&
      can_be_padded(convolution_name(D, transposed), x, mode, around))
    x = ops::in_order(at::pad(x, before, mode), ops::format_of(x));  // not every mode keeps it
  if (size) {
    // As torch's: with or without batch and channels.
    const auto count = static_cast<int64_t>(size->size()), all = given.dim();
    require(count == static_cast<int64_t>(D) || count == all, convolution_name(D, transposed),
            ": output_size must have ", D, " axes, or ", all, ", got ", *size);
    size = size->slice(static_cast<size_t>(count) - D);
    for (size_t axis = 0; axis < D; ++axis) {
      const int64_t least = (x.size(static_cast<int64_t>(axis) + 2) - 1) * to.stride[axis] -
                            2 * to.padding[axis] + to.dilation[axis] * ((*options.kernel_size())[axis] - 1) +
                            1;
      const int64_t more = (*size)[axis] - least, most = std::max(to.stride[axis], to.dilation[axis]);
      require(more >= 0 && more < most, convolution_name(D, transposed), ": output_size must be from ", least,
              " to ", least + most - 1, " on axis ", axis, ", got ", (*size)[axis]);
      to.output_padding[axis] = more;
    }
  }
  const Operands weight = operands(this->is_training());
  to.constant = weight.constant;
  const auto batched = [single](const at::Tensor& y) { return single ? y.squeeze(0) : y; };
  if (!epilogue) return batched(ops::convolution(x, weight.S, bias, weight.product, to));
  ops::ConvolutionEpilogue after = *epilogue;
  if (bias.defined()) {
    for (const auto& [argument, t] : {std::pair{"scale", after.scale}, std::pair{"shift", after.shift}})
      require(!t.defined() || t.sizes() == bias.sizes(), convolution_name(D, transposed), ": ", argument,
              " must have out_channels = ", bias.size(0), " values, got ", t.sizes());
    const at::Tensor moved = after.scale.defined() ? after.scale * bias : bias;
    after.shift = after.shift.defined() ? moved + after.shift : moved;
  }
  if (single && after.residual.defined()) after.residual = after.residual.unsqueeze(0);
  return batched(ops::convolution_with_epilogue(x, weight.S, weight.product, after, to));
}

template class ConvNdImpl<1, false>;
template class ConvNdImpl<2, false>;
template class ConvNdImpl<3, false>;
template class ConvNdImpl<1, true>;
template class ConvNdImpl<2, true>;
template class ConvNdImpl<3, true>;

}  // namespace quatrain::nn
