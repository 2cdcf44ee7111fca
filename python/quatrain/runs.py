"""Runs of the C++ trainer: its models, of every kind, with their weights."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import operator
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.prune import BasePruningMethod

from ._library import load_training
from .algebra import Spec

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["Run", "RunModel", "load", "write_tensorboard"]


class _Part(nn.Module):
    """A part of a model: it holds the parameters under their names in C++, and is trained or evaluated by itself."""

    #: of a hypercomplex layer
    layer_spec: Spec | None = None

    def __init__(self, run: Any, name: str) -> None:
        super().__init__()
        self._run, self._name = run, name

    def train(self, mode: bool = True) -> _Part:
        if self._run is not None:
            self._run.train(self._name, mode)
        for module in self.modules():
            module.training = mode
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Of a copy, which holds values and is no part of the model in C++."""
        return {**self.__dict__, "_run": None}

    def _refuse_hook(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            f"RunModel: '{self._name}' is computed in C++, which would call no hook on it: register the hook on the model, or "
            "make a network of Python's layers of the run by from_run of its class in quatrain.models"
        )

    def register_forward_pre_hook(self, hook: Any, **kwargs: Any) -> Any:
        if isinstance(hook, BasePruningMethod):  # of a parameter that it has replaced, which a call of the model refuses
            return super().register_forward_pre_hook(hook, **kwargs)
        return self._refuse_hook()

    register_forward_hook = _refuse_hook
    register_full_backward_hook = register_full_backward_pre_hook = register_backward_hook = _refuse_hook


class RunModel(nn.Module):
    """The C++ model of a run, of whatever kind: ``load`` makes it.

    Its parameters are the C++ model's own tensors, under the same names, as attributes too (``model.head.bias``): an
    optimizer of torch trains them, ``state_dict``, ``load_state_dict``, ``requires_grad_`` and ``save_model`` see them.
    The model is computed in C++ and cannot be copied or compiled; a network of ``quatrain.models``, which ``from_run`` of its
    class makes of the run, can. Other tensors in the place of its own (by ``functional_call``, ``load_state_dict(assign=True)``, pruning, parametrizations) would not be
    computed with: then a call raises RuntimeError.
    """

    def __init__(self, run: Any, algebras: dict[str, Spec]) -> None:
        super().__init__()
        self._run = run
        #: what C++ computes with: (table of a module, key in it, what must stand there, name to the user)
        self._own: list[tuple[dict[str, Any], str, Any, str]] = []
        for name, tensor in run.parameters().items():
            part, leaf = self._part_of(name)
            tensor._is_param = True  # for torch: this tensor itself is the parameter, not a copy of it
            part.register_parameter(leaf, tensor)
            self._own.append((part._parameters, leaf, tensor, name))
        for name, tensor in run.buffers().items():
            part, leaf = self._part_of(name)
            part.register_buffer(leaf, tensor)
            self._own.append((part._buffers, leaf, tensor, name))
        for name, spec in algebras.items():
            layer = self.get_submodule(name)
            if isinstance(layer, _Part):
                layer.layer_spec = spec
        self.train(False)

    def _part_of(self, name: str) -> tuple[nn.Module, str]:
        part: nn.Module = self
        *path, leaf = name.split(".")
        for step in path:
            if step not in part._modules:
                inner = part._name + "." + step if isinstance(part, _Part) else step
                part.add_module(step, _Part(self._run, inner))
                self._own.append((cast(dict[str, Any], part._modules), step, part._modules[step], step))
            part = cast(nn.Module, part._modules[step])
        return part, leaf

    def _check_own(self) -> None:
        for table, key, own, name in self._own:
            if table.get(key) is not own:
                raise RuntimeError(
                    f"RunModel: '{name}' was replaced, and the C++ model computes with its own: write the values into that one "
                    "(with torch.no_grad(): parameter.copy_(value), or load_state_dict without assign), or load the run once more"
                )

    def forward(self, *inputs: Tensor) -> Tensor:
        """What the model of the run's kind makes of its inputs.

        ``text_classification``: tokens (B, L) and, if need be, padding (B, L) bool -> (B, classes).
        ``text_pairs``: two texts (B, la), (B, lb) -> (B, classes), one score where answers are ranked.
        ``language_model``: tokens (B, L) -> (B, L, vocabulary).
        ``seq2seq``: source (B, S), target (B, L) and both paddings or none -> (B, L, target vocabulary).
        ``speech``: rows (N, inputs) and batch sizes (T), and the order of the utterances (B), (B) or none -> (N, classes).
        ``images``: (B, channels, side, side), normalised by ``pixel_mean`` and ``pixel_deviation`` -> (B, classes).
        ``copy_memory``: symbols (recall, B) -> (steps, B, symbols + 1), the scores of each step.
        ``regression``: (B, inputs) -> (B, outputs).

        Raises ValueError for another number of tensors, RuntimeError where a tensor of the model was replaced.
        """
        self._check_own()
        return cast(Tensor, self._run.forward(list(inputs)))

    def train(self, mode: bool = True) -> RunModel:
        self._run.train("", mode)
        for module in self.modules():
            module.training = mode
        return self

    @contextlib.contextmanager
    def _evaluating(self) -> Iterator[None]:
        """Eval mode, and then the mode that each part had."""
        modes = [(module, module.training) for module in self.modules()]
        if not any(training for _, training in modes):
            yield
            return
        self.eval()
        try:
            yield
        finally:
            for module, training in modes:  # what holds others comes before them
                module.train(training)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> RunModel:
        """Moves the tensors in their places, buffers too, since C++ computes with these."""
        with torch.no_grad():
            for own in [one for _, _, one, _ in self._own if isinstance(one, Tensor)]:
                moved = fn(own)
                if not torch._has_compatible_shallow_copy_type(own, moved):
                    raise TypeError(f"RunModel: the C++ model cannot be moved to {moved.device}")
                if moved is not own:
                    own.data = moved
                if own.grad is not None:
                    own.grad.data = fn(own.grad)
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> RunModel:
        raise TypeError("RunModel: the model of a run cannot be copied: load the run once more")

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("RunModel: the model of a run cannot be pickled: load the run once more where it is wanted")


