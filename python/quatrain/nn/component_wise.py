"""Split activations, dropout and layer norm over hypercomplex numbers."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .. import ops
from . import _check


class Activation(nn.Module):
    """A split activation: a real function applied to every component (QRNN (7)). Shape: any -> the same.

    Args:
        name: one of ``quatrain.ops.ACTIVATIONS``.

    >>> import torch, quatrain
    >>> quatrain.nn.Activation("relu")(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        _check.choice("activation", name, ops.ACTIVATIONS)
        self.name = name

    def forward(self, input: Tensor) -> Tensor:
        return input if self.name == "identity" else ops.split_activation(input, self.name)

    def extra_repr(self) -> str:
        return self.name


def dropout(x: Tensor, p: float, training: bool, n: int = 1, per_unit: bool = False) -> Tensor:
    """Dropout of (..., n m), scaled by 1/(1 - p); the identity where ``training`` is false.

    Raises ValueError where p is not from 0 to 1, RuntimeError where n does not divide the last axis.
    """
    _check.probability("dropout", "p", p)
    return ops.hypercomplex_dropout(x, p, training, n, per_unit) if training and p != 0 else x


class Dropout(nn.Module):
    """Dropout of hypercomplex numbers. Shape: (..., n m) -> the same.

    Args:
        p: probability of dropping, in [0, 1].
        n: dimension of the hypercomplex numbers on the last axis; used by ``per_unit``.
        per_unit: drops whole hypercomplex units (all n components together) instead of single elements.

    >>> import torch, quatrain
    >>> y = quatrain.nn.Dropout(0.5, n=4, per_unit=True)(torch.ones(100, 4))
    >>> bool((y.count_nonzero(-1) % 4 == 0).all())
    True
    """

    def __init__(self, p: float = 0.5, n: int = 1, per_unit: bool = False) -> None:
        super().__init__()
        _check.probability("Dropout", "p", p)
        _check.at_least_one("Dropout", "n", n)
        self.p, self.n, self.per_unit = p, n, per_unit

    def forward(self, input: Tensor) -> Tensor:
        return dropout(input, self.p, self.training, self.n, self.per_unit)

    def extra_repr(self) -> str:
        return f"p={self.p}" + (f", per_unit, n={self.n}" if self.per_unit else "")


class LayerNorm(nn.Module):
    """Layer norm over the last axis: over all components together (the default), or per component.

    Args:
        width: size of the last axis.
        n: number of components on it.
        per_component: each component is normalised by itself, over its width/n values.
        eps: added to the variance; a finite number that is at least 0.

    Parameters: ``weight`` and ``bias``, both (width). Shape: (..., width) -> the same.

    Raises:
        ValueError: n does not divide the width, or a number is out of range.

    >>> import torch, quatrain
    >>> quatrain.nn.LayerNorm(8, n=4, per_component=True)(torch.randn(3, 8)).shape
    torch.Size([3, 8])
    """

    def __init__(
        self,
        width: int,
        n: int = 1,
        per_component: bool = False,
        eps: float = 1e-5,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        _check.at_least_one("LayerNorm", "n", n)
        _check.divisible("LayerNorm", "width", width, n if per_component else 1)
        _check.at_least_zero("LayerNorm", "eps", eps)
        self.width, self.n, self.per_component, self.eps = width, n, per_component, eps
        self.weight = nn.Parameter(torch.empty(width, device=device, dtype=dtype))
        self.bias = nn.Parameter(torch.empty(width, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """weight one, bias zero."""
        with torch.no_grad():
            self.weight.fill_(1)
            self.bias.zero_()

    def forward(self, input: Tensor) -> Tensor:
        return ops.hypercomplex_layer_norm(input, self.weight, self.bias, self.n if self.per_component else 1, self.eps)

    def extra_repr(self) -> str:
        return f"{self.width}" + (f", per_component, n={self.n}" if self.per_component else "")
