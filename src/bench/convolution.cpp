#include "bench/convolution.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <chrono>

#include "bench/linear.h"
#include "bench/pass.h"
#include "quatrain/conv_ops.h"
#include "quatrain/nn/linear.h"

namespace quatrain::bench {
namespace {

at::Tensor laid_out(const at::Tensor& t, bool last) {
  if (t.dim() == 3 && last) return t.movedim(1, -1).contiguous().movedim(-1, 1);
  return t.contiguous(!last          ? at::MemoryFormat::Contiguous
                      : t.dim() == 5 ? at::MemoryFormat::ChannelsLast3d
                                     : at::MemoryFormat::ChannelsLast);
}

/// What a case is computed of; a linear layer brings the algebra, with its A where that is learned.
struct Operands {
  explicit Operands(const ConvolutionCase& asked)
      : algebra(nn::LinearOptions(asked.channels, asked.channels).algebra(asked.algebra)) {
    torch::manual_seed(0);
    const int64_t n = algebra->options.algebra().n, k = asked.kernel;
    std::vector<int64_t> image{asked.batch, asked.in_channels},
        kernel{n, asked.channels / n, asked.in_channels / (n * asked.groups)};
    if (asked.axes == 3) image.push_back(asked.depth);
    image.resize(static_cast<size_t>(2 + asked.axes), asked.image);
    kernel.resize(static_cast<size_t>(3 + asked.axes), k);
    x = torch::randn(image, asked.dtype);
    F = torch::randn(kernel, asked.dtype);
    F /= std::sqrt(static_cast<double>(F.numel() / asked.channels));
    options.stride = {asked.stride}, options.padding = {k / 2 * asked.dilation};
    options.dilation = {asked.dilation}, options.groups = asked.groups;
    options.winograd = ops::parse_winograd(asked.winograd);
    options.constant = !asked.training;
    algebra->to(asked.dtype);
    algebra->eval();
    algebra->factorize();
    algebra->train(asked.training);
  }

  /// With the factors that were found, in inference.
  ops::Product product() const { return algebra->operands(!options.constant).product; }

  /// Of torch's groups.
  at::Tensor H() const {
    std::vector<int64_t> sizes = F.sizes().slice(1).vec();
    sizes[0] *= F.size(0), sizes[1] *= F.size(0);
    const torch::NoGradGuard no_grad;
    return by_groups(ops::materialise(F.flatten(2), algebra->product()).view(sizes), 0).contiguous();
  }

  /// Channels group by group, as torch has them: ours lie component by component, each with its groups.
  at::Tensor by_groups(const at::Tensor& t, int64_t axis) const {
    return t.unflatten(axis, {F.size(0), options.groups, -1})
        .transpose(axis, axis + 1)
        .flatten(axis, axis + 2);
  }

