"""Feed-forward layers and Transformer encoders over any algebra."""

from __future__ import annotations

from typing import Any, Callable, Literal, TypedDict, get_args

import torch
from torch import Tensor, nn
from typing_extensions import Unpack

from .. import ops
from ..algebra import Spec
from ..init import Initialiser
from . import _check
from .attention import AttentionKind, HeadSplit, MultiheadAttention
from .component_wise import Activation, LayerNorm, dropout
from .linear import Linear
from .weight import Way
from .words import Words

NormStyle = Literal["post", "pre", "phydi"]
NORM_STYLES = get_args(NormStyle)
Scope = Literal["full", "partial"]
SCOPES = get_args(Scope)


class FeedForward(nn.Module):
    """linear2(dropout(activation(linear1(x)))), the activation component-wise (PHM 4.2).

    Args:
        width, hidden: real sizes; n must divide both.
        algebra: of both maps.
        activation: one of ``quatrain.ops.ACTIVATIONS``.
        dropout: after the activation; ``dropout_per_unit`` drops whole hypercomplex units.
        bias, initialiser, way: of both maps.

    Children: ``linear1``, ``linear2``. Shape: (..., width) -> the same.

    >>> import torch, quatrain
    >>> quatrain.nn.FeedForward(8, 32, algebra="phm(4)", activation="gelu")(torch.randn(3, 8)).shape
    torch.Size([3, 8])
    """

    def __init__(
        self,
        width: int,
        hidden: int,
        *,
        algebra: str | Spec = "quaternion",
        activation: str = "relu",
        dropout: float = 0.0,
        dropout_per_unit: bool = False,
        bias: bool = True,
        initialiser: Initialiser = "glorot",
        way: Way = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.spec = spec = Spec.parse(algebra)
        _check.choice("activation", activation, ops.ACTIVATIONS)
        _check.probability("FeedForward", "dropout", dropout)
        _check.divisible("FeedForward", "width", width, spec.n)
        _check.divisible("FeedForward", "hidden", hidden, spec.n)
        self.width, self.hidden = width, hidden
        self.activation, self.dropout, self.dropout_per_unit = activation, dropout, dropout_per_unit
        self.linear1 = Linear(width, hidden, bias, device, dtype, algebra=spec, initialiser=initialiser, way=way)
        self.linear2 = Linear(hidden, width, bias, device, dtype, algebra=spec, initialiser=initialiser, way=way)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.linear1(x)
        if self.activation != "identity":
            hidden = ops.split_activation(hidden, self.activation)
        return self.linear2(dropout(hidden, self.dropout, self.training, self.spec.n, self.dropout_per_unit))

    def extra_repr(self) -> str:
        return f"{self.width} -> {self.hidden} -> {self.width}, activation={self.activation}, dropout={self.dropout}"


class LayerOptions(TypedDict, total=False):
    """The keyword arguments of a layer that ``TransformerEncoder`` and ``TransformerDecoder`` hand on."""

    feed_forward: int
    dropout: float
    algebra: str | Spec
    scope: Scope
    norm: NormStyle
    printed: bool
    norm_per_component: bool
    attention: AttentionKind
    packed: bool
    split: HeadSplit
    activation: str
    dropout_per_unit: bool
    bias: bool
    initialiser: Initialiser
    way: Way
    device: torch.device | str | None
    dtype: torch.dtype | None


class TransformerLayer(nn.Module):
    """What the layers of encoders and decoders have in common: their children, and the residual sums around these."""

    alpha: Tensor | None
    _crosses = False

    def __init__(
        self,
        width: int,
        heads: int,
        feed_forward: int = 2048,
        dropout: float = 0.1,
        *,
        algebra: str | Spec = "quaternion",
        scope: Scope = "full",
        norm: NormStyle = "post",
        printed: bool = False,
        norm_per_component: bool = False,
        attention: AttentionKind = "automatic",
        packed: bool = False,
        split: HeadSplit = "inside",
        activation: str = "relu",
        dropout_per_unit: bool = False,
        bias: bool = True,
        initialiser: Initialiser = "glorot",
        way: Way = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.spec = spec = Spec.parse(algebra)
        _check.choice("norm", norm, NORM_STYLES)
        _check.choice("scope", scope, SCOPES)
        layer = type(self).__name__
        _check.probability(layer, "dropout", dropout)
        if printed and norm == "pre":
            raise ValueError(f"{layer}: printed is a form of norm = post or phydi, got norm = pre")
        self.width, self.norm, self.scope, self.printed = width, norm, scope, printed
        self.dropout, self.dropout_per_unit = dropout, dropout_per_unit
        maps: dict[str, Any] = {"bias": bias, "initialiser": initialiser, "way": way, "device": device, "dtype": dtype}
        self.attention = MultiheadAttention(
            width, heads, dropout, algebra=spec, attention=attention, packed=packed, split=split, **maps
        )
        if self._crosses:  # its queries and keys come from two places
            self.cross_attention = MultiheadAttention(width, heads, dropout, algebra=spec, attention=attention, split=split, **maps)
        self.feed_forward = FeedForward(
            width,
            feed_forward,
            algebra=spec if scope == "full" else "real",
            activation=activation,
            dropout=dropout,
            dropout_per_unit=dropout_per_unit,
            **maps,
        )
        self.register_parameter("alpha", None)
        if norm == "phydi":
            self.alpha = nn.Parameter(torch.zeros((), device=device, dtype=dtype))
        else:
            for norm_name in self._norms():
                self.add_module(norm_name, LayerNorm(width, spec.n, norm_per_component, device=device, dtype=dtype))

    @classmethod
    def _norms(cls) -> list[str]:
        return [f"norm{i}" for i in range(1, 4 if cls._crosses else 3)]

    def _residual(self, norm: str, start: Tensor, y: Tensor, sub_layer: Callable[[Tensor], Tensor]) -> Tensor:
        """What a sub-layer F makes of y; ``start`` is what the layer got, which the printed forms sum with."""
        if self.norm == "pre":
            return y + self._drop(sub_layer(self.get_submodule(norm)(y)))
        change = self._drop(sub_layer(y))
        base = start if self.printed else y
        if self.alpha is not None:  # PHYDI
            return base + self.alpha * change
        normed: Tensor = self.get_submodule(norm)(base + change)
        return normed

    def _drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training, self.spec.n, self.dropout_per_unit)

    def reset_parameters(self) -> None:
        """alpha zero; the children have their own."""
        if self.alpha is not None:
            with torch.no_grad():
                self.alpha.zero_()

    def extra_repr(self) -> str:
        return f"{self.width}, norm={self.norm}, scope={self.scope}, algebra={self.spec}, dropout={self.dropout}"


class TransformerEncoderLayer(TransformerLayer):
    """One layer of a Transformer encoder: self-attention and feed-forward with residuals.

    At n = 1, post-norm, it computes what ``torch.nn.TransformerEncoderLayer`` does, the batch first; its second input is
    ``padding``, where torch has the mask.

    Args:
        width, heads: n * heads must divide the width (n and heads, where ``split`` is ``printed``).
        feed_forward: hidden size of the feed-forward; n must divide it, where ``scope`` is ``full``.
        algebra: of the linear maps; ``scope`` "partial": only of those of the attention (QNLP).
        norm: ``post``: x = norm(x + F(x)); ``pre``: x = x + F(norm(x)); ``phydi``: x = x + alpha F(x), no norms, one
            learned alpha, zero at the start (PHYDI (2), (5)).
        printed: the sub-layers nested in one residual sum, as PHYDI prints them, instead of two sums one after the other:
            (4), norm2(x + ffn(norm1(x + att(x)))), with ``post``; (5), x + alpha ffn(x + alpha att(x)), with ``phydi``.
        norm_per_component: each component is normalised by itself.
        attention, packed, split: see ``MultiheadAttention``.
        activation: of the feed-forward.
        dropout: of the attention weights, after the activation, and before each residual sum (before alpha).
        dropout_per_unit: drops whole hypercomplex units of the activations.
        bias, initialiser, way: of the linear maps.

    Children: ``attention``, ``feed_forward``, ``norm1``, ``norm2`` (none with PHYDI, whose one parameter of its own is
    ``alpha``, a scalar). Shape: x (B, L, width), padding (B, L) bool or None -> (B, L, width). Where a
    quarter of the places or more is padding, it is left out of all that treats each word by itself, and the children get the
    words as rows, (1, words, width). What stands at padding in the result is left open. ``causal``: each place sees those
    before it and itself.

    >>> import torch, quatrain
    >>> layer = quatrain.nn.TransformerEncoderLayer(16, 2, feed_forward=32, algebra="quaternion", norm="pre")
    >>> layer(torch.randn(3, 5, 16)).shape
    torch.Size([3, 5, 16])
    """

    def forward(self, x: Tensor, padding: Tensor | None = None, causal: bool = False) -> Tensor:
        words = Words(padding if x.dim() == 3 else None)
        hidden = words if words.leaves_out else padding
        rows = words.rows(x)
        y = self._residual("norm1", rows, rows, lambda v: self.attention.self_attention(v, hidden, causal=causal))
        return words.places(self._residual("norm2", rows, y, self.feed_forward))


def final_norm(width: int, layer: LayerOptions) -> LayerNorm | None:
    """The norm at the end of a stack of pre-norm layers."""
    if layer.get("norm", "post") != "pre":
        return None
    return LayerNorm(
        width,
        Spec.parse(layer.get("algebra", "quaternion")).n,
        layer.get("norm_per_component", False),
        device=layer.get("device"),
        dtype=layer.get("dtype"),
    )


class TransformerEncoder(nn.Module):
    """A stack of encoder layers, with a final norm where they are pre-norm.

    Args:
        width, heads, layers: sizes, and the number of layers.
        **layer: the other arguments of ``TransformerEncoderLayer``.

    Children: ``layers``, ``norm``. Shape: x (B, L, width), padding (B, L) bool or None -> (B, L, width). What stands
    at padding in the result is left open.

    >>> import torch, quatrain
    >>> encoder = quatrain.nn.TransformerEncoder(16, 2, layers=2, feed_forward=32, algebra="phm(2)")
    >>> encoder(torch.randn(3, 5, 16)).shape
    torch.Size([3, 5, 16])
    """

    norm: LayerNorm | None

    def __init__(self, width: int, heads: int, layers: int, **layer: Unpack[LayerOptions]) -> None:
        super().__init__()
        _check.at_least_one("TransformerEncoder", "layers", layers)
        self.layers = nn.ModuleList(TransformerEncoderLayer(width, heads, **layer) for _ in range(layers))
        self.norm = final_norm(width, layer)

    def forward(self, x: Tensor, padding: Tensor | None = None, causal: bool = False) -> Tensor:
        for layer in self.layers:
            x = layer(x, padding, causal)
        return x if self.norm is None else self.norm(x)
