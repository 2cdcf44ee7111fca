"""The operators ``torch.ops.quatrain.*`` as typed functions.

Every system of the papers is one bilinear map, y = (sum_i A_i (x) S_i) x + b, with A of shape (n, n, n) indexed
[i, row, column], S of shape (n, k/n, d/n), and the components of x and y concatenated on the last axis. Errors in shape,
type and device are RuntimeError, unknown names ValueError: one sentence each.
"""

from __future__ import annotations

import dataclasses
from typing import Sequence

import torch
from torch import Tensor

from . import _library as _library

__all__ = [
    "ACTIVATIONS",
    "Decomposition",
    "StructureReport",
    "cut_heads",
    "decompose",
    "drop_prepared",
    "embedding",
    "hamilton_product",
    "hypercomplex_alignment",
    "hypercomplex_attention",
    "hypercomplex_attention_with_weights",
    "hypercomplex_conjugate",
    "hypercomplex_dropout",
    "hypercomplex_layer_norm",
    "hypercomplex_matching",
    "hypercomplex_norm",
    "index_of_words",
    "instruction_sets",
    "linear",
    "masked_mean",
    "materialise",
    "places_of_words",
    "planned_way",
    "prepared_size",
    "rank",
    "recurrence",
    "recurrent_layer",
    "rows_of_words",
    "set_structure_state",
    "split_activation",
    "structure_report",
    "structure_state",
    "whitening_norm",
]

_ops = torch.ops.quatrain
# Bound once: the search for an overload costs microseconds in every call.
_linear = _ops.linear.default
_recurrence = _ops.recurrence.default
_recurrent_layer = _ops.recurrent_layer.default

