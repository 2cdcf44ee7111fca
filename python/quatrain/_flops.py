"""What ``torch.utils.flop_counter.FlopCounterMode`` counts for our operators: their products, as torch counts its own.

What mixes operands, some additions for each of their values, is not counted, as biases are not in torch's.
"""

from __future__ import annotations

import math
import os
from typing import Any, Callable, Sequence

import torch
from torch import Tensor
from torch.utils import flop_counter

_ops = torch.ops.quatrain
#: Of the real layer, as torch registers it for its own operator: with tensors or their sizes.
_real_backward: Callable[..., int] = flop_counter.conv_backward_flop


def _planned_way(
    rows: int, dtype: torch.dtype, S: Tensor, algebra: str, A: Tensor | None, factors: Sequence[Tensor], constant: bool
) -> str:
    """What the planner says of so many rows, in the type that is computed in: it looks at sizes, types and the device alone."""
    n, _, d = S.shape
    x = S.new_empty((), dtype=dtype).expand(rows, n * d)
    weight = S if S.dtype == dtype else S.new_empty((), dtype=dtype).expand(S.shape)
    return str(_ops.planned_way(x, weight, algebra, A, list(factors), constant))


def _rank(n: int, algebra: str, A: Tensor | None, factors: Sequence[Tensor], way: str) -> int:
    """R where the products of the factors are taken, n^2 where those of H or of its blocks are."""
    rank = 0
    if way == "factored":
        rank = _ops.rank(algebra, A, list(factors))
        if not rank and A is not None:
            rank = _ops.structure_report(A)[0]
    return rank or n * n


def _products(
    x: Tensor,
    S: Tensor,
    algebra: str,
    A: Tensor | None,
    factors: Sequence[Tensor],
    way: str,
    dtype: torch.dtype | None,
    constant: bool,
) -> int:
    """2 R (k/n) (d/n) for each row, R = n^2 where H or its blocks are taken."""
    n, k, d = S.shape
    rows = math.prod(x.shape[:-1])
    if way == "auto":
        way = _planned_way(rows, dtype or x.dtype, S, algebra, A, factors, constant)
    return 2 * rows * _rank(n, algebra, A, factors, way) * k * d


def _linear(
    x: Tensor,
    S: Tensor,
    bias: Tensor | None,
    algebra: str,
    A: Tensor | None = None,
    factors: Sequence[Tensor] = (),
    way: str = "auto",
    dtype: torch.dtype | None = None,
    constant: bool = False,
    out_val: Any = None,
) -> int:
    return _products(x, S, algebra, A, factors, way, dtype, constant)


def _linear_with_products(
    x: Tensor,
    S: Tensor,
    bias: Tensor | None,
    algebra: str,
    A: Tensor | None = None,
    way: str = "auto",
    dtype: torch.dtype | None = None,
    out_val: Any = None,
) -> int:
    return _products(x, S, algebra, A, (), way, dtype, False)


def _linear_backward(
    grad: Tensor,
    x: Tensor,
    S: Tensor,
    algebra: str,
    A: Tensor | None,
    factors: Sequence[Tensor],
    way: str = "auto",
    dtype: torch.dtype | None = None,
    output_mask: Sequence[bool] = (True, True, True),
    products: Tensor | None = None,
    out_val: Any = None,
) -> int:
    # Each of the gradients of x and S takes what the forward pass took; that of A only sums.
    return sum(output_mask[:2]) * _products(x, S, algebra, A, factors, way, dtype, False)


def _on_engine(x: Tensor, dtype: torch.dtype | None) -> bool:
    """True where convolutions and recurrences have kernels of their own, of which the planner decides."""
    return x.is_cpu and (dtype or x.dtype) == torch.float32


#: Units of a component, in a group, from which the planner convolves by the factors: without and with the gradient of A.
_FEWEST_UNITS = (9, 16)


