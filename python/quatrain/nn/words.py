"""The words of a padded batch, without the padding between them."""

from __future__ import annotations

import torch
from torch import Tensor

from .. import ops


class Words:
    """The words of a padded batch, without the padding between them.

    Maps, norms and activations treat each word by itself, so they need no padding: they take the words of all texts as
    rows, (1, words, ...). Attention needs each text's words in their places, (B, L, ...). Where less than a quarter of the
    places is padding, going back and forth costs what it saves: the rows are then the places themselves, and both methods
    return what they get. They also do in compiled programs and under ``torch.func``, whose sizes must not hang on values,
    and on other devices than the CPU.

    Args:
        padding: (B, L) bool, true where a place holds no word; None where all do.

    >>> import torch, quatrain
    >>> words = quatrain.nn.Words(torch.tensor([[False, False], [False, True]]))
    >>> rows = words.rows(torch.randn(2, 2, 8))
    >>> rows.shape, words.places(rows).shape
    (torch.Size([1, 3, 8]), torch.Size([2, 2, 8]))
    """

    def __init__(self, padding: Tensor | None = None) -> None:
        self.padding = padding
        self._index = None if padding is None or torch.compiler.is_compiling() else ops.index_of_words(padding)

    @property
    def leaves_out(self) -> bool:
        """True where rows are not the places themselves."""
        return self._index is not None

    def rows(self, places: Tensor) -> Tensor:
        """(B, L, ...) -> (1, words, ...), differentiable to any order.

        Raises ValueError where places do not begin with the padding's sizes.
        """
        if self._index is None or self.padding is None:
            return places
        if places.shape[:2] != self.padding.shape:
            raise ValueError(f"Words: places must begin with the padding's sizes {list(self.padding.shape)}, got {list(places.shape)}")
        return ops.rows_of_words(places, self._index)

    def places(self, rows: Tensor) -> Tensor:
        """(1, words, ...) -> (B, L, ...), zeros where there is no word; differentiable to any order."""
        if self._index is None or self.padding is None:
            return rows
        return ops.places_of_words(rows, self._index, *self.padding.shape)