#: The names of the split activations.
ACTIVATIONS: tuple[str, ...] = tuple(_ops.activation_names())


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

    n components of p units each; h has q of each, p or what a projection makes of them. ``z``: (N, n gates p), the rows of
    all steps one after the other, the gates of each component side by side. ``batch_sizes`` (T) int64 on the CPU: how many
    rows each step has, which must not grow (torch's ``PackedSequence``). ``h0``: (B, n q), and where the cell has memory
    ``c0``: (B, n p), B = batch_sizes[0]. ``S``: one map for all gates (n, gates p, q), or one a gate (n, p, q); after them,
    of an lstm, that of a projection (n, q, p), whose product with h takes its place. ``A`` none or one for each, ``factors``
    none or three for each. ``bias``: (n gates p), added to H h. ``mask``: (B, n q), what h is multiplied by before H.
    ``cell``: ``lstm`` (gates i, f, g, o), ``lstm_printed``, ``gru`` (r, z, n), ``rnn_tanh``, ``rnn_relu``. Returns h of all
    steps (N, n q), and the last h (B, n q) and c (B, n p) of each row, None without memory. Differentiable any number of
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


def materialise(S: Tensor, algebra: str = "real", A: Tensor | None = None) -> Tensor:
    """H = sum_i A_i (x) S_i of shape (k, d): the real matrix of a layer. Differentiable in S and A."""
    return _ops.materialise(S, algebra, A)


def rank(algebra: str = "real", A: Tensor | None = None, factors: Sequence[Tensor] = ()) -> int:
    """Rank R of the factors at hand: of a fixed algebra's, or of those given; 0 without factors."""
    return _ops.rank(algebra, A, list(factors))


def drop_prepared(S: Tensor) -> None:
    """Forgets what was prepared from S. Needed by hand only after ``S.data`` was written in eval mode."""
    _ops.drop_prepared(S)


def prepared_size() -> tuple[int, int]:
    """Number of weights for which prepared forms are kept, and their bytes."""
    weights, size = _ops.prepared_size()
    return weights, size


def instruction_sets() -> list[str]:
    """The instruction sets of this machine for which there are kernels, the one in use first."""
    return list(_ops.instruction_sets())


def embedding(tokens: Tensor, S: Tensor, A: Tensor | None = None, factored: bool = False) -> Tensor:
    """The rows of H = sum_i A_i (x) S_i that tokens name: (...) int64 in [0, k), S (n, k/n, d/n) -> (..., d).

    ``A`` is the table of a fixed algebra or a learned structure (n, n, n), or where it is ``factored`` its U, V, W
    (3, n, R); None where n = 1. H is never written out: each row is mixed of n rows of S.
    """
    return _ops.embedding(tokens, S, A, factored)


def hamilton_product(a: Tensor, b: Tensor, algebra: str) -> Tensor:
    """Component-wise product a * b of two tensors of hypercomplex numbers (QNLP (1)).

    (..., n m) and (..., n m), broadcast on the leading axes, components concatenated on the last axis.

    >>> import torch, quatrain
    >>> i, j = torch.tensor([0., 1, 0, 0]), torch.tensor([0., 0, 1, 0])
    >>> quatrain.ops.hamilton_product(i, j, "quaternion")
    tensor([0., 0., 0., 1.])
    """
    return _ops.hamilton_product(a, b, algebra)


def hypercomplex_conjugate(a: Tensor, algebra: str) -> Tensor:
    """The conjugate, component by component: (..., n m) -> (..., n m)."""
    return _ops.hypercomplex_conjugate(a, algebra)


def hypercomplex_norm(a: Tensor, algebra: str) -> Tensor:
    """The Euclidean norm over the components: (..., n m) -> (..., m)."""
    return _ops.hypercomplex_norm(a, algebra)


def hypercomplex_matching(a: Tensor, b: Tensor, algebra: str, n: int) -> Tensor:
    """What a comparison of a and b sees: (..., n m) twice -> (..., n 4 m), in each component a, b, a * b and a - b.

    The product is that of an ``algebra`` of ``n`` dimensions (64 at most), or element by element where it is real.
    """
    return _ops.hypercomplex_matching(a, b, algebra, n)


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


def split_activation(x: Tensor, name: str) -> Tensor:
    """A real function applied to every component (QRNN (7)); ``ACTIVATIONS`` are its names. Any shape -> the same."""
    return _ops.split_activation(x, name)


def hypercomplex_dropout(x: Tensor, p: float = 0.5, training: bool = True, n: int = 1, per_unit: bool = False) -> Tensor:
    """Dropout of (..., n m), scaled by 1/(1 - p): element by element, or ``per_unit``, all n components together."""
    return _ops.hypercomplex_dropout(x, p, training, n, per_unit)


def hypercomplex_layer_norm(x: Tensor, weight: Tensor, bias: Tensor, n: int = 1, eps: float = 1e-5) -> Tensor:
    """Layer norm of (..., n m) over the last axis, or per component where n > 1. ``weight``, ``bias``: (n m)."""
    return _ops.hypercomplex_layer_norm(x, weight, bias, n, eps)


def whitening_norm(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    running_mean: Tensor | None,
    running_covariance: Tensor | None,
    n: int,
    training: bool,
    momentum: float = 0.1,
    eps: float = 1e-4,
) -> Tensor:
    """Batch norm that whitens: y = gamma L^-1 (x - mean) + bias, L the Cholesky factor of the covariance of n components.

    ``x``: (B, n c, ...) -> the same. It whitens with the batch's own statistics while ``training``, else with the running
    ones, ``running_mean`` (n c) and ``running_covariance`` (n, n, c), which training moves towards the batch's by
    ``momentum``. ``weight`` (n (n + 1) / 2, c): the lower triangles of the symmetric gamma, row by row. ``bias``: (n c).
    ``eps`` is added to the variances. A covariance without a Cholesky factor is an error (``torch.linalg.LinAlgError``).
    """
    return _ops.whitening_norm(x, weight, bias, running_mean, running_covariance, n, training, momentum, eps)


def masked_mean(x: Tensor, padding: Tensor) -> Tensor:
    """The mean over the positions that are not padding: x (B, L, width), padding (B, L) bool -> (B, width)."""
    return _ops.masked_mean(x, padding)


def index_of_words(padding: Tensor) -> Tensor | None:
    """Where the words of a batch are, (words) int64, counted through its places text by text; padding (B, L) bool.

    None where leaving padding out does not pay, because it is less than a quarter of the places or on another device than
    the CPU, which would be waited for; and where it cannot be done: in traced programs, under function transforms, and for
    subclasses of tensors.
    """
    index: Tensor | None = _ops.index_of_words(padding)  # an undefined tensor is None
    return index


def rows_of_words(places: Tensor, index: Tensor) -> Tensor:
    """places (B, L, ...), index (words), no place twice -> the words as rows (1, words, ...). Differentiable to any order."""
    return _ops.rows_of_words(places, index)


def places_of_words(rows: Tensor, index: Tensor, texts: int, length: int) -> Tensor:
    """rows (1, words, ...), index (words), no place twice -> (B, L, ...), zeros where there is no word.

    Differentiable to any order.
    """
    return _ops.places_of_words(rows, index, texts, length)


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

    ``key`` and ``value`` may be views of a longer cache: they are read where they lie. ``dropout`` acts on the weights, by
    draws of torch's generator. It has second derivatives in float32 on a CPU with n maps; elsewhere it is torch's
    ``scaled_dot_product_attention``, which has them under ``torch.nn.attention.sdpa_kernel(SDPBackend.MATH)``.

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


@dataclasses.dataclass(frozen=True)
class Decomposition:
    """Numerical factors of a structure tensor."""

    #: U, V, W (n, R) in float64, or none where no start reached the tolerance
    factors: tuple[Tensor, ...]
    #: relative error of the best try
    residual: float
    #: condition of dA/d(U, V, W); infinite where its rank is below n^3
    condition: float

    @property
    def sound(self) -> bool:
        return bool(self.factors)

    @property
    def rank(self) -> int:
        return self.factors[0].size(1) if self.factors else 0


def decompose(A: Tensor, rank: int = 0, tolerance: float = 1e-6, starts: int = 6, seed: int = 0) -> Decomposition:
    """Finds factors A[i, a, b] = sum_r U[i, r] W[a, r] V[b, r] of a structure tensor (n, n, n).

    ``rank`` 0: the generic rank of n (1, 3, 5, 8, 11, 15, 20, 26, 32, 39 at n = 1 .. 10), then up to 2 more; larger n
    needs a rank. ``tolerance``: largest relative error; ``starts``: random starts a rank.
    """
    factors, residual, condition = _ops.decompose(A, rank, tolerance, starts, seed)
    return Decomposition(tuple(factors), residual, condition)


@dataclasses.dataclass(frozen=True)
class StructureReport:
    """What is held beside a learned structure tensor that trains: factors, followed from step to step."""

    #: of the factors held now; 0: none
    rank: int
    #: values of A that were asked for
    steps: int
    #: of these, found by a new search
    solved: int
    #: of these, without sound factors: these steps ran on H
    on_H: int


def structure_report(A: Tensor) -> StructureReport:
    """What is held beside A; by A's storage, so that layers that share A share it."""
    return StructureReport(*_ops.structure_report(A))


def structure_state(A: Tensor) -> Tensor | None:
    """The same as one float64 tensor, for checkpoints: a run that is resumed with it continues bit for bit."""
    state = _ops.structure_state(A)
    return state[0] if state else None


def set_structure_state(A: Tensor, state: Tensor | None) -> None:
    """Puts it back, for A or for a copy of A; None forgets what is held."""
    _ops.set_structure_state(A, state)
