"""What ``torch.utils.flop_counter.FlopCounterMode`` counts for our operators: their products, as torch counts its own.

What mixes operands, some additions for each of their values, is not counted, as biases are not in torch's.
"""

from __future__ import annotations

import math
import os
from types import SimpleNamespace
from typing import Any, Callable, Iterator, Sequence

import torch
from torch import Tensor
from torch.utils import flop_counter

_ops = torch.ops.quatrain
#: Of the real layer, as torch registers it for its own operator: with tensors or their sizes.
_real_backward: Callable[..., int] = flop_counter.conv_backward_flop


def _planned_way(
    rows: int, dtype: torch.dtype, S: Tensor, algebra: str, A: Tensor | None, factors: Sequence[Tensor] | None, constant: bool
) -> str:
    """What the planner says of so many rows, in the type that is computed in: it looks at sizes, types and the device alone."""
    n, _, d = S.shape
    x = S.new_empty((), dtype=dtype).expand(rows, n * d)
    weight = S if S.dtype == dtype else S.new_empty((), dtype=dtype).expand(S.shape)
    return str(_ops.planned_way(x, weight, algebra, A, list(factors or ()), constant))


def _rank(n: int, algebra: str, A: Tensor | None, factors: Sequence[Tensor] | None, way: str) -> int:
    """R where the products of the factors are taken, n^2 where those of H or of its blocks are."""
    rank = 0
    if way == "factored":
        rank = _ops.rank(algebra, A, list(factors or ()))
        if not rank and A is not None:
            rank = _ops.structure_report(A)[0]
    return rank or n * n


