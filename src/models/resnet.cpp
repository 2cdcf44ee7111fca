#include "quatrain/models/resnet.h"

#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "nn/check.h"
#include "ops/panels.h"
#include "quatrain/nn/norm.h"
#include "support/enum_names.h"

namespace quatrain::models {

namespace {

constexpr EnumNames<Residual, 4> kResiduals{{{Residual::plain, "plain"},
                                             {Residual::phydi, "phydi"},
                                             {Residual::code, "code"},
                                             {Residual::fixup, "fixup"}}};

constexpr EnumNames<Stem, 2> kStems{{{Stem::small, "small"}, {Stem::large, "large"}}};

constexpr EnumNames<ConvolutionNorm, 2> kNorms{
    {{ConvolutionNorm::batch, "batch"}, {ConvolutionNorm::whitening, "whitening"}}};

struct Depth {
  int64_t depth;
  std::array<int64_t, 4> blocks;  // of each stage
  bool bottleneck;
};
constexpr std::array<Depth, 5> kDepths{{{18, {2, 2, 2, 2}, false},
                                        {34, {3, 4, 6, 3}, false},
                                        {50, {3, 4, 6, 3}, true},
                                        {101, {3, 4, 23, 3}, true},
                                        {152, {3, 8, 36, 3}, true}}};
constexpr int64_t kExpansion = 4;  // of a bottleneck's last convolution

const Depth& find_depth(int64_t depth) {
  for (const Depth& one : kDepths)
    if (one.depth == depth) return one;
  nn::refuse("ResNet: depth must be one of 18, 34, 50, 101, 152, got ", depth);
}

nn::Conv2d convolution(const ResNetOptions& options, int64_t in, int64_t out, int64_t kernel,
                       int64_t stride) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel)
                        .like(options)
                        .stride(stride)
                        .padding(kernel / 2)
                        .winograd(options.winograd()));
}

torch::nn::AnyModule norm_of(const ResNetOptions& options, int64_t channels) {
  if (options.norm() == ConvolutionNorm::batch) return torch::nn::AnyModule(torch::nn::BatchNorm2d(channels));
  return torch::nn::AnyModule(nn::WhiteningNorm(nn::WhiteningNormOptions(channels).n(options.algebra().n)));
}

/// A batch norm in eval mode, as what becomes of the convolution before it. Narrow types are rounded but
/// once.
ops::ConvolutionEpilogue riding(torch::nn::AnyModule& module) {
  const auto& norm = *module.ptr()->as<torch::nn::BatchNorm2dImpl>();
  const at::ScalarType wide = c10::promoteTypes(norm.weight.scalar_type(), at::kFloat);
  const at::Tensor scale = norm.weight.to(wide) * (norm.running_var.to(wide) + norm.options.eps()).rsqrt(),
                   shift = norm.bias.to(wide) - norm.running_mean.to(wide) * scale;
  ops::ConvolutionEpilogue epilogue;
  epilogue.scale = scale.to(norm.weight.scalar_type()), epilogue.shift = shift.to(norm.bias.scalar_type());
  return epilogue;
}

/// True where no part takes a batch's own statistics.
bool evaluates(const torch::nn::Module& module) {
  const auto parts = module.children();
  return !module.is_training() &&
         std::all_of(parts.begin(), parts.end(), [](const auto& part) { return evaluates(*part); });
}

/// True where norms, sums and activations ride on convolutions. A norm that mixes components cannot.
bool infers(const torch::nn::Module& module, const ResNetOptions& options) {
  return !at::GradMode::is_enabled() && options.norm() == ConvolutionNorm::batch && evaluates(module);
}

}  // namespace

const char* name(Stem stem) {
  return name_of(kStems, stem);
}

Stem parse_stem(std::string_view name) {
  return parse_name(kStems, "stem", name);
}

const char* name(ConvolutionNorm norm) {
  return name_of(kNorms, norm);
}

ConvolutionNorm parse_convolution_norm(std::string_view name) {
  return parse_name(kNorms, "norm", name);
}

const char* name(Residual residual) {
  return name_of(kResiduals, residual);
}

Residual parse_residual(std::string_view name) {
  return parse_name(kResiduals, "residual", name);
}

std::vector<int64_t> divisible_widths(std::vector<int64_t> widths, int64_t n) {
  TORCH_CHECK_VALUE(n >= 1, "divisible_widths: n must be at least 1, got ", n);
  for (int64_t& width : widths) width = std::max(n, (width + n / 2) / n * n);
  return widths;
}

ResNetBlockImpl::ResNetBlockImpl(const ResNetOptions& options, int64_t in_channels, int64_t width,
                                 int64_t stride)
    : options(options),
      in_(in_channels),
      width_(width),
      stride_(stride),
      out_(find_depth(options.depth()).bottleneck ? kExpansion * width : width) {
  ResNetBlockImpl::reset();
}