  nn::Linear algebra;
  at::Tensor x, F;
  ops::ConvolutionOptions options;
};

std::vector<at::Tensor> trained(const ConvolutionCase& asked, std::vector<at::Tensor> all) {
  for (at::Tensor& t : all)
    if (t.defined()) t.requires_grad_(asked.training);
  std::erase_if(all, [](const at::Tensor& t) { return !t.defined(); });
  return all;
}

Call our_pass(const ConvolutionCase& asked, const Operands& operands) {
  const at::Tensor x = laid_out(operands.x, asked.channels_last);
  const auto forward = [operands](const at::Tensor& v) {
    return ops::convolution(v, operands.F, {}, operands.product(), operands.options);
  };
  const at::Tensor grad = torch::randn_like([&] {
    const torch::NoGradGuard no_grad;
    return forward(x);
  }());
  ops::drop_prepared(operands.F);  // what is kept is counted when it is timed
  return pass_of(asked.training, forward, trained(asked, {operands.F, operands.algebra->A}), x, grad);
}

at::Tensor torchs(const at::Tensor& x, const at::Tensor& H, const ops::ConvolutionOptions& options) {
  const auto& o = options;
  return x.dim() == 5   ? at::conv3d(x, H, {}, o.stride, o.padding, o.dilation, o.groups)
         : x.dim() == 4 ? at::conv2d(x, H, {}, o.stride, o.padding, o.dilation, o.groups)
                        : at::conv1d(x, H, {}, o.stride, o.padding, o.dilation, o.groups);
}

/// `reordered`: in oneDNN's own order, which torch's optimiser for inference makes of constant weights.
Call torchs_pass(const ConvolutionCase& asked, const Operands& operands, bool last, bool reordered = false) {
  const at::Tensor x = laid_out(operands.x, last), H = laid_out(operands.H(), last);
  if (reordered) {
    const auto& options = operands.options;
    const std::vector<int64_t> strides(2, options.stride[0]), paddings(2, options.padding[0]),
        dilations(2, options.dilation[0]);
    const at::Tensor weight = at::mkldnn_reorder_conv2d_weight(H.to_mkldnn(), paddings, strides, dilations,
                                                               options.groups, x.sizes());
    return [=, groups = options.groups] {
      const torch::NoGradGuard no_grad;
      at::mkldnn_convolution(x, weight, {}, paddings, strides, dilations, groups);
    };
  }
  const auto forward = [=, options = operands.options](const at::Tensor& v) { return torchs(v, H, options); };
  const at::Tensor grad = torch::randn_like([&] {
    const torch::NoGradGuard no_grad;
    return forward(x);
  }());
  return pass_of(asked.training, forward, trained(asked, {H}), x, grad);
}

double seconds_of(const Call& call) {
  using Clock = std::chrono::steady_clock;
  double best = 1e9;
  call();
  for (int i = 0; i < 5; ++i) {
    const auto begin = Clock::now();
    call();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return best;
}

// Ours; torch's in the order of memory that is faster for it, then in the other; with reordered weights.
Contest contest_of(const ConvolutionCase& asked) {
  const Operands operands(asked);
  {
    const torch::NoGradGuard no_grad;
    const at::Tensor wanted = torchs(operands.by_groups(operands.x, 1).to(at::kDouble),
                                     operands.H().to(at::kDouble), operands.options),
                     got = operands.by_groups(
                         ops::convolution(operands.x, operands.F, {}, operands.product(), operands.options),
                         1);
    const double rule = asked.dtype == at::kBFloat16 ? 3e-2 : 1e-4;
    const double error = ((got.to(at::kDouble) - wanted).norm() / wanted.norm()).item<double>();
    TORCH_CHECK(error < rule, "bench: ", asked.algebra, " is off by ", error, ", must be below ", rule);
  }
  const Call first = torchs_pass(asked, operands, false), last = torchs_pass(asked, operands, true);
  const bool last_is_faster = seconds_of(last) < seconds_of(first);
  const int64_t real = operands.H().numel();
  Contest contest{.candidates = {{"ours", our_pass(asked, operands), operands.F.numel()},
                                 {"real", last_is_faster ? last : first, real},
                                 {"other order", last_is_faster ? first : last, real}}};
  if (!asked.training && asked.axes == 2 && asked.dtype == at::kFloat)
    contest.candidates.push_back({"reordered", torchs_pass(asked, operands, last_is_faster, true), real});
  // Such as 8x16x16: the last size for each axis but those that stand before.
  const auto size = [&](const std::string& before, int64_t value) {
    std::string text = before + std::to_string(value);
    for (int64_t axis = before.empty() ? 1 : 2; axis < asked.axes; ++axis)
      text += "x" + std::to_string(value);
    return text;
  };
  // What few calls ask for is a column of those.
  const auto unusual = [](const char* key, int64_t value) {
    return value > 1 ? field(key, value) : hidden(key, value);
  };
  const bool same = asked.in_channels == asked.channels;
  Contender contender;
  contender.asked = {
      field("algebra", asked.algebra),
      column("channels",
             (same ? "" : std::to_string(asked.in_channels) + " to ") + std::to_string(asked.channels), true),
      hidden("in_channels", asked.in_channels),
      hidden("channels", asked.channels),
      column("image", size(asked.axes == 3 ? std::to_string(asked.depth) + "x" : "", asked.image), true),
      hidden("image", asked.image),
      hidden("axes", asked.axes),
      hidden("depth", asked.axes == 3 ? asked.depth : 0),
      field("batch", asked.batch),
      column("kernel",
             size("", asked.kernel) + (asked.stride > 1 ? " / " + std::to_string(asked.stride) : ""), true),
      hidden("kernel", asked.kernel),
      hidden("stride", asked.stride),
      unusual("dilation", asked.dilation),
      unusual("groups", asked.groups),
      field("winograd", asked.winograd),
      field("order", asked.channels_last ? "last" : "first"),
      hidden("dtype", dtype_name(asked.dtype))};
  contender.more = [last_is_faster](const Found& found) {
    std::vector<Field> more{field("real_order", last_is_faster ? "last" : "first")};
    more.back().title = "torch's";
    more.push_back(ratio_to(found, "reordered", "reordered"));
    return more;
  };
  contest.contenders.push_back(std::move(contender));
  return contest;
}

}  // namespace

Subject convolution(const std::vector<ConvolutionCase>& cases, double seconds) {
  Subject subject;
  const ConvolutionCase first = cases.empty() ? ConvolutionCase() : cases.front();
  const bool square =
      std::ranges::all_of(cases, [](const auto& one) { return one.in_channels == one.channels; });
  subject.title = std::string("Convolutions of ") +
                  (first.axes == 3   ? "three axes"
                   : first.axes == 2 ? "two axes"
                                     : "one axis") +
                  (square ? ", as many channels out as in, " : ", ") + dtype_name(first.dtype);
  subject.notes =
      "kernel: / stride. order: channels first or last in memory; torch's is the one that is faster for it. "
      "to "
      "reordered: share of\nthe time of oneDNN with weights in its own order, which torch offers no user. "
      "winograd: as asked for; what\nwrites H out, as layers of few units do, takes no transform.\n";
  subject.timing = {.seconds = seconds, .turn = 300e-6};
  for (const auto& asked : cases) {
    Case one{.threads = asked.threads, .training = asked.training};
    if (asked.training) {
      one.memory.emplace_back("ours", [asked] { return our_pass(asked, Operands(asked)); });
      one.memory.emplace_back("real", [asked] { return torchs_pass(asked, Operands(asked), true); });
    }
    one.make = [asked] { return contest_of(asked); };
    subject.cases.push_back(std::move(one));
  }
  return subject;
}

}  // namespace quatrain::bench
