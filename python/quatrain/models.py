"""Whole networks."""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import Tensor, nn

from . import ops
from .algebra import Spec
from .nn import Linear, TransformerEncoder, _check, dropout

__all__ = ["TextClassifier", "sinusoidal_positions"]


def sinusoidal_positions(length: int, width: int) -> Tensor:
    """Sinusoidal positions (length, width), float32, as Tensor2Tensor lays them out.

    Sines in the first half, cosines in the second, wavelengths from 2 pi to 20,000 pi in geometric steps.
    """
    return torch.ops.quatrain.sinusoidal_positions(length, width)


class TextClassifier(nn.Module):
    """The tiny Transformer of QNLP and PHM for classifying texts (Tensor2Tensor's).

    Real embeddings, sinusoidal positions, an encoder over any algebra, the mean over unpadded positions, a real head.

    Args:
        vocabulary_size, classes, width, heads, feed_forward, layers: sizes.
        dropout: of the embeddings and in the encoder; ``dropout_per_unit`` drops whole hypercomplex units.
        algebra, scope, norm, attention, packed, activation, initialiser, printed, split, norm_per_component: see
            ``quatrain.nn.TransformerEncoderLayer``.
        embedding_scale: embeddings start with variance 1/width and are multiplied by sqrt(width).
        max_length: positions whose sinusoids are kept; longer inputs work and compute theirs.
        padding_id: the token that stands for no word: its embedding is zero and gets no gradient.
        pretrained_width: width of pretrained embeddings, which pass a real linear map and tanh to reach ``width`` (QNLP
            3.4); 0: none.
        freeze_pretrained: the embeddings are not trained.

    Children: ``embedding``, ``projection`` (pretrained only), ``encoder``, ``head``.

    >>> import torch, quatrain
    >>> model = quatrain.models.TextClassifier(100, 2, width=16, heads=2, feed_forward=32, algebra="quaternion")
    >>> model(torch.tensor([[5, 7, 9], [4, 0, 0]])).shape
    torch.Size([2, 2])
    """

    positions: Tensor

    def __init__(
        self,
        vocabulary_size: int,
        classes: int,
        width: int = 128,
        heads: int = 4,
        feed_forward: int = 512,
        layers: int = 2,
        dropout: float = 0.1,
        dropout_per_unit: bool = False,
        algebra: str | Spec = "real",
        scope: str = "full",
        norm: str = "pre",
        attention: str = "automatic",
        packed: bool = False,
        activation: str = "relu",
        initialiser: str = "glorot",
        embedding_scale: bool = True,
        max_length: int = 512,
        padding_id: int = 0,
        pretrained_width: int = 0,
        freeze_pretrained: bool = False,
        printed: bool = False,
        split: str = "inside",
        norm_per_component: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        spec = Spec.parse(algebra)
        _check.at_least_one("TextClassifier", "classes", classes)
        if not 0 <= padding_id < vocabulary_size:
            raise ValueError(
                f"TextClassifier: padding_id must be a token of the vocabulary of {vocabulary_size}, got {padding_id}"
            )
        if pretrained_width < 0:
            raise ValueError(f"TextClassifier: pretrained_width must not be negative, got {pretrained_width}")
        if freeze_pretrained and pretrained_width == 0:
            raise ValueError("TextClassifier: freeze_pretrained needs pretrained embeddings (set pretrained_width)")
        _check.probability("TextClassifier", "dropout", dropout)
        self.vocabulary_size, self.classes, self.width = vocabulary_size, classes, width
        self.dropout, self.dropout_per_unit, self.n = dropout, dropout_per_unit, spec.n
        self.embedding_scale, self.max_length, self.padding_id = embedding_scale, max_length, padding_id
        pretrained = pretrained_width > 0
        embedded = pretrained_width if pretrained else width

        # Not in the state dict: they follow from the sizes.
        self.register_buffer("positions", sinusoidal_positions(max_length, width).to(device), persistent=False)
        self.embedding = nn.Embedding(vocabulary_size, embedded, padding_idx=padding_id, device=device, dtype=dtype)
        with torch.no_grad():
            if not pretrained and embedding_scale:
                self.embedding.weight.normal_(0, 1 / math.sqrt(embedded))
            self.embedding.weight[padding_id].zero_()
        self.embedding.weight.requires_grad_(not freeze_pretrained)
        self.projection: Linear | None = None
        if pretrained:
            self.projection = Linear(embedded, width, initialiser=initialiser, device=device, dtype=dtype)
        self.encoder = TransformerEncoder(
            width,
            heads,
            layers,
            feed_forward=feed_forward,
            algebra=spec,
            scope=scope,
            norm=norm,
            attention=attention,
            printed=printed,
            norm_per_component=norm_per_component,
            packed=packed,
            split=split,
            activation=activation,
            dropout=dropout,
            dropout_per_unit=dropout_per_unit,
            initialiser=initialiser,
            device=device,
            dtype=dtype,
        )
        self.head = Linear(width, classes, initialiser=initialiser, device=device, dtype=dtype)

    def forward(self, tokens: Tensor, padding: Tensor | None = None) -> Tensor:
        """tokens (B, L) int64, padding (B, L) bool (None: where the token is padding_id) -> logits (B, classes).

        A text that is all padding has the mean zero, so its logits are the head's bias.
        """
        if tokens.dim() != 2:
            raise ValueError(f"TextClassifier: tokens must be (batch, length), got {list(tokens.shape)}")
        if padding is None:
            padding = tokens == self.padding_id
        if padding.shape != tokens.shape or padding.dtype != torch.bool:
            raise ValueError(
                f"TextClassifier: padding must be bool with the sizes of tokens {list(tokens.shape)}, got "
                f"{padding.dtype} {list(padding.shape)}"
            )
        length = tokens.size(1)
        x = self.embedding(tokens)
        if self.projection is not None:
            x = torch.tanh(self.projection(x))
        elif self.embedding_scale:
            x = x * math.sqrt(self.width)
        positions = (
            self.positions[:length] if length <= self.max_length else sinusoidal_positions(length, self.width).to(x.device)
        )
        x = dropout(x + positions.to(x.dtype), self.dropout, self.training, self.n, self.dropout_per_unit)
        return cast(Tensor, self.head(ops.masked_mean(self.encoder(x, padding), padding)))

    def set_embeddings(self, vectors: Tensor) -> None:
        """Copies pretrained vectors (vocabulary_size, embedded width); the row of padding_id becomes zero."""
        if vectors.shape != self.embedding.weight.shape:
            raise ValueError(
                f"TextClassifier: embeddings must be {list(self.embedding.weight.shape)}, got {list(vectors.shape)}"
            )
        with torch.no_grad():
            self.embedding.weight.copy_(vectors)
            self.embedding.weight[self.padding_id].zero_()
