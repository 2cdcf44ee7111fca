"""Classifiers of texts over any algebra."""

from __future__ import annotations

import math
from typing import Any, cast

import torch
from torch import Tensor, nn
from typing_extensions import Unpack

from .. import ops
from ..algebra import Spec
from ..nn import Linear, TransformerEncoder, _check
from ..nn.component_wise import dropout
from ..nn.encoder import LayerOptions
from ..runs import Run
from ._runs import options_of, place_of, with_state_of
from .positions import Sinusoids


class TextClassifier(nn.Module):
    """The tiny Transformer of QNLP and PHM for classifying texts (Tensor2Tensor's): real embeddings, sinusoidal positions, an
    encoder over any algebra, the mean over the words, a real linear head.

    Args:
        vocabulary_size, classes: how many words and classes there are.
        width, heads, layers: sizes, and the number of layers.
        embedding_scale: embeddings start with variance 1/width and are multiplied by sqrt(width); without: variance 1, not
            multiplied.
        max_length: places whose sinusoids are kept; longer texts compute theirs.
        padding_id: the token that stands for no word: its embedding is zero and gets no gradient.
        pretrained_width: width of pretrained embeddings, which pass a real linear map and tanh to reach ``width`` (QNLP 3.4); 0 for
            none. ``freeze_pretrained``: they are not trained.
        **options: the other arguments of ``TransformerEncoderLayer``; here ``feed_forward`` is 512 and ``norm`` ``pre``.

    Children: ``embedding`` (``torch.nn.Embedding``), ``projection`` (pretrained only), ``encoder``, ``head``. Shape: tokens (B, L)
    int64, padding (B, L) bool, None: where the token is ``padding_id`` -> (B, classes). A text that is all padding has the
    mean zero, so its scores are the head's bias.

    >>> import torch, quatrain
    >>> model = quatrain.models.TextClassifier(100, 2, width=16, heads=2, algebra="quaternion")
    >>> model(torch.randint(1, 100, (3, 7))).shape
    torch.Size([3, 2])
    """

    def __init__(
        self,
        vocabulary_size: int,
        classes: int,
        width: int = 128,
        heads: int = 4,
        layers: int = 2,
        *,
        embedding_scale: bool = True,
        max_length: int = 512,
        padding_id: int = 0,
        pretrained_width: int = 0,
        freeze_pretrained: bool = False,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__()
        options = cast(LayerOptions, {"feed_forward": 512, "norm": "pre", **options})
        _check.at_least_one("TextClassifier", "classes", classes)
        _check.at_least_one("TextClassifier", "max_length", max_length)
        _check.at_least_zero("TextClassifier", "pretrained_width", pretrained_width)
        if not 0 <= padding_id < vocabulary_size:
            raise ValueError(
                f"TextClassifier: padding_id must be a token of the vocabulary of {vocabulary_size}, got {padding_id}"
            )
        if freeze_pretrained and pretrained_width == 0:
            raise ValueError("TextClassifier: freeze_pretrained needs pretrained embeddings (set pretrained_width)")
        real: dict[str, Any] = {name: value for name, value in options.items() if name in ("initialiser", "device", "dtype")}
        at = {name: value for name, value in real.items() if name != "initialiser"}
        self.width, self.embedding_scale, self.padding_id = width, embedding_scale, padding_id
        self.places = Sinusoids(max_length, width, options.get("device"))
        self.embedding = nn.Embedding(vocabulary_size, pretrained_width or width, padding_idx=padding_id, **at)
        with torch.no_grad():
            if not pretrained_width and embedding_scale:
                self.embedding.weight.normal_(0, 1 / math.sqrt(width))
            self.embedding.weight[padding_id].zero_()
        self.embedding.weight.requires_grad_(not freeze_pretrained)
        self.projection = Linear(pretrained_width, width, algebra="real", **real) if pretrained_width else None
        self.encoder = TransformerEncoder(width, heads, layers, **options)
        self.head = Linear(width, classes, algebra="real", **real)
        self.dropout, self.per_unit = options.get("dropout", 0.1), options.get("dropout_per_unit", False)
        self.n = Spec.parse(options.get("algebra", "quaternion")).n

    @classmethod
    def from_run(cls, run: Run) -> TextClassifier:
        """The network of a run of the kind ``text_classification`` (``quatrain.load``), with a copy of its weights, in eval mode.

        Other than the run's own model it can be copied, compiled and exported. ``save_model`` writes what ``quatrain predict``
        reads. Raises ValueError where the run is of another kind.
        """
        options = options_of("TextClassifier", run, "text_classification")
        state = run.model.state_dict()
        words, embedded = state["embedding.weight"].shape
        pretrained = embedded if "projection.S" in state else 0
        return with_state_of(run, cls(words, len(run.labels), pretrained_width=pretrained, **options, **place_of(run)))

    def set_embeddings(self, vectors: Tensor) -> None:
        """Copies pretrained vectors (vocabulary_size, pretrained_width or width) into the embeddings; the row of ``padding_id``
        becomes zero."""
        weight = self.embedding.weight
        if vectors.shape != weight.shape:
            raise ValueError(f"TextClassifier: embeddings must be {list(weight.shape)}, got {list(vectors.shape)}")
        with torch.no_grad():
            weight.copy_(vectors)
            weight[self.padding_id].zero_()

    def forward(self, tokens: Tensor, padding: Tensor | None = None) -> Tensor:
        if tokens.dim() != 2:
            raise ValueError(f"TextClassifier: tokens must be (batch, length), got {list(tokens.shape)}")
        padded = tokens == self.padding_id if padding is None else padding
        if padded.shape != tokens.shape or padded.dtype != torch.bool:
            raise ValueError(
                f"TextClassifier: padding must be bool with the sizes of tokens {list(tokens.shape)}, got {padded.dtype} "
                f"{list(padded.shape)}"
            )
        x = nn.functional.embedding(tokens, self.embedding.weight, self.padding_id)
        if self.projection is not None:
            x = torch.tanh(self.projection(x))
        elif self.embedding_scale:
            x = x * math.sqrt(self.width)
        x = x + self.places(0, tokens.size(1), x)
        x = dropout(x, self.dropout, self.training, self.n, self.per_unit)
        scores: Tensor = self.head(ops.masked_mean(self.encoder(x, padded), padded))
        return scores