def _convolution_rank(
    x: Tensor,
    F: Tensor,
    y: Tensor,
    algebra: str,
    A: Tensor | None,
    factors: Sequence[Tensor],
    padding: Sequence[int],
    transposed: bool,
    groups: int,
    way: str,
    dtype: torch.dtype | None,
    constant: bool = False,
    backward: bool = False,
    of_A: bool = False,
) -> int:
    """R, or n^2 for H.

    No operator says how a convolution is planned. So it counts as H, except where the planner is known to take the
    factors: what is counted is never less than what is multiplied.
    """
    n, rows, columns, *kernel = F.shape
    if way == "auto":
        way = os.environ.get("QUATRAIN_WAY", way)
    by_pixels = x.is_cpu and not transposed and groups == math.prod(kernel) == 1 and not any(padding)
    if way == "auto" and by_pixels and (backward or (x.stride(1) == 1 and not x.is_contiguous())):
        pixels = y.shape[0] * math.prod(y.shape[2:])
        way = _planned_way(pixels, dtype or x.dtype, F.flatten(2), algebra, A, factors, constant)
    elif way == "auto" and _on_engine(x, dtype) and min(rows // groups, columns) >= _FEWEST_UNITS[of_A]:
        way = "factored"
    elif of_A and not _on_engine(x, dtype):
        way = "materialised"
    return _rank(n, algebra, A, factors, way)


def _real_kernel(F: Tensor) -> tuple[int, ...]:
    n, rows, columns, *kernel = F.shape
    return n * rows, n * columns, *kernel


def _convolution(
    x: Tensor,
    F: Tensor,
    bias: Tensor | None,
    algebra: str,
    A: Tensor | None,
    factors: Sequence[Tensor],
    stride: Sequence[int] = (1,),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    transposed: bool = False,
    output_padding: Sequence[int] = (0,),
    groups: int = 1,
    way: str = "auto",
    winograd: str = "auto",
    dtype: torch.dtype | None = None,
    constant: bool = False,
    *,
    out_val: Tensor,
) -> int:
    # R / n^2 of what torch counts for the real layer. What Winograd's transforms save is not taken off, as in torch's count.
    real = flop_counter.conv_flop_count(list(x.shape), list(_real_kernel(F)), list(out_val.shape), transposed)
    rank = _convolution_rank(x, F, out_val, algebra, A, factors, padding, transposed, groups, way, dtype, constant)
    return real * rank // F.shape[0] ** 2


def _convolution_with_epilogue(
    x: Tensor,
    F: Tensor,
    scale: Tensor | None,
    shift: Tensor | None,
    residual: Tensor | None,
    activation: str,
    *convolution: Any,
    out_val: Tensor,
    **named: Any,
) -> int:
    return _convolution(x, F, None, *convolution, out_val=out_val, **named)


def _convolution_backward(
    grad: Tensor,
    x: Tensor,
    F: Tensor,
    algebra: str,
    A: Tensor | None,
    factors: Sequence[Tensor],
    stride: Sequence[int] = (1,),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    transposed: bool = False,
    output_padding: Sequence[int] = (0,),
    groups: int = 1,
    way: str = "auto",
    winograd: str = "auto",
    dtype: torch.dtype | None = None,
    output_mask: Sequence[bool] = (True, True, True),
    out_val: Any = None,
) -> int:
    kernel, of_A = _real_kernel(F), output_mask[2] and A is not None

    def real(of_x: bool, of_weight: bool) -> int:
        geometry = (stride, padding, dilation, transposed, output_padding, groups)
        return _real_backward(grad, x, kernel, None, *geometry, [of_x, of_weight], out_val=(tuple(x.shape), kernel))

    squared = F.shape[0] ** 2
    rank = _convolution_rank(
        x, F, grad, algebra, A, factors, padding, transposed, groups, way, dtype, backward=True, of_A=of_A
    )
    # The gradient of A takes that of H, which gives that of F too.
    of_weight = real(False, True) * (squared if of_A else rank) if output_mask[1] or of_A else 0
    return (real(output_mask[0], False) * rank + of_weight) // squared


def _state_products(
    h0: Tensor,
    batch_sizes: Tensor,
    rows: int,
    S: Sequence[Tensor],
    algebra: str,
    A: Sequence[Tensor],
    factors: Sequence[Tensor],
    constant: bool,
    backward: bool = False,
) -> int:
    """Those of the maps of a state, of which each row of each step takes all; planned for the rows of the first step."""
    total = 0
    for number, weight in enumerate(S):
        n, k, d = weight.shape
        A_k, factors_k = A[number] if A else None, factors[3 * number : 3 * number + 3]
        often = _on_engine(h0, None) and len(batch_sizes) > 8  # weights are prepared even in training
        way = _planned_way(h0.shape[0], h0.dtype, weight, algebra, A_k, factors_k, constant or often)
        if backward and way == "mixed" and _on_engine(h0, None) and _ops.rank(algebra, A_k, list(factors_k)):
            way = "factored"
        total += 2 * rows * _rank(n, algebra, A_k, factors_k, way) * k * d
    return total


def _recurrent_layer(
    x: Tensor,
    batch_sizes: Tensor,
    h0: Tensor,
    c0: Tensor | None,
    S_x: Sequence[Tensor],
    S: Sequence[Tensor],
    algebra: str,
    A_x: Sequence[Tensor],
    A: Sequence[Tensor],
    factors_x: Sequence[Tensor],
    factors: Sequence[Tensor],
    bias_x: Tensor | None = None,
    bias: Tensor | None = None,
    mask: Tensor | None = None,
    cell: str = "lstm",
    way: str = "auto",
    reverse: bool = False,
    constant: bool = False,
    out_val: Any = None,
) -> int:
    of_inputs = sum(
        _products(x, weight, algebra, A_x[k] if A_x else None, factors_x[3 * k : 3 * k + 3], way, None, constant)
        for k, weight in enumerate(S_x)
    )
    return of_inputs + _state_products(h0, batch_sizes, x.shape[0], S, algebra, A, factors, constant)


def _recurrence(
    z: Tensor,
    batch_sizes: Tensor,
    h0: Tensor,
    c0: Tensor | None,
    S: Sequence[Tensor],
    algebra: str,
    A: Sequence[Tensor],
    factors: Sequence[Tensor],
    bias: Tensor | None = None,
    mask: Tensor | None = None,
    cell: str = "lstm",
    reverse: bool = False,
    constant: bool = False,
    keep: bool = False,
    out_val: Any = None,
) -> int:
    return _state_products(h0, batch_sizes, z.shape[0], S, algebra, A, factors, constant)


def _recurrence_backward(
    dy: Tensor | None,
    dh: Tensor | None,
    dc: Tensor | None,
    y: Tensor,
    kept: Tensor,
    batch_sizes: Tensor,
    h0: Tensor,
    c0: Tensor | None,
    S: Sequence[Tensor],
    algebra: str,
    A: Sequence[Tensor],
    factors: Sequence[Tensor],
    mask: Tensor | None = None,
    cell: str = "lstm",
    reverse: bool = False,
    out_val: Any = None,
) -> int:
    # The gradients of the states alone: those of the weights are counted where `linear_backward` makes them.
    return _state_products(h0, batch_sizes, y.shape[0], S, algebra, A, factors, False, True)


def _attention(query: Tensor, key: Tensor, value: Tensor, algebra: str = "real", *rest: Any, out_val: Any = None, **named: Any) -> int:
    scores, values = _multiplications(query, key, algebra)
    return 2 * (scores + values)


def _attention_backward(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, algebra: str = "real", *rest: Any, out_val: Any = None, **named: Any
) -> int:
    # The scores are made again; then the gradients of Q and K take as much, those of the weights and of V as the values.
    scores, values = _multiplications(query, key, algebra)
    return 2 * (3 * scores + 2 * values)


def _multiplications(query: Tensor, key: Tensor, algebra: str) -> tuple[int, int]:
    """Of all scores, and of the weights with the values.

    Hidden keys are counted too, but for those behind the last query's place, which causality cuts off before the operator.
    """
    batch, length, n, heads, m = query.shape
    pairs = batch * heads * length * key.shape[1]
    return pairs * _ops.score_multiplications(algebra, n, m), pairs * n * m


_FORMULAS: dict[Any, Callable[..., int]] = {
    _ops.linear: _linear,
    _ops.linear_with_products: _linear_with_products,
    _ops.linear_backward: _linear_backward,
    _ops.convolution: _convolution,
    _ops.convolution_with_epilogue: _convolution_with_epilogue,
    _ops.convolution_backward: _convolution_backward,
    _ops.recurrent_layer: _recurrent_layer,
    _ops.recurrence: _recurrence,
    _ops.recurrence_backward: _recurrence_backward,
    _ops.hypercomplex_attention_forward: _attention,
    _ops.hypercomplex_attention_backward: _attention_backward,
}
for _operator, _formula in _FORMULAS.items():
    flop_counter.register_flop_formula(_operator, get_raw=True)(_formula)
