"""The maps: linear, convolution, recurrence and embedding, and what is kept of their weights."""

from __future__ import annotations

from typing import Sequence

import torch
from torch import Tensor

from .. import _library as _library

_ops = torch.ops.quatrain
# Bound once: the search for an overload costs microseconds in every call.
_linear = _ops.linear.default
_convolution = _ops.convolution.default
_recurrence = _ops.recurrence.default
_recurrent_layer = _ops.recurrent_layer.default


def linear(
    x: Tensor,
    S: Tensor,
    bias: Tensor | None = None,
    algebra: str = "real",
    A: Tensor | None = None,
    factors: Sequence[Tensor] = (),
    way: str = "auto",
    dtype: torch.dtype | None = None,
    constant: bool = False,
) -> Tensor:
    """y = x H^T + bias with H = sum_i A_i (x) S_i (PHM (3.2); the left Hamilton product for quaternions).

    ``x``: (..., d), any strides, any leading sizes, zero included. ``S``: (n, k/n, d/n). ``bias``: (k). Returns (..., k).
    ``algebra`` is a fixed algebra's name; or ``learned``, which goes with ``A`` (n, n, n) and optionally its ``factors``
    U, V, W (n, R), never differentiated; or ``factored``, where ``A`` is (3, n, R): the U, V, W themselves are learned.
    ``way``: ``auto`` (the planner chooses), ``factored``, ``mixed``, ``materialised``; the results agree up to rounding. ``dtype`` is the type to compute in (default: x's). ``constant``
    says that S will not change until it is trained again, so that its prepared form may be kept (``drop_prepared``).
    Differentiable any number of times in x, S, A and bias.

    >>> import torch, quatrain
    >>> x, S = torch.randn(2, 8), torch.randn(4, 3, 2)
    >>> y = quatrain.ops.linear(x, S, algebra="quaternion")
    >>> H = quatrain.ops.materialise(S, "quaternion")
    >>> torch.allclose(y, x @ H.T, atol=1e-5)
    True
    """
    return _linear(x, S, bias, algebra, A, factors, way, dtype, constant)


def planned_way(
    x: Tensor,
    S: Tensor,
    algebra: str = "real",
    A: Tensor | None = None,
    factors: Sequence[Tensor] = (),
    constant: bool = False,
) -> str:
    """The way that ``linear`` would take.

    It depends on sizes, type, device and threads, and for a learned ``A`` on what is known of its factors: the first
    time that it is met it runs without.
    """
    return _ops.planned_way(x, S, algebra, A, list(factors), constant)


def convolution(
    x: Tensor,
    F: Tensor,
    bias: Tensor | None = None,
    algebra: str = "real",
    A: Tensor | None = None,
    factors: Sequence[Tensor] = (),
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    transposed: bool = False,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    way: str = "auto",
    winograd: str = "auto",
    dtype: torch.dtype | None = None,
    constant: bool = False,
) -> Tensor:
    """y = H * x + bias: a convolution of 1 to 3 spatial axes with H = sum_i A_i (x) F_i at each place of its kernel (PHC; PHYDI (2)).

    ``x``: (B, d, spatial...), any strides, B = 0 included. ``F``: (n, k/n, d/(n groups), kernel...); with ``transposed``
    (n, d/n, k/(n groups), kernel...), torch's order inside each F_i. ``bias``: (k). Returns (B, k, spatial...). ``stride``,
    ``padding`` (zeros on both sides), ``dilation`` and ``output_padding`` hold a number for each spatial axis, or one for all. Each
    component is split in ``groups`` parts. ``winograd``: ``auto``, ``none``, ``2x2``, ``4x4``. The others are those of ``linear``.
    Differentiable any number of times in x, F, A and bias.

    >>> import torch, quatrain
    >>> x, F = torch.randn(1, 8, 5, 5), torch.randn(4, 3, 2, 3, 3)
    >>> quatrain.ops.convolution(x, F, algebra="quaternion", padding=1).shape
    torch.Size([1, 12, 5, 5])
    """
    # fmt: off
    return _convolution(
        x, F, bias, algebra, A, factors, stride, padding, dilation, transposed, output_padding, groups, way, winograd, dtype, constant
    )
    # fmt: on


def convolution_with_epilogue(
    x: Tensor,
    F: Tensor,
    scale: Tensor | None = None,
    shift: Tensor | None = None,
    residual: Tensor | None = None,
    activation: str = "identity",
    algebra: str = "real",
    A: Tensor | None = None,
    factors: Sequence[Tensor] = (),
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    transposed: bool = False,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    way: str = "auto",
    winograd: str = "auto",
    dtype: torch.dtype | None = None,
    constant: bool = False,
) -> Tensor:
    """activation(scale (H * x) + shift + residual), value by value; what is None is left out.

    ``scale`` and ``shift``: (k), as of a batch norm in eval mode. ``residual``: of the result's shape. ``activation``:
    one of ``ACTIVATIONS``. The others are those of ``convolution``. On a CPU in float32, where nothing needs a
    gradient, values are finished while they are in the cache (identity, relu, tanh and sigmoid; others after it).
    Elsewhere it is the convolution and ATen's calls, and differentiable.
    """
    # fmt: off
    return _ops.convolution_with_epilogue(
        x, F, scale, shift, residual, activation, algebra, A, factors, stride, padding, dilation, transposed, output_padding, groups, way,
        winograd, dtype, constant
    )
    # fmt: on