def _products(
    x: Tensor,
    S: Tensor,
    algebra: str,
    A: Tensor | None,
    factors: Sequence[Tensor] | None,
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


def _linear(call: Any) -> int:
    return _products(call.x, call.S, call.algebra, call.A, call.factors, call.way, call.dtype, call.constant)


def _linear_with_products(call: Any) -> int:
    return _products(call.x, call.S, call.algebra, call.A, (), call.way, call.dtype, False)


def _linear_backward(call: Any) -> int:
    # Each of the gradients of x and S takes what the forward pass took; that of A only sums.
    forward = _products(call.x, call.S, call.algebra, call.A, call.factors, call.way, call.dtype, False)
    return sum(call.output_mask[:2]) * forward


def _on_engine(x: Tensor, dtype: torch.dtype | None) -> bool:
    """True where convolutions and recurrences have kernels of their own, of which the planner decides."""
    return x.is_cpu and (dtype or x.dtype) == torch.float32


#: Units of a component, in a group, from which the planner convolves by the factors: without and with the gradient of A.
_FEWEST_UNITS = (9, 16)


def _convolution_rank(call: Any, y: Tensor, constant: bool, backward: bool = False, of_A: bool = False) -> int:
    """R, or n^2 for H; y: the result, or its gradient.

    No operator says how a convolution is planned. So it counts as H, except where the planner is known to take the
    factors: what is counted is never less than what is multiplied.
    """
    x, F, way = call.x, call.F, call.way
    n, rows, columns, *kernel = F.shape
    if way == "auto":
        way = os.environ.get("QUATRAIN_WAY") or way
    by_pixels = x.is_cpu and not call.transposed and call.groups == math.prod(kernel) == 1 and not any(call.padding)
    if way == "auto" and by_pixels and (backward or (x.stride(1) == 1 and not x.is_contiguous())):
        pixels = y.shape[0] * math.prod(y.shape[2:])
        way = _planned_way(pixels, call.dtype or x.dtype, F.flatten(2), call.algebra, call.A, call.factors, constant)
    elif way == "auto" and _on_engine(x, call.dtype) and min(rows // call.groups, columns) >= _FEWEST_UNITS[of_A]:
        way = "factored"
    elif of_A and not _on_engine(x, call.dtype):
        way = "materialised"
    return _rank(n, call.algebra, call.A, call.factors, way)


def _real_kernel(F: Tensor) -> tuple[int, ...]:
    n, rows, columns, *kernel = F.shape
    return n * rows, n * columns, *kernel


def _convolution(call: Any) -> int:
    # R / n^2 of what torch counts for the real layer. What Winograd's transforms save is not taken off, as in torch's count.
    sizes = (list(call.x.shape), list(_real_kernel(call.F)), list(call.result.shape))
    real = flop_counter.conv_flop_count(*sizes, call.transposed)
    return real * _convolution_rank(call, call.result, call.constant) // call.F.shape[0] ** 2


def _convolution_backward(call: Any) -> int:
    kernel, of_A = _real_kernel(call.F), call.output_mask[2] and call.A is not None

    def real(of_x: bool, of_weight: bool) -> int:
        geometry = (call.stride, call.padding, call.dilation, call.transposed, call.output_padding, call.groups)
        sizes = (tuple(call.x.shape), kernel)
        return _real_backward(call.grad, call.x, kernel, None, *geometry, [of_x, of_weight], out_val=sizes)

    squared = call.F.shape[0] ** 2
    rank = _convolution_rank(call, call.grad, False, backward=True, of_A=of_A)
    # The gradient of A takes that of H, which gives that of F too.
    of_weight = real(False, True) * (squared if of_A else rank) if call.output_mask[1] or of_A else 0
    return (real(call.output_mask[0], False) * rank + of_weight) // squared


def _maps(
    S: Sequence[Tensor], A: Sequence[Tensor] | None, factors: Sequence[Tensor] | None
) -> Iterator[tuple[Tensor, Tensor | None, Sequence[Tensor]]]:
    """Each map's weights, with its A and its factors."""
    factors = factors or ()
    for number, weight in enumerate(S):
        yield weight, A[number] if A else None, factors[3 * number : 3 * number + 3]


def _state_products(call: Any, rows: int, constant: bool, backward: bool = False) -> int:
    """Those of the maps of a state, of which each row of each step takes all; planned for the rows of the first step."""
    total, h0 = 0, call.h0
    for weight, A, factors in _maps(call.S, call.A, call.factors):
        n, k, d = weight.shape
        often = _on_engine(h0, None) and len(call.batch_sizes) > 8  # weights are prepared even in training
        way = _planned_way(h0.shape[0], h0.dtype, weight, call.algebra, A, factors, constant or often)
        if backward and way == "mixed" and _on_engine(h0, None) and _ops.rank(call.algebra, A, list(factors)):
            way = "factored"
        total += 2 * rows * _rank(n, call.algebra, A, factors, way) * k * d
    return total


def _recurrent_layer(call: Any) -> int:
    of_inputs = sum(
        _products(call.x, weight, call.algebra, A, factors, call.way, None, call.constant)
        for weight, A, factors in _maps(call.S_x, call.A_x, call.factors_x)
    )
    return of_inputs + _state_products(call, call.x.shape[0], call.constant)


def _recurrence(call: Any) -> int:
    return _state_products(call, call.z.shape[0], call.constant)


def _recurrence_backward(call: Any) -> int:
    # The gradients of the states alone: those of the weights are counted where `linear_backward` makes them.
    return _state_products(call, call.y.shape[0], False, backward=True)


def _attention(call: Any) -> int:
    scores, values = _multiplications(call.query, call.key, call.algebra)
    return 2 * (scores + values)


def _attention_backward(call: Any) -> int:
    # The scores are made again; then the gradients of Q and K take as much, those of the weights and of V as the values.
    scores, values = _multiplications(call.query, call.key, call.algebra)
    return 2 * (3 * scores + 2 * values)


def _multiplications(query: Tensor, key: Tensor, algebra: str) -> tuple[int, int]:
    """Of all scores, and of the weights with the values.

    Hidden keys are counted too, but for those behind the last query's place, which causality cuts off before the operator.
    """
    batch, length, n, heads, m = query.shape
    pairs = batch * heads * length * key.shape[1]
    return pairs * _ops.score_multiplications(algebra, n, m), pairs * n * m


def _register(operator: Any, count: Callable[[Any], int]) -> None:
    """``count`` takes the operator's arguments by the names of its schema, and its ``result``."""
    arguments = operator.default._schema.arguments

    def formula(*values: Any, out_val: Any = None, **named: Any) -> int:
        call = {argument.name: argument.default_value for argument in arguments}
        call |= dict(zip(call, values)) | named
        return count(SimpleNamespace(**call, result=out_val))

    flop_counter.register_flop_formula(operator, get_raw=True)(formula)


_FORMULAS: dict[Any, Callable[[Any], int]] = {
    _ops.linear: _linear,
    _ops.linear_with_products: _linear_with_products,
    _ops.linear_backward: _linear_backward,
    _ops.convolution: _convolution,
    _ops.convolution_with_epilogue: _convolution,
    _ops.convolution_backward: _convolution_backward,
    _ops.recurrent_layer: _recurrent_layer,
    _ops.recurrence: _recurrence,
    _ops.recurrence_backward: _recurrence_backward,
    _ops.hypercomplex_attention_forward: _attention,
    _ops.hypercomplex_attention_backward: _attention_backward,
}
for _operator, _count in _FORMULAS.items():
    _register(_operator, _count)
