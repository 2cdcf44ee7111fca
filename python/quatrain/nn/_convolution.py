"""What plain and transposed convolutions share."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Literal, Sequence, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..algebra import Spec
from ..init import Initialiser
from . import _check
from ._computed import computed
from .weight import WAYS, OneWeightLayer, Way

_convolution = torch.ops.quatrain.convolution.default
_convolution_with_epilogue = torch.ops.quatrain.convolution_with_epilogue.default

#: Which of Winograd's transforms a 3 x 3 convolution takes.
Winograd = Literal["auto", "none", "2x2", "4x4"]
WINOGRADS = get_args(Winograd)
PADDING_MODES = ("zeros", "reflect", "replicate", "circular")
#: What has a number for each spatial axis, and the least of them.
_LEAST = {"kernel_size": 1, "stride": 1, "dilation": 1, "padding": 0, "output_padding": 0}
#: A number for each spatial axis, or one for all.
Sizes = int | Sequence[int]


def _sizes(layer: str, argument: str, given: Sizes, axes: int, least: int) -> tuple[int, ...]:
    each = given if isinstance(given, Iterable) and not isinstance(given, str) else (given,) * axes
    sizes = tuple(_check.whole(layer, argument, size) for size in each)
    if len(sizes) != axes:
        raise ValueError(f"{layer}: {argument} must be a number or {axes} of them, got {given}")
    for size in sizes:
        if size < least:
            raise ValueError(f"{layer}: {argument} must be at least {least}, got {size}")
    return sizes


def _channels_last(x: Tensor) -> bool:
    """True where a batch of signals or images lies channels last, by the rule of ``Tensor::suggest_memory_format``.

    False where both orders fit."""
    if x.is_contiguous():
        return False
    values = 0  # that an axis steps over at least: those of the axis before it
    for axis in (1, *range(x.dim() - 1, 1, -1), 0):
        stride, size = x.stride(axis), x.shape[axis]
        if size == 0 or stride < values or axis == 0 and values == x.stride(1):
            return False
        values = stride * size
    return x.stride(1) > 0


class Convolution(OneWeightLayer):
    """What all of them share. ``_axes``: how many spatial ones."""

    _axes: int
    transposed = False

    w: Tensor | None
    F: Tensor
    bias: Tensor | None
    #: A number for each axis, whatever they are set to (``__setattr__``).
    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: str | tuple[int, ...]
    padding_mode: str
    output_padding: tuple[int, ...]

    def _make(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes,
        dilation: Sizes,
        groups: int,
        bias: bool,
        device: torch.device | str | None,
        dtype: torch.dtype | None,
        algebra: str | Spec,
        initialiser: Initialiser,
        way: Way,
        winograd: Winograd,
    ) -> None:
        layer = type(self).__name__
        _check.flag(layer, "bias", bias)
        spec = Spec.parse(algebra)
        _check.at_least_one(layer, "groups", groups)
        text = "n * groups" if groups > 1 else "n"
        way_out = 'add channels, or give a first layer the algebra "real"' if spec.n > 1 else ""
        _check.divisible(layer, "in_channels", in_channels, spec.n * groups, text, way_out)
        _check.divisible(layer, "out_channels", out_channels, spec.n * groups, text)
        _check.choice("way", way, WAYS)
        _check.choice("winograd", winograd, WINOGRADS)
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self._set(kernel_size=kernel_size, stride=stride, dilation=dilation)
        self.initialiser, self.way, self.winograd = initialiser, way, winograd
        self._weight = self.add_weight(
            spec,
            in_channels if self.transposed else in_channels // groups,
            out_channels // groups if self.transposed else out_channels,
            self.kernel_size,
            initialiser=initialiser,
            name="F",
            device=device,
            dtype=dtype,
            inputs_first=self.transposed,
        )
        self.register_parameter("bias", nn.Parameter(torch.zeros(out_channels, device=device, dtype=dtype)) if bias else None)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Convolution:
        # model.to(memory_format=torch.channels_last) asks an order of pixels of all that has as many axes as a batch of
        # images or of volumes. F is none: it is shown without them.
        def as_matrix(t: Tensor) -> Tensor:
            if t.dim() <= 3:
                return fn(t)
            matrix = t.flatten(1)
            moved = fn(matrix)
            return t if moved is matrix else moved.unflatten(1, t.shape[1:])

        super()._apply(as_matrix, recurse)
        return self

    def reset_parameters(self) -> None:
        """Draws F and A again by the initialiser, as the C++ layer does from the same seed; sets bias to zero, w to one."""
        self._weight.draw(self)
        if self.bias is not None:
            with torch.no_grad():
                self.bias.zero_()

    def _sides(self) -> list[tuple[int, int]]:
        """Pixels before and behind x, of each axis. Computed in every call: attributes may have been set, as torch's may."""
        if not isinstance(self.padding, str):
            return [(pixels, pixels) for pixels in self.padding]
        if self.padding == "valid":
            return [(0, 0)] * self._axes
        if any(one != 1 for one in self.stride):
            raise ValueError(
                f"{type(self).__name__}: padding can be same only where the stride is 1, got {max(self.stride)}"
            )
        around = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size)]
        return [(all // 2, all - all // 2) for all in around]  # an odd pixel is behind, as torch has it

    def _check_mode(self, x: Tensor, sides: list[tuple[int, int]]) -> None:
        """Refuses padding that the mode would take from more pixels than the image has."""
        if self.padding_mode not in ("reflect", "circular"):
            return
        for axis, (pixels, one) in enumerate(zip(x.shape[2:], sides)):
            most = pixels - 1 if self.padding_mode == "reflect" else pixels
            if max(one) > most:
                raise ValueError(
                    f"{type(self).__name__}: with padding_mode {self.padding_mode} padding must be at most {most} on spatial axis "
                    f"{axis} of {pixels} pixels, got {max(one)}"
                )

    def _padded(self, x: Tensor) -> tuple[Tensor, list[int]]:
        """x as a batch, with what the operator does not pad; and the zeros that it does, as many on both sides."""
        _check.floating(type(self).__name__, x)
        # With the channels where they lie, first or last.
        x = x.movedim(0, -1).unsqueeze(0).movedim(-1, 1) if x.dim() == self._axes + 1 else x
        sides, zeros = self._sides(), self.padding_mode == "zeros"
        both = [min(one) if zeros else 0 for one in sides]
        before = [pixels - done for one, done in zip(reversed(sides), reversed(both)) for pixels in one]
        # What is no batch of images, or has no pixel, the operator refuses.
        if not any(before) or x.dim() != self._axes + 2 or any(pixels < 1 for pixels in x.shape[2:]):
            return x, both
        self._check_mode(x, sides)
        padded = functional.pad(x, before, "constant" if zeros else self.padding_mode)
        # Not every mode keeps the order. An order that is asked for by its name is not known to vmap.
        return padded.movedim(1, -1).contiguous().movedim(-1, 1) if _channels_last(x) else padded, both

    def _result_sizes(self, x: Tensor) -> tuple[int, ...]:
        """The shape of what becomes of an x that fits."""
        sizes = []
        for axis, (have, (before, behind)) in enumerate(zip(x.shape[-self._axes :], self._sides())):
            stride, reach = self.stride[axis], self.dilation[axis] * (self.kernel_size[axis] - 1)
            if self.transposed:
                sizes.append((have - 1) * stride - before - behind + reach + 1 + self.output_padding[axis])
            else:
                sizes.append((have + before + behind - reach - 1) // stride + 1)
        return (*x.shape[: -self._axes - 1], self.out_channels, *sizes)

    def _run(self, x: Tensor, output_padding: Sequence[int]) -> Tensor:
        F, algebra, A, factors, constant = self._weight.operands(self)
        padded, both = self._padded(x)
        y = _convolution(
            padded, F, self.bias, algebra, A, factors, self.stride, both, self.dilation, self.transposed, output_padding,
            self.groups, self.way, self.winograd, None, constant,
        )  # fmt: skip
        return y.squeeze(0) if x.dim() == self._axes + 1 else y

    def forward_with_epilogue(
        self,
        x: Tensor,
        scale: Tensor | None = None,
        shift: Tensor | None = None,
        residual: Tensor | None = None,
        activation: str = "identity",
    ) -> Tensor:
        """activation(scale (H x + bias) + shift + residual), value by value; what is None is left out.

        So a batch norm in eval mode, a residual sum and an activation cost nothing of their own, where no gradient is asked for.

        Args:
            x: the input of ``forward``.
            scale, shift: (out_channels).
            residual: of the result's shape.
            activation: one of ``quatrain.ops.ACTIVATIONS``.

        Raises RuntimeError or ValueError for another shape, ValueError for an unknown activation.

        >>> import torch, quatrain
        >>> layer, norm = quatrain.nn.Conv2d(8, 8, 3, padding=1), torch.nn.BatchNorm2d(8).eval()
        >>> x, scale = torch.randn(2, 8, 5, 5), norm.weight * (norm.running_var + norm.eps).rsqrt()
        >>> y = layer.forward_with_epilogue(x, scale, norm.bias - norm.running_mean * scale, x, "relu")
        >>> torch.allclose(y, torch.relu(norm(layer(x)) + x), atol=1e-5)
        True
        """
        F, algebra, A, factors, constant = self._weight.operands(self)
        if self.bias is not None:
            for argument, values in (("scale", scale), ("shift", shift)):
                if values is not None and values.shape != self.bias.shape:
                    raise ValueError(
                        f"{type(self).__name__}: {argument} must have out_channels = {self.out_channels} values, got "
                        f"{list(values.shape)}"
                    )
            moved = self.bias if scale is None else scale * self.bias
            shift = moved if shift is None else moved + shift
        padded, both = self._padded(x)
        single = x.dim() == self._axes + 1
        y = _convolution_with_epilogue(
            padded, F, scale, shift, residual.unsqueeze(0) if single and residual is not None else residual, activation, algebra, A,
            factors, self.stride, both, self.dilation, self.transposed, self.output_padding, self.groups, self.way, self.winograd,
            None, constant,
        )  # fmt: skip
        return y.squeeze(0) if single else y

    @property
    def weight(self) -> Tensor:
        """The real layer's kernel, differentiable: for code that looks at it. Slow: it is built in every call."""
        H = self.matrix().unflatten(1, (-1, *self.kernel_size))
        return computed(H.transpose(0, 1) if self.transposed else H)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "weight":
            raise AttributeError(
                f"{type(self).__name__}: weight is the real kernel, computed from F and A, and cannot be set: write into F, or "
                "take quatrain.convert, which gives a layer the nearest weights"
            )
        layer = type(self).__name__
        if name == "padding" and isinstance(value, str):
            if self.transposed:
                raise ValueError(f"{layer}: padding must be a number of pixels, got {value!r}")
            _check.choice(name, value, ("same", "valid"))
        elif name in _LEAST:
            value = _sizes(layer, name, value, self._axes, _LEAST[name])
        super().__setattr__(name, value)

    def _set(self, **sizes: Sizes | str) -> None:
        for name, value in sizes.items():
            setattr(self, name, value)

    def extra_repr(self) -> str:
        usual = {
            "padding": (0,) * self._axes,
            "dilation": (1,) * self._axes,
            "output_padding": (0,) * self._axes,
            "groups": 1,
            "padding_mode": "zeros",
        }
        given = "".join(f", {name}={getattr(self, name)}" for name, value in usual.items() if getattr(self, name) != value)
        return (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}{given}, "
            f"algebra={self.spec}, bias={self.bias is not None}"
        )
