"""Refusals of a layer's arguments: ValueError with one sentence, as in C++."""

from __future__ import annotations

import math
import numbers
import operator
from typing import Any, Sequence

import torch
from torch import Tensor

from ..algebra import Spec


def whole(layer: str, argument: str, value: Any) -> int:
    if isinstance(value, bool):  # a flag in the place of a number, as where torch has another argument there
        raise TypeError(f"{layer}: {argument} must be an int, got {value}")
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{layer}: {argument} must be an int, got {value!r}") from None


def divisible(layer: str, argument: str, value: int, divisor: int, text: str = "n", way_out: str = "") -> None:
    """Refuses a size that is not a positive multiple of ``divisor``; ``text`` says what that is, ``way_out`` what else to do."""
    whole(layer, argument, value)
    if value <= 0:
        raise ValueError(f"{layer}: {argument} must be positive, got {value}")
    below = value // divisor * divisor
    if below != value:
        nearest = (f"{below}, " if below else "") + str(below + divisor) + (f"; {way_out}" if way_out else "")
        raise ValueError(f"{layer}: {argument} must be divisible by {text} = {divisor}, got {value} (nearest: {nearest})")


def number(layer: str, argument: str, value: Any, hint: str = "") -> None:
    if not isinstance(value, numbers.Real):
        raise TypeError(f"{layer}: {argument} must be a number, got {value!r}{hint}")


def at_least_zero(layer: str, argument: str, value: float) -> None:
    number(layer, argument, value)
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{layer}: {argument} must be a finite number that is at least 0, got {value}")


def probability(layer: str, argument: str, p: float) -> None:
    number(layer, argument, p)
    if not 0 <= p <= 1:
        raise ValueError(f"{layer}: {argument} must be between 0 and 1, got {p}")


def choice(what: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise ValueError(f"{what} must be one of {', '.join(known)}; got {value!r}")


def at_least_one(layer: str, argument: str, value: int) -> None:
    whole(layer, argument, value)
    if value < 1:
        raise ValueError(f"{layer}: {argument} must be at least 1, got {value}")


def _is_algebra(value: object) -> bool:
    try:
        return isinstance(value, str) and Spec.parse(value) is not None
    except ValueError:
        return False


def flag(layer: str, argument: str, value: object) -> None:
    """Refuses a value that is not a bool; most often it is an algebra where a flag belongs."""
    if not isinstance(value, bool):
        hint = f" (the algebra is named: algebra={value!r})" if _is_algebra(value) else ""
        raise TypeError(f"{layer}: {argument} must be True or False, got {value!r}{hint}")


def floating(layer: str, x: object) -> None:
    """Refuses an input that is no tensor of real numbers; integers would be taken for a type that weights should have."""
    if isinstance(x, torch.fx.Proxy):
        raise TypeError(
            f"{layer}: torch.fx goes into this layer, whose path depends on its input's shape (name it in Tracer.is_leaf_module, "
            "or trace what quatrain.materialise makes of the model)"
        )
    if not isinstance(x, Tensor):
        raise TypeError(f"{layer}: input must be a tensor, got {type(x).__name__}")
    if not x.is_floating_point():
        raise TypeError(f"{layer}: input must have a floating-point type, got {x.dtype} (convert it: input.float())")


def state(layer: str, value: object) -> None:
    if value is not None and not isinstance(value, Tensor):
        raise TypeError(f"{layer}: the state must be a tensor h0, got {type(value).__name__}")


def states(layer: str, value: object) -> tuple[Tensor | None, Tensor | None]:
    """The two states of an LSTM."""
    if value is None:
        return None, None
    if not isinstance(value, (tuple, list)) or len(value) != 2 or not all(isinstance(each, Tensor) for each in value):
        got = [type(each).__name__ for each in value] if isinstance(value, (tuple, list)) else type(value).__name__
        raise TypeError(f"{layer}: the state must be a pair of tensors (h0, c0), got {got}")
    return value[0], value[1]
