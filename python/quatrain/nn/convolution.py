"""Hypercomplex convolutions of one to three spatial axes, plain and transposed."""

from __future__ import annotations

from typing import Sequence

import torch
from torch import Tensor

from ..algebra import Spec
from ..init import Initialiser
from . import _check
from ._convolution import PADDING_MODES, Convolution, Sizes, Winograd
from .weight import Way


class _Plain(Convolution):
    r"""A convolution whose map of channels is H = sum_i A_i (x) F_i at each place of the kernel (PHC, PHYDI (2)).

    It holds 1/n of the weights of torch's layer of the same name, which it is at n = 1, and takes its arguments.

    Args:
        in_channels: d; n * groups must divide it.
        out_channels: k; n * groups must divide it.
        kernel_size, stride, dilation: a number for each spatial axis, or one for all.
        padding: pixels on both sides, a number for each axis or one for all; ``same`` or ``valid``.
        groups: each component is split in so many parts, and group g holds the g-th part of every component.
        padding_mode: ``zeros``, ``reflect``, ``replicate`` or ``circular``.
        algebra: what the layer multiplies with: ``quaternion``, ``phm(4)``, ``wkp(4)``, ``real`` ...
        initialiser: one of ``quatrain.init.INITIALISERS``.
        way: how the map is evaluated; the planner chooses by default.
        winograd: which of Winograd's transforms a 3 x 3 convolution takes, also a real one of more than a few channels;
            ``4x4`` is faster and less exact; ``auto`` takes it where ``torch.backends.mkldnn.conv.fp32_precision`` is
            ``"tf32"`` or ``"bf16"``.

    Parameters: ``A`` (n, n, n), or ``factors``, and ``w`` as of ``Linear``; ``F`` (n, k/n, d/(n groups), kernel...);
    ``bias`` (k), zero at start.

    Shape: (B, d, spatial...) or (d, spatial...) -> the same with k channels, n components side by side on their axis.

    Raises:
        ValueError: n * groups does not divide a number of channels, or the options contradict each other.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        algebra: str | Spec = "quaternion",
        initialiser: Initialiser = "glorot",
        way: Way = "auto",
        winograd: Winograd = "auto",
    ) -> None:
        super().__init__()
        _check.choice("padding_mode", padding_mode, PADDING_MODES)
        self._make(
            in_channels, out_channels, kernel_size, stride, dilation, groups, bias, device, dtype, algebra, initialiser, way, winograd
        )  # fmt: skip
        self.padding_mode = padding_mode
        self._set(padding=padding, output_padding=0)
        self._sides()  # refuses what they cannot be together

    def forward(self, input: Tensor) -> Tensor:
        return self._run(input, self.output_padding)


class Conv1d(_Plain):
    __doc__ = _Plain.__doc__
    _axes = 1


class Conv2d(_Plain):
    __doc__ = (_Plain.__doc__ or "") + """
    >>> import torch, quatrain
    >>> layer = quatrain.nn.Conv2d(8, 12, 3, padding=1, algebra="quaternion")
    >>> layer(torch.randn(5, 8, 7, 7)).shape
    torch.Size([5, 12, 7, 7])
    >>> layer.F.shape, layer.weight.shape
    (torch.Size([4, 3, 2, 3, 3]), torch.Size([12, 8, 3, 3]))
    """
    _axes = 2


class Conv3d(_Plain):
    __doc__ = _Plain.__doc__
    _axes = 3


class _Turned(Convolution):
    r"""The transposed convolution: H = sum_i A_i (x) F_i maps each pixel of x to a kernel's size of pixels, which are added up.

    H goes from input to output as in a convolution, so this is not its adjoint, which would conjugate. Arguments are
    those of torch's layer of the same name, in its order; ``algebra``, ``initialiser``, ``way``, ``winograd`` and
    ``groups`` are those of ``Conv2d``. Parameters: ``F`` (n, d/n, k/(n groups), kernel...), ``A`` or ``factors`` and
    ``w``; ``bias`` (k).

    Shape: (B, d, spatial...) or (d, spatial...) -> the same with k channels.

    Raises:
        ValueError: n * groups does not divide a number of channels, or the options contradict each other.
    """

    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Sizes = 1,
        padding_mode: str = "zeros",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        algebra: str | Spec = "quaternion",
        initialiser: Initialiser = "glorot",
        way: Way = "auto",
        winograd: Winograd = "auto",
    ) -> None:
        super().__init__()
        layer = type(self).__name__
        if padding_mode != "zeros":
            raise ValueError(f"{layer}: padding_mode must be zeros, got {padding_mode!r}")
        self._make(
            in_channels, out_channels, kernel_size, stride, dilation, groups, bias, device, dtype, algebra, initialiser, way, winograd
        )  # fmt: skip
        self.padding_mode = padding_mode
        self._set(padding=padding, output_padding=output_padding)

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """``output_size``: the result's spatial axes, in place of ``output_padding``."""
        more = self.output_padding if output_size is None else self._output_padding(input, output_size)
        return self._run(input, more)

    def _output_padding(self, x: Tensor, output_size: Sequence[int]) -> tuple[int, ...]:
        layer, wanted = type(self).__name__, tuple(output_size)[-self._axes :]
        if len(wanted) != self._axes:
            raise ValueError(f"{layer}: output_size must have {self._axes} axes, got {tuple(output_size)}")
        result = []
        for axis, (size, have, (before, behind)) in enumerate(zip(wanted, x.shape[-self._axes :], self._sides())):
            stride, dilation = self.stride[axis], self.dilation[axis]
            least = (have - 1) * stride - before - behind + dilation * (self.kernel_size[axis] - 1) + 1
            most = least + max(stride, dilation) - 1
            if not least <= size <= most:
                raise ValueError(f"{layer}: output_size must be from {least} to {most} on axis {axis}, got {size}")
            result.append(size - least)
        return tuple(result)


class ConvTranspose1d(_Turned):
    __doc__ = _Turned.__doc__
    _axes = 1


class ConvTranspose2d(_Turned):
    __doc__ = _Turned.__doc__
    _axes = 2


class ConvTranspose3d(_Turned):
    __doc__ = _Turned.__doc__
    _axes = 3
