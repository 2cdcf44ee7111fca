"""Multi-head attention over any algebra."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .. import ops
from ..algebra import Spec
from . import _check
from .linear import Linear

ATTENTION_KINDS = ("automatic", "componentwise", "real")
HEAD_SPLITS = ("inside", "printed")


def _resolved(spec: Spec, attention: str, split: str) -> str:
    """What ``automatic`` comes to."""
    shares_table = not spec.learned and spec.n > 1
    if attention == "automatic":
        return "componentwise" if shares_table and split == "inside" else "real"
    if attention == "componentwise":
        if spec.learned and spec.n > 1:
            raise ValueError(
                "MultiheadAttention: attention = componentwise needs a fixed algebra, whose table Q and K share, got "
                f"{spec} (take attention = real, as PHM does)"
            )
        if split != "inside" and spec.n > 1:
            raise ValueError(
                "MultiheadAttention: attention = componentwise needs split = inside, so that heads hold whole "
                "hypercomplex numbers, got split = printed (take attention = real)"
            )
        return "componentwise" if shares_table else "real"
    return "real"


class MultiheadAttention(nn.Module):
    r"""Multi-head attention over any algebra.

    Component-wise, the score of component c is sum_{i,j} A[i, c, j] Q_i K_j^T / sqrt(d_h): the Hamilton product Q * K^T,
    K not conjugated, d_h = width/heads the full real width of a head (QNLP (4)). A learned algebra has no table that Q, K
    and V share: it takes real attention (PHM 4.2).

    Args:
        width: size of the last axis.
        heads: n * heads must divide the width (heads, where the split is ``printed``).
        algebra: of the projections.
        attention: ``componentwise`` (n score maps), ``real`` (one), ``automatic`` (componentwise for a fixed algebra).
        packed: one layer width -> 3 width for Q, K and V (self-attention only), instead of three.
        split: heads are cut ``inside`` every component, or by a plain split of the last axis, as ``printed`` by PHM.
        dropout: of the attention weights.
        bias, initialiser, way: of the projections.

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
        algebra: str | Spec = "real",
        attention: str = "automatic",
        packed: bool = False,
        split: str = "inside",
        dropout: float = 0.0,
        bias: bool = True,
        initialiser: str = "glorot",
        way: str = "auto",
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
        inside = split == "inside"
        _check.divisible(
            "MultiheadAttention", "width", width, spec.n * heads if inside else heads, "n * heads" if inside else "heads"
        )
        self.width, self.heads, self.split, self.dropout, self.is_packed = width, heads, split, dropout, packed
        self._components = spec.n if inside else 1
        self._table = spec.name if self.kind == "componentwise" else "real"

        def linear(maps: int = 1) -> Linear:
            return Linear(width, maps * width, spec, bias, initialiser, way, device, dtype, maps)

        self.packed: Linear | None = None
        if packed:
            self.packed = linear(3)
        else:
            self.query, self.key, self.value = linear(), linear(), linear()
        self.output = linear()

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None = None, need_weights: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """query (B, L, width), key and value (B, S, width), padding (B, S) bool, true where a key is padding.

        Returns the output (B, L, width) and, where ``need_weights``, the attention weights (B, heads, maps, L, S) before
        dropout, with maps = n (component-wise) or 1; else None. A query whose keys are all padding gets zeros before the
        output projection.
        """
        for name, x in (("query", query), ("key", key), ("value", value)):
            if x.dim() != 3 or x.size(2) != self.width:
                raise ValueError(
                    f"MultiheadAttention: {name} must be (batch, length, width = {self.width}), got {list(x.shape)}"
                )
        heads, components = self.heads, self._components
        if self.packed is not None:
            if query is not key or query is not value:
                raise ValueError(
                    "MultiheadAttention: a packed projection serves self-attention only: query, key and value must be "
                    "one tensor (set packed = False)"
                )
            Q, K, V = ops.cut_heads(self.packed(query), heads, components, 3)
        else:
            (Q,) = ops.cut_heads(self.query(query), heads, components)
            (K,) = ops.cut_heads(self.key(key), heads, components)
            (V,) = ops.cut_heads(self.value(value), heads, components)
        dropout = self.dropout if self.training else 0.0
        if need_weights:
            mixed, weights = ops.hypercomplex_attention_with_weights(Q, K, V, self._table, padding, dropout)
            return self.output(mixed), weights
        return self.output(ops.hypercomplex_attention(Q, K, V, self._table, padding, dropout)), None

    def self_attention(self, x: Tensor, padding: Tensor | None = None) -> Tensor:
        """x (B, L, width) -> (B, L, width)."""
        return self(x, x, x, padding)[0]

    def extra_repr(self) -> str:
        return (
            f"{self.width}, heads={self.heads}, algebra={self.spec}, attention={self.kind}, split={self.split}, "
            f"dropout={self.dropout}"
        )
