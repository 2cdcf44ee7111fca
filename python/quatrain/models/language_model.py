"""Language models over any algebra."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from typing_extensions import Unpack

from ..nn import TransformerEncoder, _check
from ..runs import Run
from ._runs import options_of, place_of, with_state_of
from .token_inputs import Around, SequenceOptions, renamed, scores_of


class LanguageModel(nn.Module):
    """A causal Transformer that scores the next token (PHYDI 4.3): embeddings and positions, layers that see what came before,
    an output layer.

    Args:
        vocabulary_size: how many tokens there are.
        width, heads, layers: sizes, and the number of layers.
        **options: ``SequenceOptions``: ``embedding_in_algebra``, ``embedding_scale``, ``output``, ``positions``, ``max_length``,
            and the other arguments of ``TransformerEncoderLayer``; ``feed_forward`` is 256 here.

    Children: ``inputs`` (TokenInputs), ``layers`` (TransformerEncoder), ``output`` (unless it is tied). Shape: tokens (B, L) int64,
    padding (B, L) bool or None -> (B, L, vocabulary_size), the scores of the token that follows each place.

    >>> import torch, quatrain
    >>> model = quatrain.models.LanguageModel(50, width=16, heads=2, layers=2, algebra="phm(4)", norm="pre")
    >>> model(torch.randint(50, (3, 7))).shape
    torch.Size([3, 7, 50])
    """

    def __init__(self, vocabulary_size: int, width: int = 128, heads: int = 8, layers: int = 12, **options: Unpack[SequenceOptions]) -> None:
        super().__init__()
        _check.at_least_one("LanguageModel", "vocabulary_size", vocabulary_size)
        around = Around(width, cast(SequenceOptions, {"feed_forward": 256, **options}))
        self.vocabulary_size = vocabulary_size
        self.inputs = around.inputs(vocabulary_size)
        self.layers = TransformerEncoder(width, heads, layers, **around.layer)
        self.output = around.output(vocabulary_size)

    @classmethod
    def from_run(cls, run: Run) -> LanguageModel:
        """The network of a run of the kind ``language_model`` (``quatrain.load``), with a copy of its weights, in eval mode.

        Other than the run's own model it can be copied, compiled and exported. ``save_model`` writes what ``quatrain predict``
        reads. Raises ValueError where the run is of another kind.
        """
        options = renamed(options_of("LanguageModel", run, "language_model"))
        with torch.no_grad():
            size = run.model(torch.zeros(1, 1, dtype=torch.int64, device=place_of(run)["device"])).size(-1)
        return with_state_of(run, cls(size, **options, **place_of(run)))

    def hidden(self, tokens: Tensor, padding: Tensor | None = None) -> Tensor:
        """What the scores are made of, (B, L, width)."""
        return cast(Tensor, self.layers(self.inputs(tokens), padding, causal=True))

    def scores(self, hidden: Tensor) -> Tensor:
        """Scores of the tokens that follow, (..., width) -> (..., vocabulary_size)."""
        return scores_of(hidden, self.output, self.inputs, self.vocabulary_size)

    def forward(self, tokens: Tensor, padding: Tensor | None = None) -> Tensor:
        return self.scores(self.hidden(tokens, padding))
