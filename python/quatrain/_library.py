"""Finds and loads the C++ library, whose operators everything else calls."""

from __future__ import annotations

import os
from pathlib import Path

import torch

#: The installed package: lib, include and bin stand beside the Python files.
FOLDER = Path(__file__).resolve().parent


def _find() -> Path:
    given = os.environ.get("QUATRAIN_LIBRARY")
    if given:
        if not Path(given).is_file():
            raise ImportError(f"quatrain: QUATRAIN_LIBRARY names no file: {given}")
        return Path(given).resolve()
    for folder in ("lib", "lib64"):
        if (FOLDER / folder / "libquatrain.so").is_file():
            return FOLDER / folder / "libquatrain.so"
    raise ImportError(
        "quatrain: the package holds no libquatrain.so: install it (pip install --no-build-isolation .), or build it "
        "and let QUATRAIN_LIBRARY name the library"
    )


def _series(text: str) -> str:
    return ".".join(text.split(".")[:2])


def check_torch(built_with: str, found: str) -> None:
    """Raises ImportError where a library built with one torch would run in another: they fit one series only."""
    if _series(built_with) != _series(found):
        raise ImportError(
            f"quatrain was built with torch {_series(built_with)}, but this Python has torch {found}: install torch "
            f"{_series(built_with)}, or build quatrain again with this one (pip install --no-build-isolation quatrain)"
        )


def load() -> Path:
    """Loads the library into torch, once, and says where it lies."""
    path = _find()
    built_with = path.parent / "torch_version.txt"
    if built_with.is_file():
        check_torch(built_with.read_text().strip(), torch.__version__)
    torch.ops.load_library(str(path))
    return path


LIBRARY = load()


def load_training() -> None:
    """Loads the library of the trainer, which ``import quatrain`` does without; once. It stands beside the other."""
    path = LIBRARY.parent / "libquatrain_training.so"
    if not path.is_file():
        raise RuntimeError(f"quatrain: there is no {path.name} beside {LIBRARY}: it was built without the trainer")
    torch.classes.load_library(str(path))


#: Of the library, which is also the package's.
VERSION: str = torch.ops.quatrain.version()
