"""Times of several calls that take turns in one process, so that whatever else the machine does meets them alike."""

from __future__ import annotations

import dataclasses
import statistics
import time
from typing import Callable, Sequence


@dataclasses.dataclass(frozen=True)
class Timing:
    """Seconds of a call: the median over the rounds, and their quartiles."""

    median: float
    low: float
    high: float

    @property
    def spread(self) -> float:
        """The quartiles' distance as a share of the median."""
        return (self.high - self.low) / self.median


def summary(times: Sequence[float]) -> Timing:
    low, median, high = statistics.quantiles(times, n=4) if len(times) > 1 else [times[0]] * 3
    return Timing(median, low, high)


def measured(call: Callable[[], object], times: int) -> float:
    """Seconds of one of ``times`` calls, after one that is not counted and finds the caches as the others left them."""
    call()
    start = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - start) / times


def interleaved(
    calls: Sequence[Callable[[], object]], seconds: float, turn: float = 1e-3, least: int = 7
) -> list[Timing]:
    """Each of ``calls`` repeated for about ``turn`` seconds, in turns, for ``seconds`` in all and ``least`` rounds."""
    for call in calls:
        for _ in range(3):
            call()
    repeats = [max(1, min(1000, round(turn / measured(call, 1)))) for call in calls]
    times: list[list[float]] = [[] for _ in calls]
    start, rounds = time.perf_counter(), 0
    while rounds < least or time.perf_counter() - start < seconds:
        for i in range(len(calls)):
            one = (i + rounds) % len(calls)
            times[one].append(measured(calls[one], repeats[one]))
        rounds += 1
    return [summary(list_) for list_ in times]