void ResNetBlockImpl::reset() {
  convolutions.clear(), norms.clear(), before.clear(), after.clear();
  const bool normed = options.residual() != Residual::fixup;
  const auto add = [&](int64_t from, int64_t to, int64_t kernel, int64_t stride) {
    const std::string number = std::to_string(convolutions.size() + 1);
    convolutions.push_back(register_module("conv" + number, convolution(options, from, to, kernel, stride)));
    if (normed) {
      norms.push_back(norm_of(options, to));
      register_module("norm" + number, norms.back().ptr());
    } else {
      before.push_back(register_parameter("before" + number, torch::zeros({})));
      after.push_back(register_parameter("after" + number, torch::zeros({})));
    }
  };
  if (out_ == width_) {
    add(in_, width_, 3, stride_);
    add(width_, width_, 3, 1);
  } else {
    add(in_, width_, 1, 1);
    add(width_, width_, 3, stride_);
    add(width_, out_, 1, 1);
  }
  if (stride_ != 1 || in_ != out_) {
    shortcut = register_module("shortcut", convolution(options, in_, out_, 1, stride_));
    if (normed) {
      shortcut_norm = norm_of(options, out_);
      register_module("shortcut_norm", shortcut_norm.ptr());
    }
  }
  if (options.residual() == Residual::phydi || options.residual() == Residual::code)
    alpha = register_parameter("alpha", torch::zeros({}));
  if (normed) return;
  scale = register_parameter("scale", torch::ones({}));
  const at::NoGradGuard no_grad;
  int64_t count = 0;
  for (const int64_t blocks : find_depth(options.depth()).blocks) count += blocks;
  // With m convolutions in a branch: the blocks' number to the power -1 / (2m - 2); the last one is zero.
  const double m = static_cast<double>(convolutions.size());
  for (auto& one : convolutions) one->S.mul_(std::pow(static_cast<double>(count), -1 / (2 * m - 2)));
  convolutions.back()->S.zero_();
}

at::Tensor ResNetBlockImpl::branch(const at::Tensor& x) {
  at::Tensor y = x;
  for (size_t i = 0; i < convolutions.size(); ++i) {
    const bool last = i + 1 == convolutions.size();
    if (options.residual() == Residual::fixup) {
      y = convolutions[i]->forward(y + before[i]);
      y = (last ? y * scale : y) + after[i];
    } else {
      y = norms[i].forward(convolutions[i]->forward(y));
    }
    if (!last) y.relu_();  // no derivative needs what it writes over
  }
  return y;
}

at::Tensor ResNetBlockImpl::infer(const at::Tensor& x) {
  const Residual kind = options.residual();
  at::Tensor through = x, y = x;
  if (shortcut)
    through = shortcut_norm.is_empty() ? shortcut->forward(x + before[0])
                                       : shortcut->forward_with_epilogue(x, riding(shortcut_norm));
  for (size_t i = 0; i < convolutions.size(); ++i) {
    const bool last = i + 1 == convolutions.size();
    ops::ConvolutionEpilogue epilogue;
    if (norms.empty()) {
      const int64_t channels = convolutions[i]->options.out_channels();
      y = y + before[i];
      epilogue.shift = after[i].expand(channels);
      if (last) epilogue.scale = scale.expand(channels);
    } else {
      epilogue = riding(norms[i]);
    }
    if (last && kind == Residual::phydi) epilogue.scale *= alpha, epilogue.shift *= alpha;
    if (last && kind != Residual::code) epilogue.residual = through;
    if (!last || kind != Residual::phydi) epilogue.activation = "relu";
    y = convolutions[i]->forward_with_epilogue(y, epilogue);
  }
  return kind == Residual::code ? y.mul_(alpha).add_(through) : y;
}

at::Tensor ResNetBlockImpl::forward(const at::Tensor& x) {
  if (infers(*this, options)) return infer(x);
  at::Tensor through = x;
  if (shortcut) {
    // Fixup's shortcut sees what its branch sees.
    through = shortcut->forward(before.empty() ? x : x + before[0]);
    if (!shortcut_norm.is_empty()) through = shortcut_norm.forward(through);
  }
  const at::Tensor F = branch(x);
  switch (options.residual()) {
    case Residual::phydi:
      return through + alpha * F;
    case Residual::code:
      return through + alpha * torch::relu(F);
    default:
      return (through + F).relu_();
  }
}

ResNetImpl::ResNetImpl(ResNetOptions options) : options(std::move(options)) {
  ResNetImpl::reset();
}

