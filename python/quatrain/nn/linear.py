"""The hypercomplex linear layer."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ..algebra import Spec
from ..init import Initialiser
from . import _check
from ._computed import computed
from .weight import WAYS, OneWeightLayer, Way

_linear = torch.ops.quatrain.linear.default


class Linear(OneWeightLayer):
    r"""y = H x + b with H = sum_i A_i (x) S_i (PHM (3.2)).

    The left Hamilton product W * x at the quaternions, PHM's layer where A is learned, WKP's H = sum_i w_i A_i (x) S_i
    where its summands are weighted, a real layer at n = 1. It holds 1/n of the real layer's weights.

    Args:
        in_features: d, size of the input's last axis; n must divide it.
        out_features: k, size of the output's last axis; n must divide it.
        bias: whether b is learned. Up to here, and in ``device`` and ``dtype``, the arguments are torch's.
        algebra: what the layer multiplies with: ``quaternion``, ``phm(4)``, ``phm(quaternion)``, ``wkp(4)``, ``real`` ...
        initialiser: one of ``quatrain.init.INITIALISERS``.
        way: how the map is evaluated; the planner chooses by default.
        maps: how many maps lie beside each other in the output, 3 where they are Q, K and V: the weights are drawn with the
            fans of one.

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
    w: Tensor | None
    S: Tensor
    bias: Tensor | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        algebra: str | Spec = "quaternion",
        initialiser: Initialiser = "glorot",
        way: Way = "auto",
        maps: int = 1,
    ) -> None:
        super().__init__()
        _check.flag("linear", "bias", bias)
        spec = Spec.parse(algebra)
        _check.divisible("linear", "in_features", in_features, spec.n)
        _check.at_least_one("linear", "maps", maps)
        _check.divisible("linear", "out_features", out_features, spec.n * maps, "n * maps" if maps > 1 else "n")
        _check.choice("way", way, WAYS)
        self.in_features, self.out_features = in_features, out_features
        self.initialiser, self.way, self.maps = initialiser, way, maps
        self._weight = self.add_weight(
            spec, in_features, out_features, maps=maps, initialiser=initialiser, device=device, dtype=dtype
        )
        self.register_parameter(
            "bias", nn.Parameter(torch.zeros(out_features, device=device, dtype=dtype)) if bias else None
        )

    def reset_parameters(self) -> None:
        """Draws S and A again by the initialiser, as the C++ layer does from the same seed; sets bias to zero, w to one."""
        self._weight.draw(self)
        if self.bias is not None:
            with torch.no_grad():
                self.bias.zero_()

    def forward(self, input: Tensor) -> Tensor:
        S, algebra, A, factors, constant = self._weight.operands(self)
        held = self._parameters
        bias = held["bias"] if "bias" in held else self.bias
        return _linear(input, S, bias, algebra, A, factors, self.way, None, constant)

    @property
    def weight(self) -> Tensor:
        """H (k, d), differentiable: for code that looks at a layer's matrix. Slow: it is built in every call.

        Writing into it is an error, since it would change nothing.
        """
        return computed(self.matrix())

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "weight":
            raise AttributeError(
                "Linear: weight is the matrix H, computed from S and A, and cannot be set: write into S, or take "
                "quatrain.convert, which gives a layer the nearest weights"
            )
        super().__setattr__(name, value)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, algebra={self.spec}, "
            f"bias={self.bias is not None}"
        )
