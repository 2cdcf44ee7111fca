"""The wheel's dependencies: the series of torch that it is built against, as C++ libraries of torch fit one series only."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any


def dynamic_metadata(field: str, settings: dict[str, Any] | None = None) -> list[str]:
    try:
        series = ".".join(version("torch").split(".")[:2])
    except PackageNotFoundError:
        raise SystemExit(
            "quatrain: this Python has no torch to build against: install torch, then pip install --no-build-isolation"
        ) from None
    return [f"torch=={series}.*", "tomli>=2; python_version < '3.11'"]
