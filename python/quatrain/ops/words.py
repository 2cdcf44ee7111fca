"""Texts of other lengths: their words as rows, without padding."""

from __future__ import annotations

import torch
from torch import Tensor

from .. import _library as _library

_ops = torch.ops.quatrain


def masked_mean(x: Tensor, padding: Tensor) -> Tensor:
    """The mean over the positions that are not padding: x (B, L, width), padding (B, L) bool -> (B, width).

    Padding is true where there is no word. The mean is zero where all is padding.
    """
    return _ops.masked_mean(x, padding)


def index_of_words(padding: Tensor) -> Tensor | None:
    """Where the words of a batch are, (words) int64, counted through its places text by text; padding (B, L) bool.

    None where leaving padding out does not pay, because it is less than a quarter of the places or on another device than
    the CPU, which would be waited for; and where it cannot be done: in traced programs, under function transforms, and for
    subclasses of tensors.
    """
    index: Tensor | None = _ops.index_of_words(padding)  # an undefined tensor is None
    return index


def rows_of_words(places: Tensor, index: Tensor) -> Tensor:
    """places (B, L, ...), index (words), no place twice -> the words as rows (1, words, ...). Differentiable to any order."""
    return _ops.rows_of_words(places, index)


def places_of_words(rows: Tensor, index: Tensor, texts: int, length: int) -> Tensor:
    """rows (1, words, ...), index (words), no place twice -> (B, L, ...), zeros where there is no word.

    Differentiable to any order.
    """
    return _ops.places_of_words(rows, index, texts, length)
