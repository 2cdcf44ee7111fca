"""Initialisers of weights S (n, out/n, in/n) and structure tensors A (n, n, n), drawn in C++.

All fill in place, take an optional generator (default: torch's global one), and record no gradient: the same seed gives
the same values as the C++ layer. They raise ValueError for an unknown name, for S that is not (n, out/n, in/n,
kernel...) and for A of another size. C++ also has ``initialise_factors_`` and ``factors_power``. The rule: the entries
of H = sum_i A_i (x) S_i have, on average over its n x n blocks, the variance that Glorot (or He) gives the **real**
layer of the same size k x d.

>>> import torch, quatrain
>>> S = torch.empty(4, 16, 16)
>>> quatrain.init.glorot_(S).abs().max() <= (6 / 128) ** 0.5
tensor(True)
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Generator, Tensor

from . import _library as _library

__all__ = [
    "INITIALISERS",
    "glorot_",
    "he_",
    "identity_structure_",
    "initialise_gate_biases_",
    "initialise_weight_",
    "lecun_",
    "polar_",
    "polar_paper_",
    "random_structure_",
    "real_fans",
    "initialise_structure_",
    "structure_power",
    "table_structure_",
]

#: The names of the initialisers of S.
Initialiser = Literal["glorot", "he", "lecun", "polar", "polar_he", "polar_paper", "polar_paper_he"]
INITIALISERS = get_args(Initialiser)

_ops = torch.ops.quatrain


def initialise_weight_(
    S: Tensor, initialiser: str, power: float = 1.0, generator: Generator | None = None, maps: int = 1
) -> Tensor:
    """Fills S by the initialiser of that name. ``power``: see ``structure_power``; ``maps``: see ``real_fans``."""
    with torch.no_grad():
        _ops.initialise_weight_(S, initialiser, power, maps, generator=generator)
    return S


def glorot_(S: Tensor, power: float = 1.0, generator: Generator | None = None, maps: int = 1) -> Tensor:
    """S ~ U(-a, a), a^2 = 6/(fan_in + fan_out) / power with real fans: Var(H) is Glorot's."""
    return initialise_weight_(S, "glorot", power, generator, maps)


def he_(S: Tensor, power: float = 1.0, generator: Generator | None = None, maps: int = 1) -> Tensor:
    """S ~ U(-a, a), a^2 = 6/fan_in / power: Var(H) is He's."""
    return initialise_weight_(S, "he", power, generator, maps)


def lecun_(S: Tensor, power: float = 1.0, generator: Generator | None = None) -> Tensor:
    """S ~ N(0, 1/fan_in / power): Var(H) is LeCun's."""
    return initialise_weight_(S, "lecun", power, generator)


def polar_(
    S: Tensor, he: bool = False, power: float = 1.0, generator: Generator | None = None, maps: int = 1
) -> Tensor:
    """Isotropic polar (QRNN (29)): S ~ N(0, sigma^2), sigma^2 = 2/(fan_in + fan_out) / power.

    With ``he`` sigma^2 = 2/fan_in / power.
    """
    return initialise_weight_(S, "polar_he" if he else "polar", power, generator, maps)


def polar_paper_(S: Tensor, he: bool = False, generator: Generator | None = None, maps: int = 1) -> Tensor:
    """QRNN Algorithm 1 as printed: 12 times below Glorot's variance, its axes correlated."""
    return initialise_weight_(S, "polar_paper_he" if he else "polar_paper", 1.0, generator, maps)


def initialise_structure_(A: Tensor, algebra: str, generator: Generator | None = None) -> Tensor:
    """Fills A as the notation says: ``phm(4)`` at random, ``phm(quaternion)`` from the table, ``phm(identity(4))``."""
    with torch.no_grad():
        _ops.initialise_structure_(A, str(algebra), generator=generator)
    return A


def initialise_gate_biases_(
    bias: Tensor, n: int, cell: str, forget_bias: float = 0.0, chrono: int = 0, generator: Generator | None = None
) -> Tensor:
    """The bias of a cell's input maps, (n * gates * p): zero, but an ``lstm``'s forget gates start with ``forget_bias``.

    With ``chrono`` steps (Tallec and Ollivier 2018) an lstm's forget gates start with log U(1, chrono - 1) and its
    input gates with their opposite, a ``gru``'s update gates with the former. ``forget_bias`` is of ``lstm`` and
    ``lstm_printed`` without ``chrono``; ``chrono`` is 0, or at least 3 for cells with gates; else it is a ValueError.
    """
    with torch.no_grad():
        _ops.initialise_gate_biases_(bias, n, cell, forget_bias, chrono, generator=generator)
    return bias


def _size_of(function: str, A: Tensor) -> int:
    if A.dim() != 3 or len(set(A.shape)) != 1:
        raise ValueError(f"{function}: A must be (n, n, n), got {list(A.shape)}")
    return A.size(0)


def random_structure_(A: Tensor, generator: Generator | None = None) -> Tensor:
    """PHM's start: A ~ N(0, 1), then each fibre A[:, a, b] scaled to norm 1, so that Var(H) = Var(S)."""
    return initialise_structure_(A, f"phm({_size_of('random_structure_', A)})", generator)


def identity_structure_(A: Tensor) -> Tensor:
    """A_0 = I, the others zero: a degenerate start (the other S_i get no gradient until A moves)."""
    return initialise_structure_(A, f"phm(identity({_size_of('identity_structure_', A)}))")


def table_structure_(A: Tensor, algebra: str) -> Tensor:
    """A = the table of a named algebra."""
    return initialise_structure_(A, f"phm({algebra})")


def real_fans(S: Tensor, maps: int = 1) -> tuple[float, float]:
    """Real fans (in, out) of a weight: (d, k), times the receptive field; of one map where ``maps`` lie beside each other."""
    return _ops.real_fans(S, maps)


def structure_power(A: Tensor | str) -> float:
    """Var(H) / Var(S) of a structure tensor or of a named algebra: |A|^2 / n^2, 1 for the quaternions.

    ``A``: (n, n, n), or the name.
    """
    return _ops.algebra_power(A) if isinstance(A, str) else _ops.structure_power(A)
