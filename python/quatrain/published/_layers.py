"""Single layers."""

from __future__ import annotations

import warnings
from typing import Any, Mapping

import torch
from torch import Tensor

from .. import nn
from ._state import COMPONENTS, State


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


_Convolution = nn.Conv1d | nn.Conv2d | nn.Conv3d | nn.ConvTranspose1d | nn.ConvTranspose2d | nn.ConvTranspose3d
_PLAIN: tuple[Any, ...] = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_TRANSPOSED: tuple[Any, ...] = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)


def convolution(state: Mapping[str, Tensor], prefix: str = "", *, transposed: bool = False, **options: Any) -> _Convolution:
    """The convolution with the weights of Orkis's ``QuaternionConv`` or ``QuaternionTransposeConv``, speechbrain's ``QConv1d`` or
    ``QConv2d``, HyperNets' ``PHConv1D`` or ``PHMConv2d``, or PHYDI's.

    The first four are quaternion layers. Theirs hold ``r_weight`` to ``k_weight`` (out/4, in/4, kernel...), which become F, and
    ``bias``. Those of the transposed one are (in/4, out/4, kernel...), and its input is multiplied by conj(W).

    The others hold ``A`` (n, n, n) and ``F`` (n, out/n, in/n, kernel...) of H = sum_i A_i (x) F_i, which become A and F of
    ``algebra="phm(n)"``; some of them are called ``a`` and ``s``. With PHYDI's ``kron_weights`` (n) it is ``wkp(n)``. Their
    ``bias`` is never added; it is dropped, with a warning where it is not zero.

    Args:
        state: a state dict that holds PREFIX.r_weight and the others, PREFIX.A and PREFIX.F, or PREFIX.a and PREFIX.s.
        prefix: of the layer's names, without the last dot.
        transposed: whether it is a ``QuaternionTransposeConv``, which its tensors do not tell.
        options: stride, padding, dilation, padding_mode and output_padding, which a state dict does not hold.

    Raises ValueError where a tensor is missing or has another shape or belongs to a layer that rotates, where there is a second
    sum (``A2``, ``F2``), for groups, and for ``kron_weights`` with a kernel of more than one place, over which their product
    scatters the entries of A.

    >>> import torch, quatrain
    >>> state = {"conv1.A": torch.randn(2, 2, 2), "conv1.F": torch.randn(2, 4, 3, 3, 3)}
    >>> quatrain.published.convolution(state, "conv1", padding=1)
    Conv2d(6, 8, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), algebra=phm(2), bias=False)
    >>> state = {f"up.{c}_weight": torch.randn(3, 2, 4) for c in "rijk"}
    >>> quatrain.published.convolution(state, "up", transposed=True, stride=2)
    ConvTranspose1d(12, 8, kernel_size=(4,), stride=(2,), algebra=quaternion, bias=False)
    """
    tensors = State("published.convolution", state, prefix)
    if options.get("groups", 1) != 1:
        raise ValueError(
            f"published.convolution: groups must be 1, got {options['groups']}: those of the published layers are runs of "
            "channels, where ours are parts of every component"
        )
    A = w = bias = None
    if any(component in tensors.rest for component in COMPONENTS):
        F, bias = tensors.kernel(transposed)
        algebra = "quaternion"
    elif transposed:
        raise ValueError(f"published.convolution: there is no '{tensors.prefix}r_weight', and transposed layers are quaternion ones")
    else:
        A, F, w, biased = tensors.convolution()
        algebra = f"phm({A.size(0)})" if w is None else f"wkp({A.size(0)})"
        if biased:
            warnings.warn(f"published.convolution: '{tensors.prefix}bias' is dropped: the published layer never adds it", stacklevel=2)
    n, kernel = F.size(0), tuple(F.shape[3:])
    inputs, outputs = (1, 2) if transposed else (2, 1)
    layer: _Convolution = (_TRANSPOSED if transposed else _PLAIN)[len(kernel) - 1](
        n * F.size(inputs),
        n * F.size(outputs),
        kernel,
        bias=bias is not None,
        device=F.device,
        dtype=F.dtype,
        algebra=algebra,
        **options,
    )
    with torch.no_grad():
        for mine, theirs in ((layer.A, A), (layer.F, F), (layer.w, w), (layer.bias, bias)):
            if mine is not None and theirs is not None:
                mine.copy_(theirs.reshape(mine.shape))
    return layer
