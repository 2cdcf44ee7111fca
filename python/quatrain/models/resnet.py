"""PHYDI's PHResNets."""

from __future__ import annotations

from typing import Any, Literal, Sequence, cast, get_args

import torch
from torch import Tensor, nn

from ..algebra import Spec
from ..init import Initialiser
from ..nn import Conv2d, WhiteningNorm, _check
from ..nn._convolution import Winograd
from ..nn.weight import Way
from ..runs import Run
from ._runs import options_of, place_of, with_state_of

#: What a block makes of its input x and its branch F.
Residual = Literal["plain", "phydi", "code", "fixup"]
#: What a network begins with.
Stem = Literal["small", "large"]
#: What stands behind each convolution.
ConvolutionNorm = Literal["batch", "whitening"]

# By depth: the blocks of each stage, and whether they are bottlenecks.
_DEPTHS: dict[int, tuple[tuple[int, ...], bool]] = {
    18: ((2, 2, 2, 2), False),
    34: ((3, 4, 6, 3), False),
    50: ((3, 4, 6, 3), True),
    101: ((3, 4, 23, 3), True),
    152: ((3, 8, 36, 3), True),
}
_EXPANSION = 4  # of a bottleneck's last convolution


def norm_name(convolution: str) -> str:
    """What the norm behind a convolution is called: norm1 behind conv1, stem_norm behind stem."""
    return convolution.replace("conv", "norm") if convolution.startswith("conv") else f"{convolution}_norm"


def _check_options(depth: int, residual: str, norm: str) -> None:
    if depth not in _DEPTHS:
        raise ValueError(f"ResNet: depth must be one of {', '.join(map(str, _DEPTHS))}, got {depth}")
    _check.choice("residual", residual, get_args(Residual))
    _check.choice("norm", norm, get_args(ConvolutionNorm))


def _rides(*parts: nn.Module | None) -> bool:
    """True where norms, sums and activations ride on the convolutions: in eval mode without gradients. A norm that mixes
    components or takes the batch's statistics cannot, and what was put in the place of a part or of its ``forward``, or
    hooked to it, is called as it stands."""

    def one_rides(part: nn.Module) -> bool:
        if type(part) is nn.BatchNorm2d and any(values is None for values in (part.running_mean, part.weight, part.bias)):
            return False
        plain = type(part) in (Conv2d, nn.BatchNorm2d) and "forward" not in vars(part)
        return plain and not (part.training or part._forward_hooks or part._forward_pre_hooks)

    if torch.is_grad_enabled() or torch.jit.is_tracing() or nn.modules.module._has_any_global_hook():  # type: ignore[attr-defined]
        return False  # a trace is compared with and without gradients
    return all(part is None or one_rides(part) for part in parts)


def _relu(y: Tensor, made_by: nn.Module) -> Tensor:
    """Over what a part made, which no derivative needs; a part's hooks may have kept it, or made it a view."""
    hooked = made_by._forward_hooks or made_by._backward_hooks or made_by._backward_pre_hooks
    if hooked or nn.modules.module._has_any_global_hook():
        return y.relu()
    return y.relu_()


def scale_and_shift(norm: Any) -> tuple[Tensor, Tensor]:
    """A batch norm in eval mode, as what becomes of the convolution before it. Narrow types are rounded but once."""
    wide = torch.promote_types(norm.weight.dtype, torch.float32)
    weight, bias, mean, variance = (t.to(wide) for t in (norm.weight, norm.bias, norm.running_mean, norm.running_var))
    scale = weight * (variance + norm.eps).rsqrt()
    return scale.to(norm.weight.dtype), (bias - mean * scale).to(norm.bias.dtype)


def _norm(kind: str, channels: int, n: int, at: dict[str, Any]) -> nn.Module:
    return WhiteningNorm(channels, n, **at) if kind == "whitening" else nn.BatchNorm2d(channels, **at)


