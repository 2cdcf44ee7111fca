"""Encoder-decoder Transformers over any algebra."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn
from typing_extensions import Unpack

from ..nn import TransformerDecoder, TransformerEncoder, _check
from ..runs import Run
from ._runs import options_of, place_of, with_state_of
from .token_inputs import Around, SequenceOptions, TokenInputs, renamed, scores_of


class Seq2Seq(nn.Module):
    """The encoder-decoder Transformer of QNLP and PHM: it scores each next token of a target, given a source.

    Args:
        source_vocabulary, target_vocabulary: how many tokens there are.
        width, heads, encoder_layers, decoder_layers: sizes, and the numbers of layers.
        share_embeddings: one embedding for source and target, whose vocabularies are then one.
        **options: ``SequenceOptions``: ``embedding_in_algebra``, ``embedding_scale``, ``output``, ``positions``, ``max_length``,
            and the other arguments of ``TransformerEncoderLayer``.

    Children: ``source`` (unless embeddings are shared), ``target`` (TokenInputs), ``encoder``, ``decoder``, ``output`` (unless it
    is tied to the target's embedding). Shape: source (B, S) and target (B, L) int64, their paddings bool or None -> (B, L,
    target_vocabulary), the scores of the token that follows each place. The target begins with the mark of its beginning.

    >>> import torch, quatrain
    >>> model = quatrain.models.Seq2Seq(50, 60, width=16, heads=2, encoder_layers=1, decoder_layers=1, feed_forward=32)
    >>> model(torch.randint(50, (3, 7)), torch.randint(60, (3, 5))).shape
    torch.Size([3, 5, 60])
    """

    def __init__(
        self,
        source_vocabulary: int,
        target_vocabulary: int,
        width: int = 512,
        heads: int = 8,
        encoder_layers: int = 6,
        decoder_layers: int = 6,
        *,
        share_embeddings: bool = False,
        **options: Unpack[SequenceOptions],
    ) -> None:
        super().__init__()
        _check.at_least_one("Seq2Seq", "source_vocabulary", source_vocabulary)
        _check.at_least_one("Seq2Seq", "target_vocabulary", target_vocabulary)
        if share_embeddings and source_vocabulary != target_vocabulary:
            raise ValueError(
                "Seq2Seq: share_embeddings needs one vocabulary for source and target, got "
                f"{source_vocabulary} and {target_vocabulary} tokens"
            )
        around = Around(width, options)
        self.target_vocabulary = target_vocabulary
        self.source = None if share_embeddings else around.inputs(source_vocabulary)
        self.target = around.inputs(target_vocabulary)
        self.encoder = TransformerEncoder(width, heads, encoder_layers, **around.layer)
        self.decoder = TransformerDecoder(width, heads, decoder_layers, **around.layer)
        self.output = around.output(target_vocabulary)

    @classmethod
    def from_run(cls, run: Run) -> Seq2Seq:
        """The network of a run of the kind ``seq2seq`` (``quatrain.load``), with a copy of its weights, in eval mode.

        Other than the run's own model it can be copied, compiled and exported. ``save_model`` writes what ``quatrain predict``
        reads. Raises ValueError where the run is of another kind.
        """
        options: dict[str, Any] = renamed(options_of("Seq2Seq", run, "seq2seq"))
        start = torch.zeros(1, 1, dtype=torch.int64, device=place_of(run)["device"])
        with torch.no_grad():
            target = run.model(start, start).size(-1)
        state = run.model.state_dict()
        source = target
        if not options["share_embeddings"]:  # entries that fill an algebra count as tokens here
            S = state["source.embedding.S"]
            source = S.size(0) * S.size(1)
        return with_state_of(run, cls(source, target, **options, **place_of(run)))

    @property
    def source_inputs(self) -> TokenInputs:
        """What sources go through first: ``source``, or ``target`` where the two share their embeddings."""
        return self.target if self.source is None else self.source

    def encode(self, source: Tensor, source_padding: Tensor | None = None) -> Tensor:
        """The encoder's output (B, S, width); what stands at padding is left open."""
        return cast(Tensor, self.encoder(self.source_inputs(source), source_padding))

    def hidden(
        self, target: Tensor, memory: Tensor, target_padding: Tensor | None = None, source_padding: Tensor | None = None
    ) -> Tensor:
        """What the scores are made of, (B, L, width), given the encoder's output."""
        return cast(Tensor, self.decoder(self.target(target), memory, target_padding, source_padding))

    def scores(self, hidden: Tensor) -> Tensor:
        """Scores of the tokens that follow, (..., width) -> (..., target_vocabulary)."""
        return scores_of(hidden, self.output, self.target, self.target_vocabulary)

    def decode(
        self, target: Tensor, memory: Tensor, target_padding: Tensor | None = None, source_padding: Tensor | None = None
    ) -> Tensor:
        """The scores, given the encoder's output."""
        return self.scores(self.hidden(target, memory, target_padding, source_padding))

    def forward(
        self, source: Tensor, target: Tensor, source_padding: Tensor | None = None, target_padding: Tensor | None = None
    ) -> Tensor:
        return self.decode(target, self.encode(source, source_padding), target_padding, source_padding)
