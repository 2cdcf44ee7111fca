"""What ``torch.utils.flop_counter.FlopCounterMode`` counts for our operators."""

from __future__ import annotations

import math
from typing import Any, Sequence

import torch
from torch import Tensor
from torch.utils.flop_counter import register_flop_formula

_ops = torch.ops.quatrain


def _products(
    x: Tensor, S: Tensor, algebra: str, A: Tensor | None, factors: Sequence[Tensor], way: str, constant: bool
) -> int:
    """2 R (k/n) (d/n) for each row, R = n^2 where H or its blocks are taken: matrix products, as torch counts its own.

    What mixes operands, some additions for each of their values, is not counted, as biases are not in torch's.
    """
    n, k, d = S.shape
    if way == "auto":
        way = _ops.planned_way(x, S, algebra, A, list(factors), constant)
    rank = n * n
    if way == "factored":
        rank = _ops.rank(algebra, A, list(factors))
        if not rank and A is not None:
            rank = _ops.structure_report(A)[0]
    return 2 * math.prod(x.shape[:-1]) * (rank or n * n) * k * d


def _linear(
    x: Tensor,
    S: Tensor,
    bias: Tensor | None,
    algebra: str,
    A: Tensor | None = None,
    factors: Sequence[Tensor] = (),
    way: str = "auto",
    dtype: Any = None,
    constant: bool = False,
    out_val: Any = None,
) -> int:
    return _products(x, S, algebra, A, factors, way, constant)


def _linear_with_products(
    x: Tensor, S: Tensor, bias: Tensor | None, algebra: str, A: Tensor | None = None, way: str = "auto", dtype: Any = None,
    out_val: Any = None,
) -> int:  # fmt: skip
    return _products(x, S, algebra, A, (), way, False)


def _linear_backward(
    grad: Tensor,
    x: Tensor,
    S: Tensor,
    algebra: str,
    A: Tensor | None,
    factors: Sequence[Tensor],
    way: str = "auto",
    dtype: Any = None,
    output_mask: Sequence[bool] = (True, True, True),
    products: Tensor | None = None,
    out_val: Any = None,
) -> int:
    # Each of the gradients of x and S takes what the forward pass took; that of A only sums.
    return sum(output_mask[:2]) * _products(x, S, algebra, A, factors, way, False)


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
    # The inputs' products, as they are counted where `linear` makes them; the state's are counted nowhere.
    return sum(
        _products(x, weight, algebra, A_x[k] if A_x else None, factors_x[3 * k : 3 * k + 3], way, constant)
        for k, weight in enumerate(S_x)
    )


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


register_flop_formula(_ops.hypercomplex_attention_forward, get_raw=True)(_attention)
register_flop_formula(_ops.hypercomplex_attention_backward, get_raw=True)(_attention_backward)
register_flop_formula(_ops.recurrent_layer, get_raw=True)(_recurrent_layer)
register_flop_formula(_ops.linear, get_raw=True)(_linear)
register_flop_formula(_ops.linear_with_products, get_raw=True)(_linear_with_products)
register_flop_formula(_ops.linear_backward, get_raw=True)(_linear_backward)
