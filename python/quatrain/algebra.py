"""Algebras as data: names, multiplication tables, factors, properties; and the notation that layers take.

>>> import quatrain
>>> quatrain.algebra.get("quaternion").n
4
>>> quatrain.algebra.Spec.parse("phm(4)").learned
True
"""

from __future__ import annotations

import dataclasses
import os
from typing import Sequence

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from . import _library as _library

__all__ = ["Algebra", "Properties", "Spec", "add", "add_from_file", "add_from_weights", "get", "names"]

_ops = torch.ops.quatrain


@dataclasses.dataclass(frozen=True)
class Properties:
    """Properties of an algebra, all computed from its table."""

    #: e_0 is a two-sided identity
    unital: bool
    #: x y = y x
    commutative: bool
    #: x (y z) = (x y) z
    associative: bool
    #: x (x y) = (x x) y and (y x) x = y (x x)
    alternative: bool
    #: proved to have no zero divisors; exact for alternative algebras with an identity
    division: bool
    #: \\|x y\\| = \\|x\\| \\|y\\| for the Euclidean norm
    norm_multiplicative: bool


@dataclasses.dataclass(frozen=True)
class Algebra:
    """One algebra: what ``get`` gives.

    >>> from quatrain import algebra
    >>> q = algebra.get("quaternion")
    >>> q.rank, q.properties.associative, q.properties.commutative
    (8, True, False)
    >>> q.table[1, 3, 2]  # i j = k
    tensor(1., dtype=torch.float64)
    """

    name: str
    #: dimension
    n: int
    #: True where the factors are better than the trivial ones, of rank nnz(A)
    has_fast_factors: bool
    #: 16 hexadecimal digits over n and the table: stored beside weights, checked when they are loaded
    hash: str

    @property
    def table(self) -> Tensor:
        """The structure tensor A (n, n, n), float64: A[i, a, b] is the coefficient of e_a in e_i e_b."""
        with _disable_current_modes():  # an algebra's numbers exist under FakeTensorMode, too
            return _ops.algebra_table(self.name)

    @property
    def factors(self) -> tuple[Tensor, Tensor, Tensor]:
        """U, V, W, each (n, R), float64: A[i, a, b] = sum_r U[i, r] W[a, r] V[b, r]."""
        with _disable_current_modes():
            U, V, W = _ops.algebra_factors(self.name)
        return U, V, W

    @property
    def rank(self) -> int:
        """R of the factors: products that one multiplication takes."""
        return self.factors[0].size(1)

    @property
    def conjugation(self) -> list[float]:
        """Signs (n values, +-1) of the conjugation x -> sum_c sign_c x_c e_c."""
        return _ops.algebra_conjugation(self.name)

    @property
    def properties(self) -> Properties:
        return Properties(*_ops.algebra_properties(self.name))


def get(name: str) -> Algebra:
    """The algebra of a name or signature: ``quaternion``, ``octonion``, ``clifford(2,1,0)``, ``cyclic(5)`` ...

    Raises ValueError where there is none; the message names a known one that is near.
    """
    return Algebra(*_ops.algebra_describe(name))


def names() -> list[str]:
    """The names of all algebras that are listed: the built-in ones and the added ones, sorted by n and name."""
    return list(_ops.algebra_names())


def add(
    name: str,
    table: Tensor | Sequence[Sequence[Sequence[float]]],
    factors: Sequence[Tensor] | None = None,
    conjugation: Sequence[float] | None = None,
) -> Algebra:
    """Adds an algebra of your own.

    ``table`` is A (n, n, n), n up to 64; ``factors`` U, V, W (n, R) are checked against it; ``conjugation`` (n signs)
    is (1, -1, ..., -1) by default. Adding the same once more does no harm.

    Raises ValueError where the name is no identifier, is reserved, or is taken by another table or conjugation; where
    the table is not of n^3 finite real numbers, n from 1 to 64, the largest of a size from 1e-6 to 1e6; where factors
    miss it by more than 1e-12 of that; and where the conjugation is not n signs.

    >>> from quatrain import algebra
    >>> algebra.add("swap", [[[1, 0], [0, 1]], [[0, 1], [1, 0]]]).properties.commutative
    True
    """
    if torch.as_tensor(table, device="cpu").is_complex():  # torch would drop the imaginary parts
        raise ValueError(f"algebra {name}: the table must be of real numbers, got complex ones")
    _ops.algebra_add(name, torch.as_tensor(table, dtype=torch.float64, device="cpu"), list(factors or ()), list(conjugation or ()))
    return get(name)