class ResNetBlock(nn.Module):
    """A block of one branch: convolutions ``conv1`` ..., norms ``norm1`` ... but for fixup, and where the number of channels
    or the size changes a 1 x 1 convolution ``shortcut`` with its ``shortcut_norm``.

    Args:
        in_channels: of x; n divides them.
        width: channels of the branch; n divides them. A bottleneck, of the depths from 50, gives four times as many.
        stride: of the first 3 x 3 convolution.

    The other arguments are those of ``ResNet``.

    Parameters beside those of its layers: ``alpha`` () of phydi and code; of fixup ``before1``, ``after1`` ..., which are added
    before and after each convolution, and ``scale``, what the branch is multiplied with, ().

    Shape: (B, in_channels, h, w) -> (B, out_channels, h / stride, w / stride), rounded up.

    >>> import torch, quatrain
    >>> block = quatrain.models.ResNetBlock(8, 16, stride=2, residual="phydi", algebra="phm(4)")
    >>> block(torch.randn(2, 8, 6, 6)).shape
    torch.Size([2, 16, 3, 3])
    """

    shortcut: Conv2d | None
    shortcut_norm: nn.Module | None
    alpha: Tensor
    before1: Tensor
    scale: Tensor

    def __init__(
        self,
        in_channels: int,
        width: int,
        stride: int = 1,
        *,
        depth: int = 18,
        residual: Residual = "plain",
        norm: ConvolutionNorm = "batch",
        bias: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        algebra: str | Spec = "quaternion",
        initialiser: Initialiser = "he",
        way: Way = "auto",
        winograd: Winograd = "auto",
    ) -> None:
        super().__init__()
        _check_options(depth, residual, norm)
        blocks, bottleneck = _DEPTHS[depth]
        self.residual, self._blocks = residual, sum(blocks)
        self.in_channels, self.out_channels = in_channels, _EXPANSION * width if bottleneck else width
        self.shortcut = self.shortcut_norm = None
        at: dict[str, Any] = {"device": device, "dtype": dtype}
        n = Spec.parse(algebra).n

        def add(name: str, from_: int, to: int, kernel: int, step: int) -> None:
            options: dict[str, Any] = {"algebra": algebra, "initialiser": initialiser, "way": way, "winograd": winograd}
            setattr(self, name, Conv2d(from_, to, kernel, step, kernel // 2, bias=bias, **options, **at))
            if residual != "fixup":
                setattr(self, norm_name(name), _norm(norm, to, n, at))

        if bottleneck:
            maps = [(in_channels, width, 1, 1), (width, width, 3, stride), (width, self.out_channels, 1, 1)]
        else:
            maps = [(in_channels, width, 3, stride), (width, width, 3, 1)]
        self._count = len(maps)
        for number, sizes in enumerate(maps, 1):
            add(f"conv{number}", *sizes)
            if residual == "fixup":
                self.register_parameter(f"before{number}", nn.Parameter(torch.empty((), **at)))
                self.register_parameter(f"after{number}", nn.Parameter(torch.empty((), **at)))
        if stride != 1 or in_channels != self.out_channels:
            add("shortcut", in_channels, self.out_channels, 1, stride)
        if residual in ("phydi", "code"):
            self.alpha = nn.Parameter(torch.empty((), **at))
        if residual == "fixup":
            self.scale = nn.Parameter(torch.empty((), **at))
            self._scale_branch()
        self._start()

    def _start(self) -> None:
        with torch.no_grad():
            for name, parameter in self.named_parameters(recurse=False):
                if name.startswith(("alpha", "before", "after")):
                    parameter.zero_()
            if self.residual == "fixup":
                self.scale.fill_(1)

    def _scale_branch(self) -> None:
        """Fixup's start of drawn convolutions, m of them in a branch: times the blocks' number to the power -1 / (2m - 2); the
        last one is zero."""
        with torch.no_grad():
            for layer in self._numbered("conv"):
                layer.F.mul_(self._blocks ** (-1 / (2 * self._count - 2)))
            layer.F.zero_()

    def reset_parameters(self) -> None:
        """alpha and fixup's scalars as at the start; the children have their own. But fixup's convolutions, whose scale depends
        on the depth, are drawn here: call it after theirs, as ``apply`` does."""
        self._start()
        if self.residual == "fixup":
            for layer in self._numbered("conv"):
                layer.reset_parameters()
            self._scale_branch()

    def _numbered(self, name: str) -> list[Any]:
        return [getattr(self, f"{name}{number}") for number in range(1, self._count + 1)]

    def _branch(self, y: Tensor) -> Tensor:
        for number, layer in enumerate(self._numbered("conv"), 1):
            last = number == self._count
            made_by: nn.Module = layer
            if self.residual == "fixup":
                y = layer(y + getattr(self, f"before{number}"))
                y = (y * self.scale if last else y) + getattr(self, f"after{number}")
            else:
                made_by = getattr(self, f"norm{number}")
                y = made_by(layer(y))
            if not last:
                y = _relu(y, made_by)
        return y

    def _infer(self, x: Tensor) -> Tensor:
        """forward without gradients in eval mode: norms, the sum and activations ride on the convolutions."""
        through = y = x
        if self.shortcut is not None:
            if self.shortcut_norm is None:
                through = self.shortcut(x + self.before1 if self.residual == "fixup" else x)
            else:
                through = self.shortcut.forward_with_epilogue(x, *scale_and_shift(self.shortcut_norm))
        for number, layer in enumerate(self._numbered("conv"), 1):
            last = number == self._count
            scale: Tensor | None
            if self.residual == "fixup":
                y = y + getattr(self, f"before{number}")
                scale = self.scale.expand(layer.out_channels) if last else None
                shift = getattr(self, f"after{number}").expand(layer.out_channels)
            else:
                scale, shift = scale_and_shift(getattr(self, f"norm{number}"))
                if last and self.residual == "phydi":
                    scale, shift = self.alpha * scale, self.alpha * shift
            added = through if last and self.residual != "code" else None
            y = layer.forward_with_epilogue(y, scale, shift, added, "identity" if last and self.residual == "phydi" else "relu")
        return through + self.alpha * y if self.residual == "code" else y

    def forward(self, x: Tensor) -> Tensor:
        if _rides(*self.children()):
            return self._infer(x)
        through = x
        if self.shortcut is not None:
            # Fixup's shortcut sees what its branch sees.
            through = self.shortcut(x + self.before1 if self.residual == "fixup" else x)
            if self.shortcut_norm is not None:
                through = self.shortcut_norm(through)
        branch = self._branch(x)
        if self.residual == "phydi":
            return through + self.alpha * branch
        if self.residual == "code":
            return through + self.alpha * branch.relu()
        return (through + branch).relu_()

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, residual={self.residual}"


class ResNet(nn.Module):
    """PHYDI's PHResNet: a stem, four stages of blocks, the mean over all pixels, a real linear layer. PHYDI's own is that for
    CIFAR's images, with the small stem. At n = 1 it is the real ResNet.

    In eval mode without gradients norms, sums and activations ride on the convolutions (``Conv2d.forward_with_epilogue``).

    Args:
        in_channels: of the images; n divides them, or any where the first convolution is real.
        classes: how many scores an image gets.
        depth: 18 and 34: blocks of two 3 x 3 convolutions; 50, 101 and 152: of 1 x 1, 3 x 3 and 1 x 1, the last with four
            times the channels.
        widths: channels of the four stages; n must divide them. PHYDI takes 60, 120, 240, 516 at n = 3.
        residual: what a block makes of its input x, through its shortcut s, and its branch F: ``plain`` ReLU(s(x) + F(x));
            ``phydi`` s(x) + alpha F(x), with an alpha that is learned and 0 at the start (PHYDI (3)); ``code``
            s(x) + alpha ReLU(F(x)), as its authors' program has it; ``fixup`` ReLU(s(x) + F(x)) without norms, with scalars
            around each convolution, before the stem's ReLU and before the head (Zhang et al. 2019).
        norm: ``batch``, or ``whitening`` of each unit (``WhiteningNorm``); fixup has none, whatever stands here.
        stem: what it begins with: ``small`` a 3 x 3 convolution, for pictures of some 32 pixels a side; ``large``, for some
            224, that of He et al.: a 7 x 7 convolution of stride 2, and behind its norm and ReLU the maximum over 3 x 3
            pixels in steps of 2.
        real_stem: the first convolution is real.
        bias: whether the convolutions have one.
        algebra, initialiser, way, winograd: of all convolutions.

    Children: ``stem``, ``stem_norm``, ``blocks``, ``head``. Parameters beside those of its layers: of fixup ``after_stem`` and
    ``before_head`` (), which are added behind the stem and before the head. Shape: (B, in_channels, h, w) -> (B, classes).
    Inside, pixels lie with their channels together (channels last), whatever the input's memory is.

    Raises:
        ValueError: there is no such depth, n does not divide a number of channels, or x has another shape.

    >>> import torch, quatrain
    >>> net = quatrain.models.ResNet(4, 10, widths=(8, 16, 32, 64), algebra="phm(4)").eval()
    >>> net(torch.randn(2, 4, 32, 32)).shape
    torch.Size([2, 10])
    """

    stem: Conv2d
    stem_norm: nn.Module | None
    large_stem = False  # of networks that were pickled before there was one
    after_stem: Tensor
    before_head: Tensor

    def __init__(
        self,
        in_channels: int,
        classes: int,
        *,
        depth: int = 18,
        widths: Sequence[int] = (64, 128, 256, 512),
        residual: Residual = "plain",
        norm: ConvolutionNorm = "batch",
        stem: Stem = "small",
        real_stem: bool = False,
        bias: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        algebra: str | Spec = "quaternion",
        initialiser: Initialiser = "he",
        way: Way = "auto",
        winograd: Winograd = "auto",
    ) -> None:
        super().__init__()
        _check_options(depth, residual, norm)
        _check.choice("stem", stem, get_args(Stem))
        spec, stages = Spec.parse(algebra), _DEPTHS[depth][0]
        if len(widths) != len(stages):
            raise ValueError(f"ResNet: widths must have {len(stages)} numbers, one for each stage, got {len(widths)}")
        for width in widths:
            _check.divisible("ResNet", "widths", width, spec.n)
        _check.at_least_one("ResNet", "classes", classes)
        self.in_channels, self.classes, self.depth, self.residual = in_channels, classes, depth, residual
        at: dict[str, Any] = {"device": device, "dtype": dtype}
        options = at | {"bias": bias, "algebra": spec, "initialiser": initialiser, "way": way, "winograd": winograd}
        first = options | {"algebra": "real"} if real_stem else options
        _check.divisible("ResNet", "in_channels", in_channels, 1 if real_stem else spec.n, way_out="add channels, or take real_stem")
        self.large_stem = stem == "large"
        kernel, stride = (7, 2) if self.large_stem else (3, 1)
        self.stem = Conv2d(in_channels, widths[0], kernel, stride=stride, padding=kernel // 2, **first)
        self.stem_norm = None if residual == "fixup" else _norm(norm, widths[0], spec.n, at)
        self.blocks = nn.ModuleList()
        channels = widths[0]
        for stage, (width, count) in enumerate(zip(widths, stages)):
            for number in range(count):
                stride = 2 if stage and not number else 1
                block = ResNetBlock(channels, width, stride, depth=depth, residual=residual, norm=norm, **options)
                channels = block.out_channels
                self.blocks.append(block)
        self.head = nn.Linear(channels, classes, **at)
        if residual == "fixup":
            self.after_stem, self.before_head = (nn.Parameter(torch.empty((), **at)) for _ in range(2))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Fixup's head and scalars zero; the children have their own: call it after theirs, as ``apply`` does."""
        if self.residual == "fixup":
            with torch.no_grad():
                for parameter in (self.head.weight, self.head.bias, self.after_stem, self.before_head):
                    parameter.zero_()

    @classmethod
    def from_run(cls, run: Run) -> ResNet:
        """The network of a run of pictures (``quatrain.load``), with a copy of its weights, in eval mode.

        Other than the run's own model it can be copied, compiled, exported and materialised. Its buffers ``pixel_mean`` and
        ``pixel_deviation`` (3) are those of red, green and blue in the training set, of which 0 is none and 1 is all: a pixel
        is given as (pixel - mean) / deviation. ``save_model`` writes what ``quatrain predict`` reads.

        Raises ValueError where the run is of another kind.
        """
        options = options_of("ResNet", run, "images")
        widths = [int(width) for width in options.pop("widths").split()]
        stem = run.model.state_dict()["stem.F"]
        network = cls(stem.size(0) * stem.size(2), len(run.labels), widths=widths, **options, **place_of(run))
        return with_state_of(run, network)

    def _layers(self, x: Tensor) -> Tensor:
        y = x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)  # vmap knows no memory formats
        fixup = self.residual == "fixup"
        if _rides(self.stem, self.stem_norm):
            scale, shift = (None, None) if self.stem_norm is None else scale_and_shift(self.stem_norm)
            if fixup:
                shift = self.after_stem.expand(self.stem.out_channels)
            y = self.stem.forward_with_epilogue(y, scale, shift, activation="relu")
        else:
            y = self.stem(y)
            y = y + self.after_stem if fixup else y
            y = _relu(y, self.stem) if self.stem_norm is None else _relu(self.stem_norm(y), self.stem_norm)
        if self.large_stem:
            y = nn.functional.max_pool2d(y, 3, 2, 1)
        for block in self.blocks:
            y = block(y)
        mean = y.mean((2, 3))
        return cast(Tensor, self.head(mean + self.before_head if fixup else mean))

    def forward(self, x: Tensor) -> Tensor:
        if x.dim() != 4 or x.size(1) != self.in_channels:
            raise ValueError(f"ResNet: x must have the shape (images, {self.in_channels}, height, width), got {list(x.shape)}")
        return self._layers(x)

    def extra_repr(self) -> str:
        stem = ", stem=large" if self.large_stem else ""
        return f"{self.in_channels}, {self.classes}, depth={self.depth}, residual={self.residual}{stem}"
