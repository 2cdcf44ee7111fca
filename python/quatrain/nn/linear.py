"""The hypercomplex linear layer."""

from __future__ import annotations

import copy
from typing import Any, Callable, Sequence

import torch
from torch import Tensor, nn

from .. import ops
from ..algebra import Spec
from ..init import INITIALISERS
from . import _check

WAYS = ("auto", "factored", "mixed", "materialised")

_linear = torch.ops.quatrain.linear.default


class Linear(nn.Module):
    r"""y = H x + b with H = sum_i A_i (x) S_i (PHM (3.2)).

    The left Hamilton product W * x at the quaternions, PHM's layer where A is learned, WKP's H = sum_i w_i A_i (x) S_i
    where its summands are weighted, a real layer at n = 1. It holds 1/n of the real layer's weights.

    Args:
        in_features: d, size of the input's last axis; n must divide it.
        out_features: k, size of the output's last axis; n must divide it.
        algebra: what the layer multiplies with: ``real``, ``quaternion``, ``phm(4)``, ``phm(quaternion)``, ``wkp(4)`` ...
        bias: whether b is learned.
        initialiser: one of ``quatrain.init.INITIALISERS``.
        way: how the map is evaluated; the planner chooses by default.

    Parameters: ``A`` (n, n, n) where it is learned and n > 1; in its place ``factors`` (3, n, R), the U, V, W of
    A[i, a, b] = sum_r U[i, r] W[a, r] V[b, r], where the algebra says ``trained_rank=R``; ``w`` (n) of WKP; ``S``
    (n, k/n, d/n); ``bias`` (k), zero at start.

    Shape: (..., d) -> (..., k), components concatenated: [r .. | i .. | j .. | k ..].

    Raises:
        ValueError: n does not divide a size (the message names the nearest sizes that it divides), or a name is unknown.

    >>> import torch, quatrain
    >>> layer = quatrain.nn.Linear(8, 12, algebra="quaternion")
    >>> layer(torch.randn(5, 8)).shape
    torch.Size([5, 12])
    >>> layer.S.shape, layer.weight.shape
    (torch.Size([4, 3, 2]), torch.Size([12, 8]))
    """

    in_features: int
    out_features: int
    spec: Spec
    A: Tensor | None
    factors: Tensor | None
    w: Tensor | None
    S: Tensor
    bias: Tensor | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        algebra: str | Spec = "real",
        bias: bool = True,
        initialiser: str = "glorot",
        way: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.spec = spec = Spec.parse(algebra)
        _check.divisible("linear", "in_features", in_features, spec.n)
        _check.divisible("linear", "out_features", out_features, spec.n)
        _check.choice("initialiser", initialiser, INITIALISERS)
        _check.choice("way", way, WAYS)
        self.in_features, self.out_features = in_features, out_features
        self.initialiser, self.way = initialiser, way
        self._algebra = spec.operand
        # The A that factors were computed for, U, V and W; outside the state dict, and ignored when A differs.
        self._factored: tuple[Tensor, ...] | None = None
        n = spec.n

        def parameter(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.empty(shape, device=device, dtype=dtype))

        trained = spec.learns_structure and spec.trained_rank > 0
        self.register_parameter("A", parameter(n, n, n) if spec.learns_structure and not trained else None)
        self.register_parameter("factors", parameter(3, n, spec.trained_rank) if trained else None)
        self.register_parameter("w", parameter(n) if spec.learns_structure and spec.weighted else None)
        self.S = parameter(n, out_features // n, in_features // n)
        self.register_parameter("bias", parameter(out_features) if bias else None)
        self.reset_parameters()

    @property
    def algebra(self) -> str:
        """The notation of what the layer multiplies with."""
        return self.spec.text

    def reset_parameters(self) -> None:
        """Draws S and A anew by the initialiser, as the C++ layer does from the same seed; bias zero, w one."""
        with torch.no_grad():
            structure = self.A if self.factors is None else self.factors
            torch.ops.quatrain.initialise_layer_(self.S, structure, self.spec.text, self.initialiser)
            if self.w is not None:
                self.w.fill_(1)
            if self.bias is not None:
                self.bias.zero_()

    def forward(self, x: Tensor) -> Tensor:
        # nn.Module's search for a parameter costs half a microsecond each: taken from its dictionary, unless one is
        # computed (parametrized, pruned).
        held: dict[str, Any] = self._parameters
        try:
            S, A, w, factors, bias = held["S"], held["A"], held["w"], held["factors"], held["bias"]
        except KeyError:
            S, A, w, factors, bias = self.S, self.A, self.w, self.factors, self.bias
        if A is None:
            # Only what stays the same tensor from call to call is worth preparing.
            constant = not self.training and isinstance(S, nn.Parameter)
            return _linear(x, S, bias, self._algebra, factors, (), self.way, None, constant)
        if self.training:
            if w is not None:  # w_i scales A_i (x) S_i: taken on S, A is what the operator can follow from step to step
                S = w.view(-1, 1, 1) * S
            return _linear(x, S, bias, "learned", A, (), self.way, None, False)
        effective = A if w is None else w.view(-1, 1, 1) * A
        constant = isinstance(S, nn.Parameter) and w is None
        found: Sequence[Tensor] = ()
        if self._factored is not None and not torch.compiler.is_compiling() and self._fits(effective):
            made_for, *found = self._factored
            if w is not None and not effective.requires_grad:
                effective, constant = made_for, isinstance(S, nn.Parameter)
        return _linear(x, S, bias, "learned", effective, found, self.way, None, constant)

    @property
    def weight(self) -> Tensor:
        """H (k, d), differentiable: for code that looks at a layer's matrix. Slow: it is built in every call."""
        return self.matrix()

    def matrix(self) -> Tensor:
        """H (k, d) = sum_i A_i (x) S_i, differentiable."""
        structure = self._effective_structure() if self.factors is None else self.factors
        return ops.materialise(self.S, self._algebra, structure)

    def factorize(self, rank: int = 0, tolerance: float = 1e-6, starts: int = 6, seed: int = 0) -> bool:
        """Computes the factors of a learned A, so that eval mode may take the factored way; True where they are sound.

        They stay outside the state dict, follow ``deepcopy`` and ``to``, and are ignored from the moment that A (or w)
        differs from what they were computed for. Always True without work where A is not learned.
        """
        return self.A is None or self.find_factors(rank, tolerance, starts, seed).sound

    def find_factors(self, rank: int = 0, tolerance: float = 1e-6, starts: int = 6, seed: int = 0) -> ops.Decomposition:
        """What ``factorize`` found, sound or not. Raises ValueError where A is not learned."""
        structure = self._effective_structure()
        if structure is None:
            raise ValueError(f"linear: factors are of a learned A, got algebra = {self.spec}")
        structure = structure.detach().clone()
        found = ops.decompose(structure, rank, tolerance, starts, seed)
        self._factored = (structure, *found.factors) if found.sound else None
        self._drop_prepared()
        return found

    def has_factors(self) -> bool:
        """True where factors are held and still fit A."""
        structure = self._effective_structure()
        return structure is not None and self._fits(structure)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, algebra={self.spec}, "
            f"bias={self.bias is not None}"
        )

    def _effective_structure(self) -> Tensor | None:
        return self.A if self.A is None or self.w is None else self.w.view(-1, 1, 1) * self.A

    def _fits(self, structure: Tensor) -> bool:
        if self._factored is None:
            return False
        made_for = self._factored[0]
        # The usual case, without a call through the dispatcher.
        if structure.dtype is made_for.dtype and structure.device == made_for.device and torch.equal(structure, made_for):
            return True
        return ops.structure_fits(structure, made_for)

    # Everything that changes S without autograd's knowledge forgets what the operator prepared from it.

    def _drop_prepared(self) -> None:
        S = self._parameters.get("S")
        if S is not None:
            ops.drop_prepared(S)

    def __setattr__(self, name: str, value: Any) -> None:
        # FSDP2 gathers S into the same memory in every forward, unseen by versions; it assigns what it gathered.
        super().__setattr__(name, value)
        if name == "S":
            self._drop_prepared()

    def train(self, mode: bool = True) -> Linear:
        super().train(mode)
        self._drop_prepared()
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Linear:
        self._drop_prepared()
        super()._apply(fn, recurse)
        if self._factored is not None and self._factored[0].device != self.S.device:
            self._factored = tuple(t.to(self.S.device) for t in self._factored)
        self._drop_prepared()
        return self

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        self._drop_prepared()
        super()._load_from_state_dict(*args, **kwargs)
        self._drop_prepared()

    def __deepcopy__(self, memo: dict[int, Any]) -> Linear:
        result = self.__class__.__new__(self.__class__)
        memo[id(self)] = result
        result.__dict__ = copy.deepcopy(self.__dict__, memo)
        mine, copied = self._parameters.get("A"), result._parameters.get("A")
        if mine is not None and copied is not None and not mine.is_meta:
            ops.set_structure_state(copied, ops.structure_state(mine))
        return result