def add_from_file(path: str | os.PathLike[str]) -> Algebra:
    """Reads an algebra from a ``.json`` or ``.toml`` file (docs/algebras.md) and adds it.

    Raises ValueError, which names the file, where it cannot be read, ends otherwise, lacks a key or has one that is
    unknown, and for what ``add`` refuses.
    """
    return get(_ops.algebra_add_from_file(os.fspath(path)))


def add_from_weights(path: str | os.PathLike[str]) -> None:
    """Adds the algebras of a file of weights that this process does not know; C++'s ``nn::add_algebras``.

    So a model over a table of your own can be built before its weights are loaded. Raises RuntimeError, which names the
    file, where it cannot be read, or a name is taken by another table.
    """
    _ops.add_algebras(os.fspath(path))


@dataclasses.dataclass(frozen=True)
class Spec:
    """What a layer multiplies with; written as one string.

    ``quaternion`` is a fixed algebra, ``phm(4)`` a structure tensor A that is learned from a random start (PHM),
    ``phm(quaternion)`` one that is learned from a table, ``wkp(4)`` one with a learned weight for each summand (PHYDI),
    ``phm(4, trained_rank=6)`` one whose factors are what is learned, ``real`` the real layer. ``Spec.parse`` reads the notation, ``str()`` writes it.
    """

    n: int
    #: A is a parameter
    learned: bool
    #: summands carry learned weights (WKP)
    weighted: bool
    #: where a learned A starts: random, table, identity
    start: str
    #: the fixed algebra, or the one a learned A starts from; empty for random, identity
    name: str
    text: str
    #: R of the factors that are learned in A's place; 0: A itself is
    trained_rank: int = 0

    @classmethod
    def parse(cls, text: str | Spec) -> Spec:
        """Reads the notation. Raises ValueError with one sentence where it is wrong."""
        if isinstance(text, Spec):
            return text
        if not isinstance(text, str):
            raise TypeError(f"algebra must be a text such as 'quaternion' or 'phm(4)', got {text!r}")
        return cls(*_ops.algebra_parse(text))

    def __str__(self) -> str:
        return self.text

    @property
    def learns_structure(self) -> bool:
        """A, or its factors, are a parameter; the real layer has none to learn."""
        return self.learned and self.n > 1

    @property
    def operand(self) -> str:
        """What operators take: a fixed algebra's name, ``learned`` or ``factored``."""
        if self.learns_structure:
            return "factored" if self.trained_rank else "learned"
        return "real" if self.learned else self.name

    @property
    def identity(self) -> str:
        """What is stored beside weights: the notation of what is learned, the name and the hash of a fixed algebra."""
        return self.text if self.learned else f"{self.name} {get(self.name).hash}"

    @classmethod
    def of_identity(cls, identity: str) -> Spec:
        """The algebra of weights with this ``identity``. Raises ValueError where there is none of its name."""
        return cls.parse(identity if identity.endswith(")") else identity.partition(" ")[0])

    def is_same(self, identity: str) -> bool:
        """Whether weights with this ``identity`` are of this algebra.

        A learned tensor is stored itself, so where it started does not matter; a fixed one is its table, whatever its name.
        """
        if identity.endswith(")") != self.learned:
            return False
        if self.learned:
            return identity.startswith("wkp(") == self.weighted
        return identity.rpartition(" ")[2] == self.identity.rpartition(" ")[2]
