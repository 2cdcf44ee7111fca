"""Structure tensors: their matrices, their factors, and what is nearest to a real matrix."""

from __future__ import annotations

import dataclasses
from typing import Sequence

import torch
from torch import Tensor

from .. import _library as _library

_ops = torch.ops.quatrain


def materialise(S: Tensor, algebra: str = "real", A: Tensor | None = None) -> Tensor:
    """H = sum_i A_i (x) S_i of shape (k, d): the real matrix of a layer. Differentiable in S and A.

    ``S``: (n, k/n, d/n). ``A``: (n, n, n) where it is learned, (3, n, R) where it is factored, None for a fixed
    algebra.
    """
    return _ops.materialise(S, algebra, A)


def rank(algebra: str = "real", A: Tensor | None = None, factors: Sequence[Tensor] = ()) -> int:
    """Rank R of the factors at hand: of a fixed algebra's, or of those given; 0 without factors.

    ``A``: (n, n, n) where it is learned, (3, n, R) where it is factored, None for a fixed algebra. ``factors``: U, V, W
    (n, R) of a learned A, or none.
    """
    return _ops.rank(algebra, A, list(factors))


@dataclasses.dataclass(frozen=True)
class Nearest:
    """The nearest hypercomplex weights of a real matrix."""

    #: (n, k/n, d/n), in the matrix's type
    S: Tensor
    #: (n, n, n): the table of a fixed algebra, or the structure that was found
    A: Tensor
    #: |H - sum_i A_i (x) S_i| / |H|, Frobenius norms
    error: float


def nearest(H: Tensor, algebra: str) -> Nearest:
    """The A and S whose sum_i A_i (x) S_i is nearest to ``H`` (k, d) in the Frobenius norm.

    A least-squares projection with a fixed algebra, the best sum of n Kronecker products with a learned one (``phm(n)``,
    ``wkp(n)``). H = 0 has the error 0. Computed in float64, not differentiable.

    Raises ValueError where the algebra is unknown or has trained factors, n does not divide a size, or H is not a
    matrix of finite values, and TypeError where it is not floating point.

    >>> import torch, quatrain
    >>> H = quatrain.ops.materialise(torch.randn(4, 3, 2), "quaternion")
    >>> quatrain.ops.nearest(H, "quaternion").error < 1e-6
    True
    """
    S, A, error = _ops.nearest(H, algebra)
    return Nearest(S, A, float(error))


@dataclasses.dataclass(frozen=True)
class Decomposition:
    """Numerical factors of a structure tensor."""

    #: U, V, W (n, R) in float64, or none where no start reached the tolerance
    factors: tuple[Tensor, ...]
    #: of the best try, sound or not; 0: nothing was tried
    rank: int
    #: relative error of the best try; infinite where nothing was tried
    residual: float
    #: condition of dA/d(U, V, W); infinite where its rank is below n^3 (above 1e7), or no try was sound
    condition: float

    @property
    def sound(self) -> bool:
        """Whether the residual is below the tolerance."""
        return bool(self.factors)


def decompose(A: Tensor, rank: int = 0, tolerance: float = 1e-6, starts: int = 6, seed: int = 0) -> Decomposition:
    """Finds factors A[i, a, b] = sum_r U[i, r] W[a, r] V[b, r] of a structure tensor (n, n, n).

    ``rank`` 0: the generic rank of n (1, 3, 5, 8, 11, 15, 20, 26, 32, 39 at n = 1 .. 10), then up to 2 more; for a larger
    n none are found without a rank. At most 4,096. ``tolerance``: largest relative error; ``starts``: random starts a rank.
    """
    factors, *found = _ops.decompose(A, rank, tolerance, starts, seed)
    return Decomposition(tuple(factors), *found)


@dataclasses.dataclass(frozen=True)
class StructureReport:
    """What is held beside a learned structure tensor that trains: factors, followed from step to step."""

    #: of the factors held now; 0: none
    rank: int
    #: values of A that were asked for
    steps: int
    #: of these, found by a new search
    solved: int
    #: of these, without sound factors: these steps ran on H
    on_H: int


def structure_report(A: Tensor) -> StructureReport:
    """What is held beside A; by A's storage, so that layers that share A share it."""
    return StructureReport(*_ops.structure_report(A))


def structure_state(A: Tensor) -> Tensor | None:
    """The same as one float64 tensor, for checkpoints: a run that is resumed with it continues bit for bit."""
    state = _ops.structure_state(A)
    return state[0] if state else None


def set_structure_state(A: Tensor, state: Tensor | None) -> None:
    """Puts it back, for A or for a copy of A; None forgets what is held."""
    _ops.set_structure_state(A, state)
