"""Embeddings over any algebra."""

from __future__ import annotations

from typing import Any, Callable

import torch
from torch import Tensor

from .. import ops
from ..algebra import Spec, get
from ..init import Initialiser
from . import _check
from ._computed import computed
from .weight import WAYS, OneWeightLayer, Way


class Embedding(OneWeightLayer):
    """A vector for each token: the rows of H = sum_i A_i (x) S_i (PHYDI's PHM embedding), torch's embedding at n = 1.

    A row is mixed of n rows of S; H is never written out. So no row can stay zero: there is no padding_idx.

    Args:
        num_embeddings: number of rows; n must divide it.
        embedding_dim: size of a row; n must divide it. Of torch's other arguments there are ``device`` and ``dtype`` alone.
        algebra: ``quaternion``, ``phm(4)``, ``real`` ...
        initialiser: one of ``quatrain.init.INITIALISERS``; ``lecun`` gives rows whose mean square norm is 1.
        way: how ``scores`` is evaluated.

    Parameters: those of ``Linear`` without a bias; ``S`` is (n, num_embeddings/n,
    embedding_dim/n). Shape: (...) int64 or int32 -> (..., embedding_dim).

    Raises:
        ValueError: n does not divide a size, or a name is unknown.
        IndexError: in a call, a token outside [0, num_embeddings).

    >>> import torch, quatrain
    >>> layer = quatrain.nn.Embedding(48, 16, algebra="phm(4)")
    >>> layer(torch.tensor([[1, 5, 47]])).shape
    torch.Size([1, 3, 16])
    """

    S: Tensor

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        algebra: str | Spec = "quaternion",
        initialiser: Initialiser = "lecun",
        way: Way = "auto",
    ) -> None:
        super().__init__()
        spec = Spec.parse(algebra)
        _check.divisible("Embedding", "num_embeddings", num_embeddings, spec.n)
        _check.divisible("Embedding", "embedding_dim", embedding_dim, spec.n)
        _check.choice("way", way, WAYS)
        self.num_embeddings, self.embedding_dim, self.initialiser, self.way = num_embeddings, embedding_dim, initialiser, way
        self._weight = self.add_weight(
            spec, embedding_dim, num_embeddings, initialiser=initialiser, device=device, dtype=dtype, decays=False
        )
        # No buffer: to_empty would leave it empty, load_state_dict(assign=True) on the meta device. Numbers, not a tensor:
        # FakeTensorMode refuses tensors that were made outside of it.
        self._table = None if spec.n == 1 or spec.learns_structure else get(spec.operand).table.tolist()
        self._place_table()

    def _place_table(self) -> None:
        self._placed = None if self._table is None else self._table_like(self.S)

    def _table_like(self, S: Tensor) -> Tensor:
        return torch.tensor(self._table, device=S.device, dtype=S.dtype)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Embedding:
        super()._apply(fn, recurse)
        self._place_table()
        return self

    def _structure(self, S: Tensor) -> Tensor | None:
        """The table of a fixed algebra, as S is."""
        placed = self._placed
        if self._table is None or placed is not None and placed.device == S.device and placed.dtype is S.dtype:
            return placed
        return self._table_like(S)  # S came from elsewhere than a move of the layer

    def reset_parameters(self) -> None:
        """Draws S and A anew by the initialiser, as the C++ layer does from the same seed."""
        self._weight.draw(self)

    def forward(self, input: Tensor) -> Tensor:
        S, (_, A) = self.S, self._weight.product(self)
        return ops.embedding(input, S, self._structure(S) if A is None else A, self.factors is not None)

    def scores(self, x: Tensor) -> Tensor:
        """H x, a score for each token: (..., embedding_dim) -> (..., num_embeddings). An output layer whose weights are these."""
        S, algebra, A, factors, constant = self._weight.operands(self)
        return ops.linear(x, S, None, algebra, A, factors, self.way, None, constant)

    @property
    def weight(self) -> Tensor:
        """H (num_embeddings, embedding_dim), differentiable: for code that looks at the vectors. Slow: it is built in every call.

        Writing into it is an error, since it would change nothing.
        """
        return computed(self.matrix())

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "weight":
            raise AttributeError("Embedding: weight is the matrix H, computed from S and A, and cannot be set: write into S")
        super().__setattr__(name, value)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}, algebra={self.spec}"
