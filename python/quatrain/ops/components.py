"""Operators that treat components alone or multiply element by element."""

from __future__ import annotations

import torch
from torch import Tensor

from .. import _library as _library

_ops = torch.ops.quatrain

#: The names of the split activations.
ACTIVATIONS: tuple[str, ...] = tuple(_ops.activation_names())


def hamilton_product(a: Tensor, b: Tensor, algebra: str) -> Tensor:
    """Product a * b of two tensors of m hypercomplex numbers, number by number (QNLP (1)).

    (a * b)_c = sum_{i,j} A[i, c, j] a_i b_j. (..., n m) and (..., n m), broadcast on the leading axes, components
    concatenated on the last axis.

    >>> import torch, quatrain
    >>> i, j = torch.tensor([0., 1, 0, 0]), torch.tensor([0., 0, 1, 0])
    >>> quatrain.ops.hamilton_product(i, j, "quaternion")
    tensor([0., 0., 0., 1.])
    """
    return _ops.hamilton_product(a, b, algebra)


def hypercomplex_conjugate(a: Tensor, algebra: str) -> Tensor:
    """The conjugate, component by component: (..., n m) -> (..., n m)."""
    return _ops.hypercomplex_conjugate(a, algebra)


def hypercomplex_norm(a: Tensor, algebra: str) -> Tensor:
    """The Euclidean norm over the components: (..., n m) -> (..., m)."""
    return _ops.hypercomplex_norm(a, algebra)


def hypercomplex_matching(a: Tensor, b: Tensor, algebra: str, n: int) -> Tensor:
    """What a comparison of a and b sees: (..., n m) twice -> (..., n 4 m), in each component a, b, a * b and a - b.

    The product is that of an ``algebra`` of ``n`` dimensions (64 at most), or element by element where it is real.
    """
    return _ops.hypercomplex_matching(a, b, algebra, n)


def split_activation(x: Tensor, name: str) -> Tensor:
    """A real function applied to every component (QRNN (7)); ``ACTIVATIONS`` are its names. Any shape -> the same."""
    return _ops.split_activation(x, name)


def hypercomplex_dropout(x: Tensor, p: float, training: bool, n: int = 1, per_unit: bool = False) -> Tensor:
    """Dropout of (..., n m), scaled by 1/(1 - p): element by element, or ``per_unit``, all n components together.

    The identity where ``training`` is false. Raises ValueError where p is not from 0 to 1.
    """
    return _ops.hypercomplex_dropout(x, p, training, n, per_unit)


def hypercomplex_layer_norm(x: Tensor, weight: Tensor, bias: Tensor, n: int = 1, eps: float = 1e-5) -> Tensor:
    """Layer norm of (..., n m) over the last axis, or per component where n > 1. ``weight``, ``bias``: (n m)."""
    return _ops.hypercomplex_layer_norm(x, weight, bias, n, eps)


def whitening_norm(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    running_mean: Tensor | None,
    running_covariance: Tensor | None,
    n: int,
    training: bool,
    momentum: float = 0.1,
    eps: float = 1e-4,
) -> Tensor:
    """Batch norm that whitens: y = gamma L^-1 (x - mean) + bias, L the Cholesky factor of the covariance of n components.

    ``x``: (B, n c, ...) -> the same. It whitens with the batch's own statistics while ``training``, else with the running
    ones, ``running_mean`` (n c) and ``running_covariance`` (n, n, c), which training moves towards the batch's by
    ``momentum``. ``weight`` (n (n + 1) / 2, c): the lower triangles of the symmetric gamma, row by row. ``bias``: (n c).
    ``eps`` is added to the variances. Computed in float32 at least (Gaudet and Maida 2018).

    Raises RuntimeError while training with fewer than 2 values of each channel, and where one of the running statistics
    is None and the other is not, or both are without training; ``torch.linalg.LinAlgError`` for a covariance without a
    Cholesky factor.
    """
    return _ops.whitening_norm(x, weight, bias, running_mean, running_covariance, n, training, momentum, eps)
