"""Where a token stands, as sinusoids."""

from __future__ import annotations

from typing import Callable

import torch
from torch import Tensor, nn


class Sinusoids(nn.Module):
    """Vectors of places, sines and then cosines of geometric wave lengths. They are no part of a state dict, since they follow from
    the sizes.

    Args:
        max_length: how many are kept; of places further on they are computed in each call.
        width: of a vector.

    Shape: (first, length, like) -> (length, width), on the device and in the type of ``like``.
    """

    kept: Tensor

    def __init__(self, max_length: int, width: int, device: torch.device | str | None = None) -> None:
        super().__init__()
        self.max_length, self.width = max_length, width
        self.register_buffer("kept", self._of(max_length).to(device), persistent=False)

    def _of(self, length: int) -> Tensor:
        sinusoids: Tensor = torch.ops.quatrain.sinusoidal_positions(length, self.width)
        return sinusoids

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Sinusoids:
        super()._apply(fn, recurse)
        if not self.kept.is_meta:  # to_empty left them empty, a narrow type rounded them
            self.kept = self._of(self.max_length).to(self.kept.device)
        return self

    def forward(self, first: int, length: int, like: Tensor) -> Tensor:
        end = first + length
        # They are elsewhere in a network of the meta device to which weights were assigned.
        kept = end <= self.max_length and self.kept.device == like.device
        return (self.kept if kept else self._of(end))[first:end].to(like)

    def extra_repr(self) -> str:
        return f"{self.max_length}, {self.width}"
