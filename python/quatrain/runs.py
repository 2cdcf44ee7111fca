"""Runs of the C++ trainer: the model again, from its recipe and weights."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from pathlib import Path
from typing import Any

import torch

from .models import TextClassifier
from .weights import load_model

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["Run", "load", "write_tensorboard"]

#: A model keeps at least so many positions, as the program's does.
_LEAST_POSITIONS = 512
#: Keys of a recipe's [model] that are arguments of the model.
_MODEL_KEYS = (
    "width",
    "heads",
    "feed_forward",
    "layers",
    "dropout",
    "dropout_per_unit",
    "algebra",
    "scope",
    "norm",
    "printed",
    "norm_per_component",
    "attention",
    "packed",
    "split",
    "activation",
    "initialiser",
    "embedding_scale",
)


@dataclasses.dataclass(frozen=True)
class Run:
    """What ``load`` gives."""

    #: in eval mode
    model: TextClassifier
    #: the complete recipe, as it was written into the run
    recipe: dict[str, Any]
    #: words by their numbers; 0 is the padding, 1 an unknown word
    vocabulary: list[str]
    #: names of the classes
    labels: list[str]


def _checkpoint(run: Path) -> Path:
    """The best state's folder; its former one where the program was stopped between two renames."""
    for name in ("best", "best.old"):
        if (run / name).is_dir():
            return run / name
    raise FileNotFoundError(f"load: '{run}' holds no 'best': name the folder of a run of quatrain train")


def load(run: str | os.PathLike[str]) -> Run:
    """Rebuilds the model of a run of ``quatrain train`` from its recipe, with its best weights.

    It gives the same logits as the program. Raises FileNotFoundError where the folder is no run, RuntimeError where the
    weights do not fit the recipe.

    ::

        run = quatrain.load("runs/agreement-2026-01-31-120000")
        words = {word: number for number, word in enumerate(run.vocabulary)}
        tokens = torch.tensor([[words.get(word, 1) for word in "the keys to the cabinet".split()]])
        print(run.labels[int(run.model(tokens).argmax())])
    """
    folder = _checkpoint(Path(run))
    weights = os.fspath(folder / "model.safetensors")
    torch.ops.quatrain.add_algebras(weights)  # before the model is built, which may be over one of them
    recipe = tomllib.loads((folder / "recipe.toml").read_text(encoding="utf-8"))
    vocabulary = (folder / "vocabulary.txt").read_text(encoding="utf-8").split("\n")[:-1]
    labels = (folder / "labels.txt").read_text(encoding="utf-8").split("\n")[:-1]
    task, options = recipe.get("task", {}), recipe.get("model", {})
    pretrained_width = 0
    if task.get("vectors"):
        names, values, _ = torch.ops.quatrain.read_safetensors(weights)
        pretrained_width = dict(zip(names, values))["embedding.weight"].size(1)
    model = TextClassifier(
        len(vocabulary),
        len(labels),
        max_length=max(_LEAST_POSITIONS, int(task.get("max_length", 0))),
        pretrained_width=pretrained_width,
        freeze_pretrained=bool(task.get("freeze_vectors", False)),
        **{key: options[key] for key in _MODEL_KEYS if key in options},
    )
    load_model(model, weights)
    return Run(model.eval(), recipe, vocabulary, labels)


def write_tensorboard(run: str | os.PathLike[str], folder: str | os.PathLike[str]) -> int:
    """Writes the metrics of a run as TensorBoard's event files; returns the number of points.

    The training loss, learning rate, gradient norm and examples a second come under ``training/``, the dev set's figures
    under ``dev/``. Needs the package ``tensorboard``; an existing folder gets one event file more. Raises
    FileNotFoundError where the run has no metrics.

    ::

        quatrain.write_tensorboard("runs/mine", "tensorboard/mine")  # then: tensorboard --logdir tensorboard
    """
    from torch.utils.tensorboard import SummaryWriter

    metrics = Path(run) / "metrics.jsonl"
    if not metrics.is_file():
        raise FileNotFoundError(f"write_tensorboard: '{run}' holds no metrics.jsonl: name the folder of a run")
    points = 0
    with metrics.open(encoding="utf-8") as lines, SummaryWriter(os.fspath(folder)) as writer:
        for line in lines:
            if not line.endswith("\n"):
                break  # it is being written
            record = json.loads(line)
            step, kind = record.pop("step"), record.pop("kind")
            group = {"training": "training", "evaluation": record.pop("split", "dev")}.get(kind)
            if group is None:
                continue
            for name, value in record.get("figures", record).items():
                if isinstance(value, (int, float)) and name != "epoch":
                    writer.add_scalar(f"{group}/{name}", value, step)
                    points += 1
    return points
