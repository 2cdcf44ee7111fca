"""Refusals of a layer's arguments: ValueError with one sentence, as in C++."""

from __future__ import annotations

from typing import Sequence


def divisible(layer: str, argument: str, value: int, divisor: int, text: str = "n") -> None:
    """Refuses a size that is not a positive multiple of ``divisor``; ``text`` says what that is."""
    if value <= 0:
        raise ValueError(f"{layer}: {argument} must be positive, got {value}")
    below = value // divisor * divisor
    if below != value:
        nearest = (f"{below}, " if below else "") + str(below + divisor)
        raise ValueError(f"{layer}: {argument} must be divisible by {text} = {divisor}, got {value} (nearest: {nearest})")


def probability(layer: str, argument: str, p: float) -> None:
    if not 0 <= p <= 1:
        raise ValueError(f"{layer}: {argument} must be between 0 and 1, got {p}")


def choice(what: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise ValueError(f"{what} must be one of {', '.join(known)}; got {value!r}")


def at_least_one(layer: str, argument: str, value: int) -> None:
    if value < 1:
        raise ValueError(f"{layer}: {argument} must be at least 1, got {value}")


def flag(layer: str, argument: str, value: object) -> None:
    """Refuses a value that is not a bool; most often it is an algebra where a flag belongs."""
    if not isinstance(value, bool):
        hint = f" (the algebra is named: algebra={value!r})" if isinstance(value, str) else ""
        raise TypeError(f"{layer}: {argument} must be True or False, got {value!r}{hint}")
