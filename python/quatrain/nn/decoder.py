"""Transformer decoders over any algebra."""

from __future__ import annotations

from torch import Tensor, nn
from typing_extensions import Unpack

from . import _check
from .component_wise import LayerNorm
from .encoder import LayerOptions, TransformerLayer, final_norm


class TransformerDecoderLayer(TransformerLayer):
    """One layer of a Transformer decoder: causal self-attention, attention to an encoder's output, feed-forward.

    At n = 1, post-norm, it computes what ``torch.nn.TransformerDecoderLayer`` does with a causal mask. The arguments are
    those of ``TransformerEncoderLayer``; ``packed`` is of the self-attention alone. The batch comes first, and ``padding`` stands
    where torch has the mask.

    Children: ``attention``, ``cross_attention``, ``feed_forward``, ``norm1``, ``norm2``, ``norm3`` (none with PHYDI, whose one
    parameter of its own is ``alpha``, a scalar). Shape: x (B, L, width), memory (B, S, width), padding (B, L) and
    memory_padding (B, S) bool or None -> (B, L, width).

    >>> import torch, quatrain
    >>> layer = quatrain.nn.TransformerDecoderLayer(16, 2, feed_forward=32, algebra="quaternion", norm="pre")
    >>> layer(torch.randn(3, 5, 16), torch.randn(3, 7, 16)).shape
    torch.Size([3, 5, 16])
    """

    _crosses = True

    def forward(
        self, x: Tensor, memory: Tensor, padding: Tensor | None = None, memory_padding: Tensor | None = None
    ) -> Tensor:
        y = self._residual("norm1", x, x, lambda v: self.attention.self_attention(v, padding, causal=True))
        y = self._residual("norm2", x, y, lambda v: self.cross_attention(v, memory, memory, memory_padding)[0])
        return self._residual("norm3", x, y, self.feed_forward)


class TransformerDecoder(nn.Module):
    """A stack of decoder layers, with a final norm where they are pre-norm.

    Args:
        width, heads, layers: sizes, and the number of layers.
        **layer: the other arguments of ``TransformerDecoderLayer``.

    Children: ``layers``, ``norm``. Shapes as in its layers.

    >>> import torch, quatrain
    >>> decoder = quatrain.nn.TransformerDecoder(16, 2, layers=2, feed_forward=32, algebra="phm(2)")
    >>> decoder(torch.randn(3, 5, 16), torch.randn(3, 7, 16)).shape
    torch.Size([3, 5, 16])
    """

    norm: LayerNorm | None

    def __init__(self, width: int, heads: int, layers: int, **layer: Unpack[LayerOptions]) -> None:
        super().__init__()
        _check.at_least_one("TransformerDecoder", "layers", layers)
        self.layers = nn.ModuleList(TransformerDecoderLayer(width, heads, **layer) for _ in range(layers))
        self.norm = final_norm(width, layer)

    def forward(
        self, x: Tensor, memory: Tensor, padding: Tensor | None = None, memory_padding: Tensor | None = None
    ) -> Tensor:
        for layer in self.layers:
            x = layer(x, memory, padding, memory_padding)
        return x if self.norm is None else self.norm(x)
