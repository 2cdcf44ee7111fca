"""Embeddings over any algebra."""

from __future__ import annotations

import torch
from torch import Tensor

from .. import ops
from ..algebra import Spec, get
from ..init import Initialiser
from . import _check
from .weight import WAYS, HypercomplexLayer, Way


class Embedding(HypercomplexLayer):
    """A vector for each token: the rows of H = sum_i A_i (x) S_i (PHYDI's PHM embedding), torch's embedding at n = 1.

    A row is mixed of n rows of S; H is never written out.

    Args:
        num_embeddings: number of rows; n must divide it.
        embedding_dim: size of a row; n must divide it. Up to here, and in ``device`` and ``dtype``, the arguments are torch's.
        algebra: ``quaternion``, ``phm(4)``, ``real`` ...
        initialiser: one of ``quatrain.init.INITIALISERS``; ``lecun`` gives rows of norm 1.
        way: how ``scores`` is evaluated.

    Parameters: those of ``Linear`` without a bias; ``S`` is (n, tokens/n, width/n). Shape: (...) int64 -> (..., width).

    >>> import torch, quatrain
    >>> layer = quatrain.nn.Embedding(48, 16, algebra="phm(4)")
    >>> layer(torch.tensor([[1, 5, 47]])).shape
    torch.Size([1, 3, 16])
    """

    A: Tensor | None
    factors: Tensor | None
    S: Tensor
    table: Tensor | None

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        algebra: str | Spec = "quaternion",
        initialiser: Initialiser = "lecun",
        way: Way = "auto",
    ) -> None:
        super().__init__()
        spec = Spec.parse(algebra)
        _check.divisible("Embedding", "tokens", num_embeddings, spec.n)
        _check.divisible("Embedding", "width", embedding_dim, spec.n)
        _check.choice("way", way, WAYS)
        self.num_embeddings, self.embedding_dim, self.initialiser, self.way = num_embeddings, embedding_dim, initialiser, way
        self._weight = self.add_weight(
            spec, embedding_dim, num_embeddings, initialiser=initialiser, device=device, dtype=dtype, decays=False
        )
        table = None
        if spec.n > 1 and not spec.learns_structure:
            table = get(spec.operand).table.to(device=self.S.device, dtype=self.S.dtype)
        self.register_buffer("table", table, persistent=False)

    def reset_parameters(self) -> None:
        """Draws S and A anew by the initialiser, as the C++ layer does from the same seed."""
        self._weight.draw(self)

    def forward(self, tokens: Tensor) -> Tensor:
        S, _, A, _, _ = self._weight.operands(self)
        return ops.embedding(tokens, S, self.table if A is None else A, self.factors is not None)

    def scores(self, x: Tensor) -> Tensor:
        """H x, a score for each token: (..., width) -> (..., tokens). An output layer whose weights are these."""
        S, algebra, A, factors, constant = self._weight.operands(self)
        return ops.linear(x, S, None, algebra, A, factors, self.way, None, constant)

    def matrix(self) -> Tensor:
        """H (tokens, width), differentiable."""
        return self._weight.matrix(self)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}, algebra={self.spec}"