def recurrence(
    z: Tensor,
    batch_sizes: Tensor,
    h0: Tensor,
    c0: Tensor | None,
    S: Sequence[Tensor],
    algebra: str = "real",
    A: Sequence[Tensor] = (),
    factors: Sequence[Tensor] = (),
    bias: Tensor | None = None,
    mask: Tensor | None = None,
    cell: str = "lstm",
    reverse: bool = False,
    constant: bool = False,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """A recurrent layer after the products of its inputs: gates_t = z_t + H h_{t-1} + bias, (h_t, c_t) = cell(gates_t, c_{t-1}).

    n components of p units each; h has q of each, p or what a projection makes of them. ``z``: (N, n gates p), the rows
    of all steps one after the other, the gates of each component side by side. ``batch_sizes`` (T) int64, on the CPU or
    where the inputs are: how many rows each step has (torch's ``PackedSequence``); they are at least 1, do not grow and
    are N together, else it is a ValueError. ``h0``: (B, n q), and where the cell has memory ``c0``: (B, n p), B =
    batch_sizes[0]. ``S``: one map for all gates (n, gates p, q), or one a gate (n, p, q); after them, of an lstm, that
    of a projection (n, q, p), whose product with h takes its place. ``A`` none or one for each, ``factors`` none or
    three for each. ``bias``: (n gates p), added to H h. ``mask``: (B, n q), what h is multiplied by before H. ``cell``:
    ``lstm`` (gates i, f, g, o), ``lstm_printed``, ``gru`` (r, z, n), ``rnn_tanh``, ``rnn_relu``. Returns h of all steps
    (N, n q), and the last h (B, n q) and c (B, n p) of each row, None without memory. Differentiable any number of
    times.
    """
    y, h, c, _ = _recurrence(z, batch_sizes, h0, c0, S, algebra, A, factors, bias, mask, cell, reverse, constant)
    return y, h, None if c0 is None else c


def recurrent_layer(
    x: Tensor,
    batch_sizes: Tensor,
    h0: Tensor,
    c0: Tensor | None,
    S_x: Sequence[Tensor],
    S: Sequence[Tensor],
    algebra: str = "real",
    A_x: Sequence[Tensor] = (),
    A: Sequence[Tensor] = (),
    factors_x: Sequence[Tensor] = (),
    factors: Sequence[Tensor] = (),
    bias_x: Tensor | None = None,
    bias: Tensor | None = None,
    mask: Tensor | None = None,
    cell: str = "lstm",
    way: str = "auto",
    reverse: bool = False,
    constant: bool = False,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """A recurrent layer: ``recurrence`` of z = H_x x + bias_x, which is ``linear`` of its inputs.

    ``x``: (N, n d), rows as those of z. ``S_x``: one map for all gates (n, gates p, d), or one a gate (n, p, d); ``A_x`` and
    ``factors_x`` are theirs, ``way`` is that of their products. ``bias_x``: (n gates p). The others are those of
    ``recurrence``. Where nothing needs a gradient, on a CPU in float32, z is made a few steps at a time and stays in the
    caches; results differ by rounding alone.
    """
    y, h, c = _recurrent_layer(
        x, batch_sizes, h0, c0, S_x, S, algebra, A_x, A, factors_x, factors, bias_x, bias, mask, cell, way, reverse, constant
    )
    return y, h, None if c0 is None else c


def embedding(tokens: Tensor, S: Tensor, A: Tensor | None = None, factored: bool = False) -> Tensor:
    """The rows of H = sum_i A_i (x) S_i that tokens name: (...) int64 or int32 in [0, k), S (n, k/n, d/n) -> (..., d).

    ``A`` is the table of a fixed algebra or a learned structure (n, n, n), or where it is ``factored`` its U, V, W (3,
    n, R); None where n = 1. H is never written out: each row is mixed of n rows of S. Raises IndexError for a token
    outside [0, k).
    """
    return _ops.embedding(tokens, S, A, factored)


def drop_prepared(S: Tensor) -> None:
    """Forgets what was prepared from S. Needed by hand only after ``S.data``, or memory that is shared with another process, was written in
    eval mode."""
    _ops.drop_prepared(S)


def prepared_size() -> tuple[int, int]:
    """Number of weights for which prepared forms are kept, and their bytes."""
    weights, size = _ops.prepared_size()
    return weights, size


def instruction_sets() -> list[str]:
    """The instruction sets of this machine for which there are kernels, the one in use first."""
    return list(_ops.instruction_sets())
