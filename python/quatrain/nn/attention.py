"""Multi-head attention over any algebra."""

from __future__ import annotations

import math
from typing import Literal, TypeVar, get_args

import torch
from torch import Tensor, nn

from .. import ops
from ..algebra import Spec
from ..init import Initialiser
from . import _check
from .linear import Linear
from .weight import Way
from .words import Words

AttentionKind = Literal["automatic", "componentwise", "real"]
ATTENTION_KINDS = get_args(AttentionKind)
HeadSplit = Literal["inside", "printed"]
HEAD_SPLITS = get_args(HeadSplit)


def _resolved(spec: Spec, attention: str, split: str) -> str:
    """What ``automatic`` comes to."""
    shares_table = not spec.learned and spec.n > 1
    if attention == "automatic":
        return "componentwise" if shares_table and split == "inside" else "real"
    if attention == "componentwise":
        if spec.learned and spec.n > 1:
            raise ValueError(
                f"MultiheadAttention: attention = componentwise needs a fixed algebra, got {spec} (take attention = real)"
            )
        if split != "inside" and spec.n > 1:
            raise ValueError(
                "MultiheadAttention: attention = componentwise needs split = 'inside', got 'printed' (take attention = real)"
            )
        return "componentwise" if shares_table else "real"
    return "real"


_Given = TypeVar("_Given", bound="Tensor | Words | None")


def _one_of(ours: str, value: _Given, theirs: str, other: _Given) -> _Given:
    if value is not None and other is not None:
        raise ValueError(f"MultiheadAttention: {ours} and {theirs} say the same: give one of them")
    return other if value is None else value


def _with_added(mask: Tensor | None, padding: Tensor) -> Tensor:
    """The mask of scores to which a floating padding (B, S) or (S) is added too."""
    added = padding.unsqueeze(-2).unsqueeze(-2)
    if mask is None:
        return added
    return added.masked_fill(mask.logical_not(), -math.inf) if mask.dtype == torch.bool else mask + added


