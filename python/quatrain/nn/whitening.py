"""Batch norm that whitens the components of hypercomplex numbers."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .. import ops
from . import _check


class WhiteningNorm(nn.Module):
    """Batch norm that whitens the n components of each unit together (Gaudet and Maida 2018, for any n).

    Each unit gets the mean 0 and the covariance I over batch and pixels, then a learned symmetric matrix and a shift. At n = 1
    it is torch's batch norm of the same eps.

    Args:
        channels: size of axis 1; n divides it.
        n: number of components on it.
        eps: added to the variances; a finite number that is at least 0.
        momentum: the share of a batch in the running statistics, from 0 to 1; None, as torch takes it, is refused.

    Parameters: ``weight`` (n (n + 1) / 2, channels / n), the lower triangles of the symmetric matrices row by row, I /
    sqrt(n) at the start, so that a number has the mean square 1; ``bias`` (channels), zero. Buffers: ``running_mean``
    (channels), ``running_covariance`` (n, n, channels / n). Shape: (B, channels, ...) -> the same, with any number of
    spatial axes. Computed in float32 at least.

    Raises:
        ValueError: n does not divide the channels, or a number is out of range.
        RuntimeError: in a call, fewer than 2 values of each channel while training; as ``torch.linalg.LinAlgError`` a
            covariance without a Cholesky factor.

    >>> import torch, quatrain
    >>> y = quatrain.nn.WhiteningNorm(8)(torch.randn(32, 8, 5, 5) @ torch.randn(5, 5))
    >>> numbers = 2 * y.transpose(0, 1).reshape(4, 2, -1)[:, 0]  # of the first unit
    >>> torch.allclose(numbers.cov(), torch.eye(4), atol=0.01)
    True
    """

    running_mean: Tensor
    running_covariance: Tensor

    def __init__(
        self,
        channels: int,
        n: int = 4,
        eps: float = 1e-4,
        momentum: float = 0.1,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        _check.whole("WhiteningNorm", "n", n)
        if not 1 <= n <= 64:
            raise ValueError(f"WhiteningNorm: n must be between 1 and 64, got {n}")
        _check.divisible("WhiteningNorm", "channels", channels, n)
        _check.at_least_zero("WhiteningNorm", "eps", eps)
        _check.number("WhiteningNorm", "momentum", momentum, " (there is no average over all batches)" if momentum is None else "")
        _check.probability("WhiteningNorm", "momentum", momentum)
        self.channels, self.n, self.eps, self.momentum = channels, n, eps, momentum
        units = channels // n
        self.weight = nn.Parameter(torch.empty(n * (n + 1) // 2, units, device=device, dtype=dtype))
        self.bias = nn.Parameter(torch.empty(channels, device=device, dtype=dtype))
        self.register_buffer("running_mean", torch.empty(channels, device=device, dtype=dtype))
        self.register_buffer("running_covariance", torch.empty(n, n, units, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """weight I / sqrt(n), bias zero, and the running statistics as ``reset_running_stats`` does."""
        self.reset_running_stats()
        with torch.no_grad():
            self.weight.zero_()
            for row in range(self.n):
                self.weight[row * (row + 3) // 2] = self.n**-0.5
            self.bias.zero_()

    def reset_running_stats(self) -> None:
        """mean zero, covariance I."""
        self.running_mean.zero_()
        self.running_covariance.zero_().diagonal().fill_(1)

    def forward(self, input: Tensor) -> Tensor:
        return ops.whitening_norm(
            input,
            self.weight,
            self.bias,
            self.running_mean,
            self.running_covariance,
            self.n,
            self.training,
            self.momentum,
            self.eps,
        )

    def extra_repr(self) -> str:
        return f"{self.channels}, n={self.n}, eps={self.eps}, momentum={self.momentum}"
