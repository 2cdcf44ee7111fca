"""What becomes of tokens before the first layer, and what scores them behind the last."""

from __future__ import annotations

import math
from typing import Any, Literal, cast, get_args

import torch
from torch import Tensor, nn

from ..algebra import Spec
from ..init import Initialiser
from ..nn import Embedding, Linear, _check
from ..nn.component_wise import dropout as dropped
from ..nn.encoder import LayerOptions
from ..nn.weight import Way
from .positions import Sinusoids

Positions = Literal["sinusoidal", "learned"]
OutputLayer = Literal["tied", "real", "algebra"]


class TokenInputs(nn.Module):
    """dropout(sqrt(width) embedding(tokens) + positions).

    Args:
        tokens, width: how many tokens there are, and the size of their vectors; n must divide both.
        scale: rows, which start with the variance 1/width, are multiplied by sqrt(width).
        positions: ``sinusoidal``, sines and then cosines of the place, or ``learned``.
        max_length: learned: the longest text. Sinusoidal: places that are kept; longer texts compute theirs.
        dropout: of the sum.
        algebra, initialiser, way: of the embedding.

    Children: ``embedding``, and ``positions`` (``torch.nn.Embedding``) where they are learned. Shape: tokens (B, L) int64 -> (B,
    L, width); ``first`` is the place of the first token, for texts that come in parts.

    Raises:
        ValueError: tokens are no batch of rows, or learned positions are not as many as a text is long.

    >>> import torch, quatrain
    >>> inputs = quatrain.models.TokenInputs(48, 16, algebra="quaternion")
    >>> inputs(torch.tensor([[3, 5, 47]])).shape
    torch.Size([1, 3, 16])
    """

    def __init__(
        self,
        tokens: int,
        width: int,
        *,
        scale: bool = True,
        positions: Positions = "sinusoidal",
        max_length: int = 512,
        dropout: float = 0.0,
        algebra: str | Spec = "real",
        initialiser: Initialiser = "lecun",
        way: Way = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        _check.choice("positions", positions, get_args(Positions))
        _check.at_least_one("TokenInputs", "max_length", max_length)
        _check.probability("TokenInputs", "dropout", dropout)
        self.tokens, self.width, self.scale, self.max_length, self.dropout = tokens, width, scale, max_length, dropout
        at: dict[str, Any] = {"device": device, "dtype": dtype}
        self.embedding = Embedding(tokens, width, algebra=algebra, initialiser=initialiser, way=way, **at)
        self.positions = nn.Embedding(max_length, width, **at) if positions == "learned" else None
        self.sinusoids = None if self.positions else Sinusoids(max_length, width, device)
        self._draw_positions()

    def _draw_positions(self) -> None:
        if self.positions is not None:
            with torch.no_grad():
                self.positions.weight.normal_(0, 1 if self.scale else 1 / math.sqrt(self.width))

    def reset_parameters(self) -> None:
        """Draws learned positions anew; the embedding has its own."""
        self._draw_positions()

    def _places(self, first: int, length: int, like: Tensor) -> Tensor:
        end = first + length
        if self.sinusoids is not None:
            return cast(Tensor, self.sinusoids(first, length, like))
        assert self.positions is not None
        if end > self.max_length:
            raise ValueError(
                f"TokenInputs: positions are learned for {self.max_length} tokens, got a text of {end}; cut it, or take "
                "positions = sinusoidal"
            )
        return self.positions.weight[first:end]

    def forward(self, tokens: Tensor, first: int = 0) -> Tensor:
        if tokens.dim() != 2:
            raise ValueError(f"TokenInputs: tokens must be (batch, length), got {list(tokens.shape)}")
        x = self.embedding(tokens)
        if self.scale:
            x = x * math.sqrt(self.width)
        x = x + self._places(first, tokens.size(1), x)
        return dropped(x, self.dropout, self.training)

    def extra_repr(self) -> str:
        return f"{self.tokens}, {self.width}, positions={'learned' if self.positions else 'sinusoidal'}"


class SequenceOptions(LayerOptions, total=False):
    """The keyword arguments of models of sequences: those of their layers, and of what stands around these.

    embedding_in_algebra: embeddings are in the model's algebra, else real. Where n does not divide the number of tokens,
        entries that nothing uses fill it up.
    embedding_scale: see ``TokenInputs``.
    output: what scores the next token: ``tied``, the embedding; ``real``, a real linear map; ``algebra``, one in the algebra.
    positions, max_length: see ``TokenInputs``.
    """

    embedding_in_algebra: bool
    embedding_scale: bool
    output: OutputLayer
    positions: Positions
    max_length: int


class Around:
    """What stands around the layers of a model of sequences, by its options."""

    def __init__(self, width: int, options: SequenceOptions) -> None:
        rest: dict[str, Any] = dict(options)
        self.width = width
        self.in_algebra: bool = rest.pop("embedding_in_algebra", False)
        self.kind: OutputLayer = rest.pop("output", "tied")
        _check.choice("output", self.kind, get_args(OutputLayer))
        self.places = {"scale": rest.pop("embedding_scale", True)}
        self.places |= {name: rest.pop(name) for name in ("positions", "max_length") if name in rest}
        self.layer: LayerOptions = rest  # type: ignore[assignment]
        self.spec = Spec.parse(rest.get("algebra", "quaternion"))
        self.maps = {name: rest[name] for name in ("way", "device", "dtype") if name in rest}

    def _filled(self, tokens: int, in_algebra: bool) -> tuple[int, Spec]:
        """Entries for so many tokens, and the algebra that they fill."""
        spec = self.spec if in_algebra else Spec.parse("real")
        return -(-tokens // spec.n) * spec.n, spec

    def inputs(self, tokens: int) -> TokenInputs:
        entries, algebra = self._filled(tokens, self.in_algebra)
        return TokenInputs(entries, self.width, algebra=algebra, dropout=self.layer.get("dropout", 0.1), **self.places, **self.maps)

    def output(self, tokens: int) -> Linear | None:
        if self.kind == "tied":
            return None
        entries, algebra = self._filled(tokens, self.kind == "algebra")
        options: dict[str, Any] = {name: value for name, value in self.layer.items() if name in ("initialiser", "bias")}
        return Linear(self.width, entries, algebra=algebra, **options, **self.maps)


def scores_of(hidden: Tensor, output: Linear | None, inputs: TokenInputs, tokens: int) -> Tensor:
    """A score for each token, (..., width) -> (..., tokens), without those that fill an algebra."""
    scores = inputs.embedding.scores(hidden) if output is None else output(hidden)
    return scores[..., :tokens]


def renamed(options: dict[str, Any]) -> dict[str, Any]:
    """A recipe's keys as ``SequenceOptions`` has them."""
    options["max_length"] = options.pop("max_positions")
    return options
