"""Weights of a model in a file (safetensors), with the algebras that they were trained with: C++'s own format."""

from __future__ import annotations

import json
import os
from typing import Iterator, Sequence

import torch
from torch import Tensor, nn

from . import algebra as algebras
from .algebra import Spec
from .nn import HypercomplexLayer

__all__ = ["load_model", "save_model"]

_ops = torch.ops.quatrain


def _layers(module: nn.Module) -> Iterator[tuple[str, Spec]]:
    """Each hypercomplex layer; real layers have no algebra to tell."""
    for name, part in module.named_modules(remove_duplicate=False):
        spec = part.spec if isinstance(part, HypercomplexLayer) else getattr(part, "layer_spec", None)
        if isinstance(spec, Spec) and spec.n > 1:
            yield name, spec


def _table_text(name: str) -> str:
    table = algebras.get(name).table.transpose(1, 2)
    entries = [[*index, table[tuple(index)].item()] for index in table.nonzero().tolist()]
    return json.dumps({"n": table.size(0), "table": entries}, separators=(",", ":"))


def _state(module: nn.Module) -> dict[str, Tensor]:
    """Parameters and persistent buffers."""
    return {name: t for name, t in module.state_dict(keep_vars=True).items() if isinstance(t, Tensor)}


def save_model(module: nn.Module, path: str | os.PathLike[str]) -> None:
    """Writes all parameters and buffers by their names; C++'s ``nn::save_weights``.

    For each hypercomplex layer the metadata hold its algebra and the hash of its table, since weights of different
    algebras have the same names and shapes; the tables themselves travel along. The C++ program reads the file. It is
    written beside and renamed: a reader sees the old one or the new one, whole.

    Raises ValueError where a parameter is spread over several processes, and RuntimeError, which names the file, where
    it cannot be written.

    >>> import tempfile, torch, quatrain
    >>> one, two = (quatrain.nn.Linear(8, 8, algebra="quaternion") for _ in range(2))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     quatrain.save_model(one, folder + "/model.safetensors")
    ...     quatrain.load_model(two, folder + "/model.safetensors")
    >>> bool((one.S == two.S).all())
    True
    """
    metadata = {"format": "pt"}
    for name, spec in _layers(module):
        metadata[f"algebra/{name}"] = spec.identity
        if not spec.learned:
            metadata[f"table/{spec.name}"] = _table_text(spec.name)
    state = {name: t.detach() for name, t in _state(module).items()}
    for name, tensor in state.items():
        if hasattr(tensor, "full_tensor"):
            raise ValueError(
                f"save_model: '{name}' is spread over several processes: gather the state dict, load it into a whole model "
                "and save that"
            )
    _ops.write_safetensors(os.fspath(path), list(state), list(state.values()), metadata)


def _algebra_problem(layer: str, spec: Spec, metadata: dict[str, str]) -> str | None:
    """Why a layer's stored algebra is not the module's."""
    shown = f"layer '{layer}'" if layer else "the layer"
    stored = metadata.get(f"algebra/{layer}")
    if stored is None:
        return f"the file does not say which algebra {shown} was trained with"
    same = spec.is_same(stored)
    return None if same else f"{shown} was trained with the algebra {stored}, the model has {spec.identity}"


def _is_part(name: str, modules: Sequence[str]) -> bool:
    """True of these modules and of what they consist of."""
    return any(name == module or name.startswith(module + ".") for module in modules)


def _problems(
    module: nn.Module, tensors: dict[str, Tensor], metadata: dict[str, str], without: Sequence[str]
) -> Iterator[str]:
    for layer, spec in _layers(module):
        there = any(name.startswith(layer and layer + ".") for name in tensors)  # else it is said of its tensors
        problem = there and not _is_part(layer, without) and _algebra_problem(layer, spec, metadata)
        if problem:
            yield problem
    state = _state(module)
    for name, tensor in state.items():
        stored = tensors.get(name)
        if _is_part(name, without):
            continue
        if stored is None:
            yield f"the model's '{name}' {list(tensor.shape)} is not in the file"
        elif stored.shape != tensor.shape:
            yield f"'{name}' has shape {list(stored.shape)}, the model's {list(tensor.shape)}"
        elif stored.dtype != tensor.dtype and not (stored.is_floating_point() and tensor.is_floating_point()):
            yield f"'{name}' has type {stored.dtype}, the model's {tensor.dtype}"
    for name, stored in tensors.items():
        if name not in state and not _is_part(name, without):
            yield f"the file's '{name}' {list(stored.shape)} is not in the model"
    for part in without:
        if not any(_is_part(name, [part]) for name in (*state, *tensors)):
            yield f"neither has a part '{part}' that could be left out"


def load_model(module: nn.Module, path: str | os.PathLike[str], without: Sequence[str] = ()) -> None:
    """Reads what ``save_model`` or the C++ program wrote into a module of the same make; C++'s ``nn::load_weights``.

    Names, shapes, algebras and table hashes must fit; else RuntimeError says which layer or tensor differs and how, and
    nothing is changed. Floating types may differ: values are converted to the module's. Modules named in ``without``
    (``head``, ``encoder.layers.0``) keep their values, whatever the file has of them.
    """
    if isinstance(without, str):
        raise TypeError(f"load_model: without must be a list of names, got {without!r}")
    names, values, metadata = _ops.read_safetensors(os.fspath(path))
    tensors = dict(zip(names, values))
    found = list(_problems(module, tensors, metadata, without))
    if found:
        others = len(found) - 1
        more = f" (and {others} more difference{'s' if others > 1 else ''})" if others else ""
        raise RuntimeError(f"load_model: '{os.fspath(path)}' does not fit the model: {found[0]}{more}")
    # What is left out, and it alone, is missing now.
    taken = {name: tensor for name, tensor in tensors.items() if not _is_part(name, without)}
    module.load_state_dict(taken, strict=not without)
