"""Recurrent layers, torch's or ours, over another algebra: the same options and the nearest weights."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from . import nn as layers
from .algebra import Spec
from .nn import HypercomplexLayer
from .nn.recurrent import Recurrent
from .nn.recurrent_cell import RecurrentCell
from .nn.weight import Place

#: What stands in the place of torch's layers.
_OURS: dict[type[nn.Module], Any] = {
    nn.LSTM: layers.LSTM,
    nn.GRU: layers.GRU,
    nn.RNN: layers.RNN,
    nn.LSTMCell: layers.LSTMCell,
    nn.GRUCell: layers.GRUCell,
    nn.RNNCell: layers.RNNCell,
}
_SHARED = ("input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional", "nonlinearity", "proj_size")
_OURS_ALONE = ("gates", "single_bias", "recurrent_dropout", "share_directions", "initialiser", "way", "forget_bias", "chrono")
_OF_CELLS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


class WeightConversion(NamedTuple):
    """What became of one weight: the new one's name, its sizes, the real one's numbers and the new one's."""

    key: str
    in_features: int
    out_features: int
    before: int
    after: int
    error: float | None


def is_recurrent(layer: nn.Module) -> bool:
    """One of torch's recurrent layers and cells, or of ours; what derives from them too."""
    return isinstance(layer, (nn.RNNBase, nn.RNNCellBase, Recurrent, RecurrentCell))


def kept_from(layer: nn.Module) -> str:
    """Why no layer of ours does what this one does; empty where one does."""
    if type(layer) not in (*_OURS, *_OURS.values()):
        return f"is a {type(layer).__name__}, which may do more than a recurrent layer"
    names = sum(layer._all_weights, []) if isinstance(layer, nn.RNNBase) else _OF_CELLS if type(layer) in _OURS else ()
    if not all(name in layer._parameters for name in names):
        return "its weights are computed from others (weight_norm, pruning): make them parameters first"
    held = [parameter for parameter in layer._parameters.values() if parameter is not None]
    return "its weights are tied to each other" if len({id(parameter) for parameter in held}) < len(held) else ""


def real_state(layer: nn.Module) -> dict[str, Tensor]:
    """The parameters that a layer has, or would have, as the real layer of its kind; of a layer of torch, its own.

    A weight is its matrix H, put together where several weights hold parts of it. Autograd follows where it may.
    """
    found: dict[str, Tensor] = dict(layer.named_parameters(recurse=False))
    if not isinstance(layer, HypercomplexLayer):
        return found
    pieces: dict[str, list[tuple[Place, Tensor]]] = {}
    for weight in layer.weights():
        for part in weight.parts(layer):
            del found[part.name]
        place = layer.place_in_real(weight.key)
        H = weight.matrix(layer)
        pieces.setdefault(place.name, []).append((place, H if place.columns is None else H[:, place.columns.argsort()]))
    for name, values in found.items():
        place = layer.place_in_real(name)
        pieces.setdefault(place.name, []).append((place, values))
    state = {}
    for name, parts in pieces.items():
        rows = [place.rows for place, _ in parts if place.rows is not None]
        whole = torch.cat([values for _, values in parts])
        state[name] = whole[torch.cat(rows).argsort()] if rows else whole
    return state


def _there(state: dict[str, Tensor], place: Place) -> Tensor:
    """What lies at a place, in its order."""
    values = state[place.name]
    values = values if place.rows is None else values[place.rows]
    return values if place.columns is None else values[:, place.columns]


def set_nearest(layer: HypercomplexLayer, state: dict[str, Tensor]) -> list[float]:
    """Gives a layer the parameters that are nearest to those of the real layer; the relative error of each weight."""
    errors = [weight.set_nearest(layer, _there(state, layer.place_in_real(weight.key))) for weight in layer.weights()]
    parts = {part.name for weight in layer.weights() for part in weight.parts(layer)}
    with torch.no_grad():
        for name, parameter in layer.named_parameters(recurse=False):
            if name not in parts:
                parameter.copy_(_there(state, layer.place_in_real(name)))
    return errors


def _options(layer: nn.Module, spec: Spec) -> dict[str, Any]:
    names = _SHARED if type(layer) in _OURS else _SHARED + _OURS_ALONE
    options = {name: getattr(layer, name) for name in names if hasattr(layer, name)}
    if isinstance(layer, (layers.LSTM, layers.LSTMCell)):
        options["printed"] = layer.cell == "lstm_printed"
    elif isinstance(layer, (layers.RNN, layers.RNNCell)):
        options["nonlinearity"] = layer.cell.removeprefix("rnn_")
    if options.get("bidirectional"):  # what reads the outputs stays, so that they keep the order of a real layer's
        options["direction_first"] = spec.n > 1 or getattr(layer, "direction_first", False)
    return options


def recurrent_twin(layer: nn.Module, spec: Spec, fresh: bool) -> tuple[HypercomplexLayer, list[WeightConversion]]:
    """The layer to stand in its place, which is real, and what became of its weights."""
    first = next(layer.parameters())
    twin: HypercomplexLayer = _OURS.get(type(layer), type(layer))(
        **_options(layer, spec), device=first.device, dtype=first.dtype, algebra=spec
    )
    with torch.no_grad():
        errors: list[Any] = [None] * len(twin.weights()) if fresh else set_nearest(twin, real_state(layer))
    trained = {}
    for name, parameter in layer.named_parameters(recurse=False):
        place = layer.place_in_real(name) if isinstance(layer, HypercomplexLayer) else Place(name)
        trained[place.name] = parameter.requires_grad
    done = []
    for weight, error in zip(twin.weights(), errors):
        parts = weight.parts(twin)
        for part in parts:
            part.value.requires_grad_(trained[twin.place_in_real(weight.key).name])
        sizes = (weight.in_features, weight.out_features)
        done.append(WeightConversion(weight.key, *sizes, sizes[0] * sizes[1], sum(part.value.numel() for part in parts), error))
    for name, parameter in twin.named_parameters(recurse=False):
        if name in trained:  # a bias
            parameter.requires_grad_(trained[name])
    twin.train(layer.training)
    return twin, done
