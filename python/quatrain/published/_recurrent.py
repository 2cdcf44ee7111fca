"""Recurrent layers."""

from __future__ import annotations

import dataclasses
from typing import Any, Mapping

import torch
from torch import Tensor

from .. import nn, ops
from .._recurrent_twins import set_nearest
from ..nn import _check
from ._state import State


@dataclasses.dataclass(frozen=True)
class Source:
    """A recurrent layer of another toolkit: what its parameters are called, and which gate each map computes."""

    layer: type[nn.LSTM] | type[nn.RNN]
    #: the name of a map, with ``{map}`` and ``{layer}``, the number of its layer
    name: str
    #: Of the gates that a map computes, in torch's letters (h: no gates), its names for the input and for the state. Where
    #: they are several, the components of one product are the gates: each gate is a whole component.
    maps: Mapping[str, tuple[str, str]]
    batch_first: bool
    #: the name of what the states begin with; ours begin with zero
    start: str = ""


_GATE_BY_GATE = {"i": ("wix", "uih"), "f": ("wfx", "ufh"), "g": ("wcx", "uch"), "o": ("wox", "uoh")}

#: By toolkit and class.
SOURCES: Mapping[str, Source] = {
    "orkis.QLSTM": Source(nn.LSTM, "{map}", _GATE_BY_GATE, batch_first=False),
    "pytorch-kaldi.QLSTM": Source(nn.LSTM, "{map}.{layer}", _GATE_BY_GATE, batch_first=False),
    "speechbrain.QLSTM": Source(nn.LSTM, "rnn.{layer}.{map}", {"ifog": ("w", "u")}, True, "rnn.{layer}.h_init"),
    "speechbrain.QRNN": Source(nn.RNN, "rnn.{layer}.{map}", {"h": ("w", "u")}, True, "rnn.{layer}.h_init"),
}


def _gates(source: Source, state: State, number: int, which: int) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """By gate: the real matrices of a layer's maps for the input (which = 0) or the state (1), and the biases."""
    matrices: dict[str, Tensor] = {}
    biases: dict[str, Tensor] = {}
    for letters, names in source.maps.items():
        S, bias = state.map(source.name.format(map=names[which], layer=number))
        H = ops.materialise(S, "quaternion")
        matrices.update(zip(letters, H.chunk(len(letters))))
        if bias is not None:
            biases.update(zip(letters, bias.chunk(len(letters))))
    return matrices, biases


def _count_layers(source: Source, state: State) -> int:
    if "{layer}" not in source.name:
        return 1
    name, number = next(iter(source.maps.values()))[0], 0
    while f"{source.name.format(map=name, layer=number)}.r_weight" in state.rest:
        number += 1
    return max(number, 1)  # so that the first is missed by name


def _real_state(source: Source, state: State, layers: int) -> tuple[dict[str, Tensor], int]:
    """The parameters of the real layer that computes the same, under torch's names; the number of biases."""
    order = "ifgo" if source.layer is nn.LSTM else "h"
    real, kinds = {}, 0
    for number in range(layers):
        for which, kind in enumerate(("ih", "hh")):
            matrices, biases = _gates(source, state, number, which)
            real[f"weight_{kind}_l{number}"] = torch.cat([matrices[gate] for gate in order])
            if biases and len(biases) < len(order):
                raise ValueError(f"{state.what}: layer {number} has biases of {len(biases)} of its {len(order)} gates ({kind})")
            if biases:
                real[f"bias_{kind}_l{number}"] = torch.cat([biases[gate] for gate in order])
                kinds = max(kinds, which + 1)
        start = state.rest.pop(source.start.format(layer=number), None)
        if start is not None and start.any():
            raise ValueError(f"{state.what}: the states of layer {number} do not begin with zero, as those of our layers do")
    return real, kinds


def recurrent(
    state: Mapping[str, Tensor], source: str, prefix: str = "", bidirectional: bool = False, nonlinearity: str = "tanh"
) -> tuple[nn.LSTM | nn.RNN, dict[str, Tensor]]:
    """The recurrent layers with the weights of another toolkit's, and the tensors that do not belong to them, by their names.

    What comes out computes the same in eval mode, from states that begin with zero. It is a quaternion layer where ours can be
    the same, and else a real one (``algebra="real"``) of four times as many numbers: speechbrain's QLSTM takes the four
    components of one product as its four gates, so that no gate is a quaternion map; and where several layers go both ways,
    these toolkits put one direction after the other, so that the layers above take other components from them than ours do.

    Args:
        state: a state dict.
        source: one of ``SOURCES``.
        prefix: of the layers' names, without the last dot.
        bidirectional: whether they go both ways; the two directions share their weights. Outputs are one direction after the
            other (``direction_first``).
        nonlinearity: of ``speechbrain.QRNN``: tanh or relu.

    Raises ValueError where a tensor is missing or has another size, or states begin with other values than zero.

    >>> import torch, quatrain
    >>> state = {f"w{gate}x.{c}_weight": torch.randn(3, 2) for gate in "ifoc" for c in "rijk"}
    >>> state |= {f"u{gate}h.{c}_weight": torch.randn(2, 2) for gate in "ifoc" for c in "rijk"}
    >>> quatrain.published.recurrent(state | {"fco.bias": torch.zeros(3)}, "orkis.QLSTM")
    (LSTM(12, 8, algebra=quaternion, num_layers=1, bias=False, dropout=0.0, bidirectional=False), {'fco.bias': tensor([0., 0., 0.])})
    """
    _check.choice("published.recurrent: source", source, tuple(SOURCES))
    _check.choice("published.recurrent: nonlinearity", nonlinearity, ("tanh", "relu"))
    kind, tensors = SOURCES[source], State("published.recurrent", state, prefix)
    layers = _count_layers(kind, tensors)
    real, biases = _real_state(kind, tensors, layers)
    hidden, directions = real["weight_hh_l0"].size(1), 2 if bidirectional else 1
    gates = 4 if kind.layer is nn.LSTM else 1
    for number in range(layers):
        size = directions * hidden if number else real["weight_ih_l0"].size(1)
        for name, sizes in (("ih", (gates * hidden, size)), ("hh", (gates * hidden, hidden))):
            found = real[f"weight_{name}_l{number}"].shape
            if found != sizes:
                raise ValueError(
                    f"published.recurrent: layer {number} has a map of {list(found)} where {list(sizes)} is right for {source} "
                    f"with bidirectional = {bidirectional}"
                )
    same = all(len(letters) == 1 for letters in kind.maps) and (layers == 1 or not bidirectional)
    weight = real["weight_ih_l0"]
    options: dict[str, Any] = {} if kind.layer is nn.LSTM else {"nonlinearity": nonlinearity}
    layer = kind.layer(
        weight.size(1),
        hidden,
        layers,
        bias=biases > 0,
        batch_first=kind.batch_first,
        bidirectional=bidirectional,
        device=weight.device,
        dtype=weight.dtype,
        algebra="quaternion" if same else "real",
        single_bias=biases == 1,
        share_directions=bidirectional,
        direction_first=bidirectional,
        **options,
    )
    set_nearest(layer, real)  # which is exact: the matrices are of the algebra
    return layer, {tensors.prefix + name: tensor for name, tensor in tensors.rest.items()}
