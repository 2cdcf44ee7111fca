"""A whole network of Quatrain's layers, as you would write your own: the tiny Transformer for texts of ``quatrain train``.

The same sizes and seed give the same weights as the program's model in C++ (``quatrain/models/text_classifier.h``).
"""

import math

import quatrain
import torch
from torch import Tensor, nn


LONGEST = 512


class TextClassifier(nn.Module):
    """Real embeddings, sinusoidal positions, an encoder over any algebra, the mean over the words, a real head.

    Token 0 is the padding; a text has at most ``LONGEST`` words. The positions are not in the state dict: they follow from the sizes.
    """

    def __init__(
        self,
        vocabulary_size: int,
        classes: int,
        width: int = 128,
        heads: int = 4,
        feed_forward: int = 512,
        layers: int = 2,
        dropout: float = 0.1,
        algebra: str = "real",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.width = width
        self.register_buffer("positions", torch.ops.quatrain.sinusoidal_positions(LONGEST, width).to(device), persistent=False)
        self.embedding = nn.Embedding(vocabulary_size, width, padding_idx=0, device=device, dtype=dtype)
        with torch.no_grad():
            self.embedding.weight.normal_(0, 1 / math.sqrt(width))
            self.embedding.weight[0].zero_()
        self.dropout = nn.Dropout(dropout)
        self.encoder = quatrain.nn.TransformerEncoder(
            width, heads, layers, feed_forward=feed_forward, algebra=algebra, norm="pre", dropout=dropout, device=device, dtype=dtype
        )
        self.head = quatrain.nn.Linear(width, classes, algebra="real", device=device, dtype=dtype)

    def forward(self, tokens: Tensor) -> Tensor:
        """tokens (B, L) int64 -> logits (B, classes)."""
        if tokens.dim() != 2:
            raise ValueError(f"TextClassifier: tokens must be (batch, length), got {list(tokens.shape)}")
        padding = tokens == 0
        x = self.embedding(tokens) * math.sqrt(self.width)
        x = self.dropout(x + self.positions[: tokens.size(1)].to(x.dtype))
        return self.head(quatrain.ops.masked_mean(self.encoder(x, padding), padding))
