"""Single layers."""

from __future__ import annotations

import warnings
from typing import Any, Mapping

import torch
from torch import Tensor

from .. import nn
from ._state import State


def linear(state: Mapping[str, Tensor], prefix: str = "") -> nn.Linear:
    """The layer with the weights of Orkis's ``QuaternionLinear``, ``QuaternionLinearAutograd``, speechbrain's ``QLinear`` or
    HyperNets' ``PHMLinear``.

    The last holds ``a`` (n, n, n) and ``s`` (n, out/n, in/n) of H = sum_i a_i (x) s_i, which become A and S of
    ``algebra="phm(n)"``; the others are quaternion layers.

    Args:
        state: a state dict that holds PREFIX.r_weight and the others, or PREFIX.a and PREFIX.s, and PREFIX.bias where there
            is one.
        prefix: of the layer's names, without the last dot.

    Raises ValueError where a tensor is missing, has another shape, or belongs to a layer that rotates.

    >>> import torch, quatrain
    >>> state = {f"fc1.{c}_weight": torch.randn(3, 2) for c in "rijk"}
    >>> quatrain.published.linear(state, "fc1")
    Linear(in_features=12, out_features=8, algebra=quaternion, bias=False)
    >>> quatrain.published.linear({"fc2.a": torch.randn(2, 2, 2), "fc2.s": torch.randn(2, 4, 3)}, "fc2")
    Linear(in_features=6, out_features=8, algebra=phm(2), bias=False)
    """
    tensors = State("published.linear", state, prefix)
    A: Tensor | None = None
    if "a" in tensors.rest:
        A, S = tensors.learned(("a", "s"), (3,))
        bias = tensors.bias("", S.size(0) * S.size(1))
    else:
        S, bias = tensors.map("")
    n = S.size(0)
    layer = nn.Linear(
        n * S.size(2), n * S.size(1), bias is not None, S.device, S.dtype, algebra="quaternion" if A is None else f"phm({n})"
    )
    with torch.no_grad():
        for mine, theirs in ((layer.A, A), (layer.S, S), (layer.bias, bias)):
            if mine is not None and theirs is not None:
                mine.copy_(theirs)
    return layer


def convolution(state: Mapping[str, Tensor], prefix: str = "", **options: Any) -> nn.Conv1d | nn.Conv2d | nn.Conv3d:
    """The convolution over a learned algebra with the weights of HyperNets' ``PHConv1D`` and ``PHMConv2d`` or PHYDI's.

    Theirs hold ``A`` (n, n, n) and ``F`` (n, out/n, in/n, kernel...) of H = sum_i A_i (x) F_i, which become A and F of
    ``algebra="phm(n)"``; some of them are called ``a`` and ``s``. With PHYDI's ``kron_weights`` (n) it is ``wkp(n)``. Their
    ``bias`` is never added; it is dropped, with a warning where it is not zero.

    Args:
        state: a state dict that holds PREFIX.A and PREFIX.F, or PREFIX.a and PREFIX.s.
        prefix: of the layer's names, without the last dot.
        options: stride, padding, dilation and padding_mode, which a state dict does not hold.

    Raises ValueError where a tensor is missing or has another shape, where there is a second sum (``A2``, ``F2``), and for
    ``kron_weights`` with a kernel of more than one place, over which their product scatters the entries of A.

    >>> import torch, quatrain
    >>> state = {"conv1.A": torch.randn(2, 2, 2), "conv1.F": torch.randn(2, 4, 3, 3, 3)}
    >>> quatrain.published.convolution(state, "conv1", padding=1)
    Conv2d(6, 8, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), algebra=phm(2), bias=False)
    """
    tensors = State("published.convolution", state, prefix)
    A, F, w, biased = tensors.convolution()
    n, kernel = A.size(0), tuple(F.shape[3:])
    if biased:
        warnings.warn(f"published.convolution: '{tensors.prefix}bias' is dropped: the published layer never adds it", stacklevel=2)
    kinds: tuple[Any, ...] = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
    layer: nn.Conv1d | nn.Conv2d | nn.Conv3d = kinds[len(kernel) - 1](
        n * F.size(2),
        n * F.size(1),
        kernel,
        bias=False,
        device=F.device,
        dtype=F.dtype,
        algebra=f"phm({n})" if w is None else f"wkp({n})",
        **options,
    )
    with torch.no_grad():
        for mine, theirs in ((layer.A, A), (layer.F, F), (layer.w, w)):
            if mine is not None and theirs is not None:
                mine.copy_(theirs.reshape(mine.shape))
    return layer
