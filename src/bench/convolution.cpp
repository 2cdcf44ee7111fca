#include "bench/convolution.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <chrono>

#include "bench/pass.h"
#include "quatrain/conv_ops.h"
#include "quatrain/nn/linear.h"

namespace quatrain::bench {
namespace {

at::Tensor laid_out(const at::Tensor& t, bool last) {
  return t.contiguous(!last          ? at::MemoryFormat::Contiguous
                      : t.dim() == 5 ? at::MemoryFormat::ChannelsLast3d
                                     : at::MemoryFormat::ChannelsLast);
}

/// What a case is computed of; a linear layer brings the algebra, with its A where that is learned.
struct Operands {
  explicit Operands(const ConvolutionCase& asked)
      : algebra(nn::LinearOptions(asked.channels, asked.channels).algebra(asked.algebra)) {
    torch::manual_seed(0);
    const int64_t n = algebra->options.algebra().n, part = asked.channels / n, k = asked.kernel;
    std::vector<int64_t> image{asked.batch, asked.channels, asked.image, asked.image},
        kernel{n, part, part, k, k};
    if (asked.depth > 0) image.insert(image.begin() + 2, asked.depth), kernel.push_back(k);
    x = torch::randn(image, asked.dtype);
    F = torch::randn(kernel, asked.dtype);
    F /= std::sqrt(static_cast<double>(F.numel() / (part * n)));
    options.stride = {asked.stride}, options.padding = {k / 2};
    options.winograd = ops::parse_winograd(asked.winograd);
    options.constant = !asked.training;
    algebra->to(asked.dtype);
    algebra->eval();
    algebra->factorize();
    algebra->train(asked.training);
  }

  at::Tensor H() const {
    std::vector<int64_t> sizes = F.sizes().slice(1).vec();
    sizes[0] = sizes[1] = x.size(1);
    const torch::NoGradGuard no_grad;
    return ops::materialise(F.flatten(2), algebra->product()).view(sizes).contiguous();
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
    return ops::convolution(v, operands.F, {}, operands.algebra->product(), operands.options);
  };
  const at::Tensor grad = torch::randn_like([&] {
    const torch::NoGradGuard no_grad;
    return forward(x);
  }());
  ops::drop_prepared(operands.F);  // what is kept is counted when it is timed
  return pass_of(asked.training, forward, trained(asked, {operands.F, operands.algebra->A}), x, grad);
}

at::Tensor torchs(const at::Tensor& x, const at::Tensor& H, const ops::ConvolutionOptions& options) {
  return x.dim() == 5 ? at::conv3d(x, H, {}, options.stride, options.padding)
                      : at::conv2d(x, H, {}, options.stride, options.padding);
}

/// `reordered`: in oneDNN's own order, which torch's optimiser for inference makes of constant weights.
Call torchs_pass(const ConvolutionCase& asked, const Operands& operands, bool last, bool reordered = false) {
  const at::Tensor x = laid_out(operands.x, last), H = laid_out(operands.H(), last);
  const auto &stride = operands.options.stride, &padding = operands.options.padding;
  if (reordered) {
    const std::vector<int64_t> strides(2, stride[0]), paddings(2, padding[0]), ones(2, 1);
    const at::Tensor weight =
        at::mkldnn_reorder_conv2d_weight(H.to_mkldnn(), paddings, strides, ones, 1, x.sizes());
    return [=] {
      const torch::NoGradGuard no_grad;
      at::mkldnn_convolution(x, weight, {}, paddings, strides, ones, 1);
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
    const at::Tensor wanted =
                         torchs(operands.x.to(at::kDouble), operands.H().to(at::kDouble), operands.options),
                     got = ops::convolution(operands.x, operands.F, {}, operands.algebra->product(),
                                            operands.options);
    const double error = ((got.to(at::kDouble) - wanted).norm() / wanted.norm()).item<double>();
    TORCH_CHECK(error < 1e-4, "bench: ", asked.algebra, " is off by ", error, ", must be below 1e-4");
  }
  const Call first = torchs_pass(asked, operands, false), last = torchs_pass(asked, operands, true);
  const bool last_is_faster = seconds_of(last) < seconds_of(first);
  const int64_t real = operands.H().numel();
  Contest contest{.candidates = {{"ours", our_pass(asked, operands), operands.F.numel()},
                                 {"real", last_is_faster ? last : first, real},
                                 {"other order", last_is_faster ? first : last, real}}};
  if (!asked.training && asked.depth == 0 && asked.dtype == at::kFloat)
    contest.candidates.push_back({"reordered", torchs_pass(asked, operands, last_is_faster, true), real});
  const auto size = [](int64_t value) { return std::to_string(value) + "x" + std::to_string(value); };
  Contender contender;
  contender.asked = {
      field("algebra", asked.algebra),
      field("channels", asked.channels),
      column("image", (asked.depth > 0 ? std::to_string(asked.depth) + "x" : "") + size(asked.image), true),
      hidden("image", asked.image),
      hidden("depth", asked.depth),
      field("batch", asked.batch),
      column("kernel",
             (asked.depth > 0 ? std::to_string(asked.kernel) + "x" : "") + size(asked.kernel) +
                 (asked.stride > 1 ? " / " + std::to_string(asked.stride) : ""),
             true),
      hidden("kernel", asked.kernel),
      hidden("stride", asked.stride),
      field("winograd", asked.winograd),
      field("order", asked.channels_last ? "last" : "first"),
      hidden("dtype", asked.dtype == at::kDouble ? "float64" : "float32")};
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
  const bool deep = !cases.empty() && cases.front().depth > 0,
             doubles = !cases.empty() && cases.front().dtype == at::kDouble;
  subject.title = std::string("Convolutions of ") + (deep ? "three" : "two") +
                  " axes, as many channels out as in, " + (doubles ? "float64" : "float32");
  subject.notes =
      "kernel: / stride. order: channels first or last in memory; torch's is the one that is faster for it. "
      "to "
      "reordered: share of\nthe time of oneDNN with weights in its own order, which torch offers no user.\n";
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