class MultiheadAttention(nn.Module):
    r"""Multi-head attention over any algebra.

    Component-wise, the score of component c is sum_{i,j} A[i, c, j] Q_i K_j^T / sqrt(d_h): the Hamilton product Q * K^T,
    K not conjugated, d_h = width/heads the full real width of a head (QNLP (4)). A learned algebra has no table that Q, K
    and V share: it takes real attention (PHM 4.2).

    Args:
        width: size of the last axis.
        heads: n * heads must divide the width (n and heads, where the split is ``printed``).
        dropout: of the attention weights.
        bias, initialiser, way: of the projections.
        algebra: of the projections.
        attention: ``componentwise`` (n score maps), ``real`` (one), ``automatic`` (componentwise for a fixed algebra).
        packed: one layer width -> 3 width for Q, K and V (self-attention only), instead of three.
        split: heads are cut ``inside`` every component, or by a plain split of the last axis, as ``printed`` by PHM.

    Children: ``query``, ``key``, ``value`` or ``packed``, and ``output``, all Linear.

    >>> import torch, quatrain
    >>> attention = quatrain.nn.MultiheadAttention(16, 2, algebra="quaternion")
    >>> x = torch.randn(3, 5, 16)
    >>> y, weights = attention(x, x, x, need_weights=True)
    >>> y.shape, weights.shape
    (torch.Size([3, 5, 16]), torch.Size([3, 2, 4, 5, 5]))
    """

    def __init__(
        self,
        width: int,
        heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        *,
        algebra: str | Spec = "quaternion",
        attention: AttentionKind = "automatic",
        packed: bool = False,
        split: HeadSplit = "inside",
        initialiser: Initialiser = "glorot",
        way: Way = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.spec = spec = Spec.parse(algebra)
        _check.choice("attention", attention, ATTENTION_KINDS)
        _check.choice("split", split, HEAD_SPLITS)
        self.kind = _resolved(spec, attention, split)
        _check.at_least_one("MultiheadAttention", "heads", heads)
        _check.probability("MultiheadAttention", "dropout", dropout)
        _check.flag("MultiheadAttention", "bias", bias)
        _check.flag("MultiheadAttention", "packed", packed)
        inside = split == "inside"
        _check.divisible(
            "MultiheadAttention", "width", width, spec.n * heads if inside else heads, "n * heads" if inside else "heads"
        )
        self.width, self.heads, self.split, self.dropout, self.is_packed = width, heads, split, dropout, packed
        self._components = spec.n if inside else 1
        self._table = spec.name if self.kind == "componentwise" else "real"

        def linear(maps: int = 1) -> Linear:
            return Linear(
                width, maps * width, bias, device, dtype, algebra=spec, initialiser=initialiser, way=way, maps=maps
            )

        self.packed: Linear | None = None
        if packed:
            self.packed = linear(3)
        else:
            self.query, self.key, self.value = linear(), linear(), linear()
        self.output = linear()

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        padding: Tensor | Words | None = None,
        need_weights: bool = False,
        mask: Tensor | None = None,
        causal: bool = False,
        *,
        key_padding_mask: Tensor | None = None,
        attn_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """query (B, L, width), key and value (B, S, width), padding (B, S) bool, true where a key is padding.

        ``mask`` is that of ``ops.hypercomplex_attention``: of a shape that broadcasts to (B, heads, L, S), true where a
        query sees a key, or added to the scores. ``causal``: query l sees the keys 0 .. l. Without a batch: (L, width),
        (S, width), padding (S).

        Three words of ``torch.nn.MultiheadAttention`` are taken too, by name: ``key_padding_mask`` is ``padding``,
        ``is_causal`` is ``causal`` (and needs no mask), and ``attn_mask``, (L, S) or (B heads, L, S), is bool, **true where a query
        does not see a key**, or added to the scores. A floating ``padding`` is added to the scores, as torch does.

        Returns the output (B, L, width) and, where ``need_weights``, the attention weights (B, heads, maps, L, S) before
        dropout, with maps = n (component-wise) or 1; else None. A query that sees no key gets zeros before the output
        projection.

        With ``Words`` for ``padding``, query, key and value are one tensor of their rows, and so is the output: padding is
        then left out of the projections.
        """
        padding = _one_of("padding", padding, "key_padding_mask", key_padding_mask)
        if isinstance(padding, Words) and (query is not key or query is not value):
            raise ValueError("MultiheadAttention: Words are of self-attention: query, key and value must be one tensor")
        mask = _one_of("mask", mask, "attn_mask", self._seen(attn_mask))
        if isinstance(padding, Tensor) and padding.is_floating_point():
            mask = _with_added(mask, padding)
            padding = None
        if query.dim() == 2:
            if key is query and value is query:  # as a packed projection wants them
                batched = (query[None],) * 3
            else:
                batched = (query[None], key[None], value[None])
            if isinstance(padding, Words):
                raise ValueError("MultiheadAttention: rows of Words must be (1, words, width), got 2 axes")
            of_batch = None if padding is None else padding[None]
            y, weights = self(*batched, of_batch, need_weights, mask, causal or is_causal)
            return y[0], None if weights is None else weights[0]
        if self.packed is not None:
            if query is not key or query is not value:
                raise ValueError(
                    "MultiheadAttention: a packed projection serves self-attention only: query, key and value must be "
                    "one tensor (set packed = False)"
                )
            Q, K, V = self.project(query)
        else:
            Q = self.project_query(query)
            K, V = self.project_key_value(key, value)
        return self.attend(Q, K, V, padding, need_weights, mask=mask, causal=causal or is_causal)

    def _seen(self, attn_mask: Tensor | None) -> Tensor | None:
        """Torch's mask as ours: where a query sees a key, with an axis of heads."""
        if attn_mask is None:
            return None
        if attn_mask.dim() == 3:
            attn_mask = attn_mask.unflatten(0, (-1, self.heads))
        return attn_mask.logical_not() if attn_mask.dtype == torch.bool else attn_mask

    def self_attention(
        self, x: Tensor, padding: Tensor | Words | None = None, mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        """x (B, L, width) -> (B, L, width); with ``Words`` for ``padding``, rows (1, words, width) -> the same."""
        return self(x, x, x, padding, mask=mask, causal=causal)[0]

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The heads of query, key and value of one x (B, L, width): (B, L, n, heads, m) each.

        With ``project_query``, ``project_key_value`` and ``attend`` the parts of ``forward``, for what keeps keys and
        values: a decoder writes those of each word into a cache once and attends with the words so far.

        >>> import torch, quatrain
        >>> attention = quatrain.nn.MultiheadAttention(16, 2, algebra="quaternion", packed=True)
        >>> x, keys, values = torch.randn(3, 5, 16), torch.zeros(3, 8, 4, 2, 2), torch.zeros(3, 8, 4, 2, 2)
        >>> for t in range(5):
        ...     with torch.no_grad():
        ...         Q, keys[:, t : t + 1], values[:, t : t + 1] = attention.project(x[:, t : t + 1])
        ...         y, _ = attention.attend(Q, keys[:, : t + 1], values[:, : t + 1])
        >>> torch.allclose(y[:, 0], attention.self_attention(x, causal=True)[:, 4], atol=1e-5)
        True
        """
        if self.packed is not None:
            Q, K, V = self._heads("query", self.packed, x, 3)
            return Q, K, V
        return (self.project_query(x), *self.project_key_value(x, x))

    def project_query(self, query: Tensor) -> Tensor:
        """(B, L, width) -> (B, L, n, heads, m). A packed projection has none alone: an error."""
        self._refuse_packed()
        return self._heads("query", self.query, query)[0]

    def project_key_value(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """(B, S, width) twice -> (B, S, n, heads, m) twice. A packed projection has none alone: an error."""
        self._refuse_packed()
        return self._heads("key", self.key, key)[0], self._heads("value", self.value, value)[0]

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        padding: Tensor | Words | None = None,
        need_weights: bool = False,
        *,
        mask: Tensor | None = None,
        causal: bool = False,
        offset: int = 0,
        scale: float | None = None,
        order: str = "query_key",
    ) -> tuple[Tensor, Tensor | None]:
        """``forward`` of projected heads; the options are those of ``ops.hypercomplex_attention``."""
        attend = ops.hypercomplex_attention_with_weights if need_weights else ops.hypercomplex_attention
        dropout = self.dropout if self.training else 0.0
        words: Words | None = None
        if isinstance(padding, Words):
            words, padding = padding, padding.padding
            query, key, value = words.places(query), words.places(key), words.places(value)
        result = attend(
            query, key, value, self._table, padding, dropout,
            mask=mask, causal=causal, offset=offset, scale=scale, order=order,
        )  # fmt: skip
        mixed, weights = result if isinstance(result, tuple) else (result, None)
        return self.output(mixed if words is None else words.rows(mixed)), weights

    def _refuse_packed(self) -> None:
        if self.packed is not None:
            raise ValueError(
                "MultiheadAttention: a packed projection makes query, key and value of one tensor together (call project, "
                "or set packed = False)"
            )

    def _heads(self, name: str, layer: Linear, x: Tensor, parts: int = 1) -> list[Tensor]:
        """Heads of a projection of x, cut into parts."""
        if x.dim() != 3 or x.size(2) != self.width:
            raise ValueError(f"MultiheadAttention: {name} must be (batch, length, width = {self.width}) or (length, width), got {list(x.shape)}")
        return ops.cut_heads(layer(x), self.heads, self._components, parts)

    def extra_repr(self) -> str:
        return (
            f"{self.width}, heads={self.heads}, algebra={self.spec}, attention={self.kind}, split={self.split}, "
            f"dropout={self.dropout}"
        )