def _text(function: str, number: int, line: str | os.PathLike[str]) -> str:
    """A line as C++ takes it."""
    text = os.fspath(line) if isinstance(line, os.PathLike) else line
    if not isinstance(text, str):
        raise TypeError(f"{function}: line {number} must be a text, got {type(text).__name__}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        character = text[error.start]
        raise ValueError(
            f"{function}: line {number} is not valid Unicode: its character {error.start + 1} is {character!r}, a lone surrogate"
        ) from None
    return text


def _texts(function: str, lines: Sequence[str | os.PathLike[str]]) -> list[str]:
    if isinstance(lines, (str, bytes, os.PathLike)):
        raise TypeError(f"{function}: lines must be a list of texts, got a single {type(lines).__name__}: put it into a list")
    return [_text(function, number, line) for number, line in enumerate(lines, 1)]


def _rows_of_numbers(numbers: Any) -> list[list[int]]:
    if isinstance(numbers, Tensor):
        if numbers.dim() != 2 or numbers.is_floating_point() or numbers.is_complex() or numbers.dtype == torch.bool:
            raise TypeError(f"texts: numbers must be rows (B, L) of whole numbers, got {numbers.dtype} {list(numbers.shape)}")
        return cast(list[list[int]], numbers.tolist())
    try:
        rows = [[operator.index(number) for number in row] for row in numbers]
    except TypeError as error:
        raise TypeError(f"texts: numbers must be rows of whole numbers: {error}") from None
    for number in (number for row in rows for number in row):
        if not 0 <= number < 1 << 31:
            raise ValueError(f"texts: no piece has the number {number}")
    return rows


@dataclasses.dataclass(frozen=True)
class Run:
    """What ``load`` gives."""

    #: in eval mode
    model: RunModel
    #: what kind of task it was trained for
    kind: str
    #: the complete recipe of the run, with the settings it was loaded with
    recipe: dict[str, Any]
    #: words by their numbers; 0 is the padding, 1 an unknown word. Empty where the kind has no words, and where it has pieces of
    #: texts (``seq2seq`` and ``language_model``): ``inputs`` makes their numbers of texts, and ``texts`` texts of them.
    vocabulary: list[str]
    #: names of the classes. Empty where the kind has no classes.
    labels: list[str]

    def __repr__(self) -> str:
        numbers = sum(parameter.numel() for parameter in self.model.parameters())
        algebra = self.recipe.get("model", {}).get("algebra")
        return f"Run({self.kind}, {numbers:,} parameters{f', {algebra}' if algebra else ''})"

    def predict(self, lines: Sequence[str | os.PathLike[str]]) -> list[str]:
        """An answer for each line, as ``quatrain predict`` gives it, from the model as it is: its parameters may have
        been trained further. Where it is in training mode, it answers in eval mode, and is in training mode again afterwards.
        The lines of a run of speech or of pictures are the paths of files.

        Raises TypeError where it is not given a list of texts or paths, ValueError with the line that the model cannot answer.
        """
        texts = _texts("predict", lines)
        self.model._check_own()
        answers: list[str] = []
        portion = self.model._run.portion()
        with torch.no_grad(), self.model._evaluating():
            for before in range(0, len(texts), portion):  # between which Python can be interrupted
                answers += self.model._run.predict(texts[before : before + portion], before)
        return answers

    def inputs(self, lines: Sequence[str | os.PathLike[str]]) -> tuple[Tensor, ...]:
        """What ``model`` takes for these lines together: ``run.model(*run.inputs(lines))``. They are made as ``predict`` makes
        them, on the model's device.

        ``text_classification``: the numbers of the words (B, L), 0 behind the last, and the padding (B, L) bool.
        ``text_pairs``: of lines "first, tab, second" the numbers of both texts, (B, la) and (B, lb).
        ``language_model``: the numbers of the pieces (B, L), 0 behind the last. Where lines have marks of their ends, the first
        is that of the line before. Lines are not cut at ``task.window``.
        ``seq2seq``: of lines "source" or "source, tab, target" both sides' numbers and then both paddings, as in training: the
        source (B, S) ends with the mark of its end, the target (B, L) begins with that of its beginning.
        ``speech``: of the paths of recordings the four fields of a ``PackedSequence``: normalised rows (N, inputs), batch
        sizes (T) on the CPU, sorted and unsorted indices (B). A recording is normalised by itself where training took the mean of
        its speaker or of itself.
        ``images``: of the paths of pictures (B, channels, side, side), normalised; with ``evaluate.flip`` ``predict`` averages over
        them and their mirror images.
        ``copy_memory``: symbols (recall, B). ``regression``: (B, inputs).

        Raises TypeError where it is not given a list of texts or paths, ValueError where the list is empty, or with the line that
        has no tensor.

        ::

            run = quatrain.load("runs/translation")
            source, target, *paddings = run.inputs(["ein Hund rennt\\ta dog runs"])  # a tab between
            scores = run.model(source, target, *paddings)  # of the piece behind each of the target
        """
        texts = _texts("inputs", lines)
        self.model._check_own()
        return tuple(self.model._run.inputs(texts))

    def texts(self, numbers: Tensor | Sequence[Sequence[int]]) -> list[str]:
        """The texts that rows of numbers of pieces stand for, (B, L) int64 or lists of any lengths, as ``predict`` writes them:
        without marks and padding. Of a run of translation they are pieces of the target.

        Raises TypeError for what are no rows of whole numbers, ValueError for a number that no piece has, RuntimeError
        where the kind writes no pieces: those of words are in ``vocabulary``.
        """
        return cast(list[str], self.model._run.texts(_rows_of_numbers(numbers)))


def _checkpoint(run: Path) -> Path:
    """The best state's folder; its former one where the program was stopped between two renames."""
    for name in ("best", "best.old"):
        if (run / name).is_dir():
            return run / name
    raise FileNotFoundError(f"load: '{run}' holds no 'best': name the folder of a run of quatrain train")


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").split("\n")[:-1] if file.is_file() else []


def _settings(settings: Mapping[str, Any] | None) -> list[str]:
    """As ``--set`` takes them."""
    if settings is not None and not isinstance(settings, Mapping):
        raise TypeError(f"load: settings must be a dictionary such as {{'decode.beam': 8}}, got {type(settings).__name__}")
    texts = []
    for key, value in (settings or {}).items():
        if not isinstance(key, str) or "." not in key:
            raise ValueError(f"load: a setting must be of the form table.key, got {key!r}")
        texts.append(f"{key}={str(value).lower() if isinstance(value, bool) else value}")
    return texts


def load(run: str | os.PathLike[str], settings: Mapping[str, Any] | None = None) -> Run:
    """Loads the model of a run of ``quatrain train``, of whatever kind, with its best weights.

    It is the program's own model, computed in C++. ``settings`` are what ``quatrain predict --set`` takes, such as
    ``{"decode.beam": 8, "decode.scores": True}``: keys of the recipe that can still be changed. Threads are torch's own
    (``torch.set_num_threads``).

    Raises FileNotFoundError where the folder is not a run, ValueError where a setting is not one that can be changed,
    RuntimeError where its files are damaged or do not fit together, or the package was built without the trainer.

    ::

        run = quatrain.load("runs/agreement-2026-01-31-120000")
        print(run.predict(["the keys to the cabinet"]))
        words = {word: number for number, word in enumerate(run.vocabulary)}
        tokens = torch.tensor([[words.get(word, 1) for word in "the keys to the cabinet".split()]])
        print(run.labels[int(run.model(tokens).argmax())])
    """
    folder = _checkpoint(Path(run))
    load_training()
    loaded = torch.classes.quatrain.Run(os.fspath(run), _settings(settings))
    _, _, metadata = torch.ops.quatrain.read_safetensors(os.fspath(folder / "model.safetensors"))
    algebras = {
        key.partition("/")[2]: Spec.of_identity(text) for key, text in metadata.items() if key.startswith("algebra/")
    }
    return Run(
        RunModel(loaded, algebras),
        loaded.kind(),
        tomllib.loads(loaded.recipe()),
        _lines(folder / "vocabulary.txt"),
        _lines(folder / "labels.txt") or _lines(folder / "classes.txt"),
    )


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
