"""Attention whose scores are hypercomplex products."""

from __future__ import annotations

import torch
from torch import Tensor

from .. import _library as _library

_ops = torch.ops.quatrain


def cut_heads(x: Tensor, heads: int, components: int = 1, parts: int = 1) -> list[Tensor]:
    """Cuts (B, L, parts * width) into ``parts`` views (B, L, n, heads, m), width = n * heads * m.

    A head holds whole hypercomplex numbers: each of the n ``components`` is cut into heads (and first into parts).
    """
    return _ops.cut_heads(x, heads, components, parts)


def hypercomplex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    algebra: str = "real",
    padding: Tensor | None = None,
    dropout: float = 0.0,
    *,
    mask: Tensor | None = None,
    causal: bool = False,
    offset: int = 0,
    scale: float | None = None,
    order: str = "query_key",
) -> Tensor:
    """Attention of cut heads: query (B, L, n, heads, m), key and value (B, S, n, heads, m) -> (B, L, n heads m).

    ``algebra`` "real": one score map a head, Q K^T. Another: n maps, the components of the Hamilton product Q * K^T with
    that table, sum_{i,j} A[i, c, j] Q_i K_j^T, each for its own component of V (QNLP (4)); with ``order`` "key_query" those
    of K * Q. ``scale`` multiplies the scores: 1 / sqrt(n m) where it is None.

    A query sees a key where all of these let it; one that sees none gets zeros. ``padding``: (B, S) bool, true where a key
    is padding. ``mask``: any shape that broadcasts to (B, heads, L, S), one for all score maps, as torch's
    ``scaled_dot_product_attention`` takes it: bool, true where a query sees a key (padding is the other way round), or
    floating, added to the scaled scores, and differentiable. ``causal``: query l sees the keys 0 .. ``offset`` + l, so that
    ``offset`` = S - L where the queries are the last of the keys, as with a cache. What is hidden from all queries alike
    (padding, keys behind the last query's place, a mask with one row for all queries) may hold NaN.

    ``key`` and ``value`` may be views of a longer cache: they are read where they lie. ``dropout`` acts on the weights,
    by draws of torch's generator. It has derivatives of any order with n maps in float32 on a CPU (but for heads too
    large for the caches), with a mask that learns, and where weights are returned. Elsewhere it has those of torch's
    ``scaled_dot_product_attention``, which are of any order under ``torch.nn.attention.sdpa_kernel(SDPBackend.MATH)``.

    >>> import torch, quatrain
    >>> Q, K, V = torch.randn(3, 2, 5, 4, 2, 3)
    >>> y = quatrain.ops.hypercomplex_attention(Q, K, V, "quaternion", causal=True)
    >>> last = quatrain.ops.hypercomplex_attention(Q[:, 3:], K, V, "quaternion", causal=True, offset=3)
    >>> torch.allclose(y[:, 3:], last, atol=1e-6)
    True
    """
    return _ops.hypercomplex_attention(
        query, key, value, algebra, padding, dropout, mask, causal, offset, scale, order
    )


def hypercomplex_attention_with_weights(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    algebra: str = "real",
    padding: Tensor | None = None,
    dropout: float = 0.0,
    *,
    mask: Tensor | None = None,
    causal: bool = False,
    offset: int = 0,
    scale: float | None = None,
    order: str = "query_key",
) -> tuple[Tensor, Tensor]:
    """``hypercomplex_attention``, and its weights before dropout, (B, heads, maps, L, S) with maps = n or 1."""
    return _ops.hypercomplex_attention_with_weights(
        query, key, value, algebra, padding, dropout, mask, causal, offset, scale, order
    )


def hypercomplex_alignment(
    first: Tensor, second: Tensor, first_padding: Tensor, second_padding: Tensor, algebra: str
) -> tuple[Tensor, Tensor]:
    """What each word of two texts sees in the other one (QNLP 3.2): softmax(E) . B and softmax(E^T) . A, component by
    component, with E = A * B^T, the product of the ``algebra``, not scaled.

    ``first`` (B, la, n, heads, m) and ``second`` (B, lb, n, heads, m), as ``cut_heads`` cuts them; paddings (B, la) and
    (B, lb) bool, true where there is no word -> (B, la, n heads m) and (B, lb, n heads m). They are two calls of
    ``hypercomplex_attention``, and follow its rules. On a CPU in float32 both directions of a pair of short texts
    share one map of scores a component, in both passes: where n > 1 and what a pair takes stays in the caches.
    """
    return _ops.hypercomplex_alignment(first, second, first_padding, second_padding, algebra)