void ResNetImpl::reset() {
  const Depth& depth = find_depth(options.depth());
  const auto& widths = options.widths();
  nn::require(widths.size() == depth.blocks.size(), "ResNet: widths must have ", depth.blocks.size(),
              " numbers, one for each stage, got ", widths.size());
  for (const int64_t width : widths)
    nn::require_divisible("ResNet", "widths", width, options.algebra().n, "n");
  nn::require(options.classes() >= 1, "ResNet: classes must be at least 1, got ", options.classes());
  ResNetOptions first = options;
  if (options.real_stem()) first.algebra("real");
  nn::require_divisible("ResNet", "in_channels", options.in_channels(), first.algebra().n, "n",
                        "add channels, or take real_stem");
  const bool large = options.stem() == Stem::large;
  stem = register_module("stem",
                         convolution(first, options.in_channels(), widths[0], large ? 7 : 3, large ? 2 : 1));
  if (options.residual() != Residual::fixup) {
    stem_norm = norm_of(options, widths[0]);
    register_module("stem_norm", stem_norm.ptr());
  }
  blocks = register_module("blocks", torch::nn::ModuleList());
  int64_t in = widths[0];
  for (size_t stage = 0; stage < widths.size(); ++stage)
    for (int64_t i = 0; i < depth.blocks[stage]; ++i) {
      ResNetBlock block(options, in, widths[stage], stage > 0 && i == 0 ? 2 : 1);
      in = block->out_channels();
      blocks->push_back(block);
    }
  head = register_module("head", torch::nn::Linear(in, options.classes()));
  if (options.residual() != Residual::fixup) return;
  after_stem = register_parameter("after_stem", torch::zeros({}));
  before_head = register_parameter("before_head", torch::zeros({}));
  const at::NoGradGuard no_grad;
  head->weight.zero_();
  head->bias.zero_();
}

at::Tensor ResNetImpl::pooled(const at::Tensor& y) const {
  return options.stem() == Stem::large ? torch::max_pool2d(y, {3, 3}, {2, 2}, {1, 1}) : y;
}

void ResNetImpl::pretty_print(std::ostream& stream) const {
  stream << "quatrain::models::ResNet(" << options.depth() << ", " << models::name(options.residual())
         << ", algebra=" << options.algebra().text() << ", " << options.classes() << " classes)";
}

at::Tensor ResNetImpl::forward(const at::Tensor& x) {
  TORCH_CHECK_VALUE(x.dim() == 4 && x.size(1) == options.in_channels(),
                    "ResNet: x must have the shape (images, ", options.in_channels(),
                    ", height, width), got ", x.sizes());
  const at::Tensor pictures = x.contiguous(at::MemoryFormat::ChannelsLast);
  const auto run = [this](at::Tensor y, size_t first, size_t end) {
    for (size_t i = first; i < end; ++i) y = blocks[i]->as<ResNetBlockImpl>()->forward(y);
    return y;
  };
  const auto classified = [&](const at::Tensor& y) {
    const at::Tensor mean = y.mean({2, 3});
    return head->forward(before_head.defined() ? mean + before_head : mean);
  };
  if (!infers(*this, options)) {
    at::Tensor y = stem->forward(pictures);
    y = stem_norm.is_empty() ? y + after_stem : stem_norm.forward(y);
    return classified(run(pooled(y.relu_()), 0, blocks->size()));
  }
  ops::ConvolutionEpilogue epilogue;
  if (stem_norm.is_empty())
    epilogue.shift = after_stem.expand(stem->options.out_channels());
  else
    epilogue = riding(stem_norm);
  epilogue.activation = "relu";
  // The first stages' pictures are large: a few at a time stay in the cache.
  const int64_t step = options.stem() == Stem::large ? 4 : 1;
  const ops::PanelSizes sizes = {
      .items = x.size(0),
      .rows = (x.size(2) + step - 1) / step * ((x.size(3) + step - 1) / step),
      .widest = std::max(blocks[0]->as<ResNetBlockImpl>()->out_channels(), step * options.widths()[0])};
  const int64_t panel = ops::items_of_panel(sizes, pictures, is_training());
  const size_t early = blocks_in_panels(panel * sizes.rows);
  const at::Tensor y = ops::by_panels(sizes.items, panel, [&](int64_t first, int64_t count) {
    return run(pooled(stem->forward_with_epilogue(pictures.narrow(0, first, count), epilogue)), 0, early);
  });
  return classified(run(y, early, blocks->size()));
}

// Each stage after the first has a quarter of the pixels.
size_t ResNetImpl::blocks_in_panels(int64_t pixels) const {
  size_t count = 0;
  for (const int64_t of_stage : find_depth(options.depth()).blocks) {
    if (pixels < ops::kFewestRows) break;
    count += static_cast<size_t>(of_stage), pixels /= 4;
  }
  return count;
}

}  // namespace quatrain::models
