"""The weights of a recurrent layer in one direction."""

from __future__ import annotations

from typing import Any, Literal, Sequence, get_args

import torch
from torch import Tensor, nn

from .. import ops
from ..algebra import Spec
from ..init import initialise_gate_biases_
from . import _check
from .weight import WAYS, HypercomplexWeight, Place

#: How many maps the gates of a cell have, for its input and for its state each.
Gates = Literal["automatic", "packed", "separate"]
GATES = get_args(Gates)

_LETTERS = {"lstm": "ifgo", "lstm_printed": "ifgo", "gru": "rzn", "rnn_tanh": "h", "rnn_relu": "h"}
CELLS = tuple(_LETTERS)


def check_options(
    name: str,
    spec: Spec,
    input_size: int,
    hidden_size: int,
    bias: bool,
    recurrent_dropout: float,
    gates: str,
    way: str,
    cell: str,
    forget_bias: float,
    chrono: int,
) -> None:
    """Refuses what layers and cells refuse alike."""
    _check.flag(name, "bias", bias)
    _check.divisible(name, "input_size", input_size, spec.n)
    _check.divisible(name, "hidden_size", hidden_size, spec.n)
    _check.probability(name, "recurrent_dropout", recurrent_dropout)
    _check.choice("gates", gates, GATES)
    _check.choice("way", way, WAYS)
    _check.number(name, "forget_bias", forget_bias)
    if forget_bias and not bias:
        raise ValueError(f"{name}: forget_bias = {forget_bias} starts biases, and bias = False leaves none")
    _check.whole(name, "chrono", chrono)
    if chrono and not 3 <= chrono <= 10**9:
        raise ValueError(f"{name}: chrono must be a number of steps from 3 to 1000000000, or 0 for none, got {chrono}")
    if chrono and len(_LETTERS[cell]) == 1:
        raise ValueError(f"{name}: chrono is for cells with gates, got {chrono}; leave it 0")
    if chrono and not bias:
        raise ValueError(f"{name}: chrono = {chrono} starts biases, and bias = False leaves none")
    if chrono and forget_bias:
        raise ValueError(f"{name}: chrono = {chrono} starts the forget gates' biases; leave forget_bias 0, got {forget_bias}")


def take_nonlinearity(name: str, args: tuple[Any, ...], nonlinearity: str | None) -> tuple[tuple[Any, ...], str]:
    """The nonlinearity of an RNN, which torch has fourth among the arguments, and the arguments without it."""
    if len(args) > 3:
        if nonlinearity is not None:
            raise TypeError(f"{name}: nonlinearity is given twice, as the fourth argument {args[3]!r} and as {nonlinearity!r}")
        args, nonlinearity = args[:3] + args[4:], args[3]
    nonlinearity = "tanh" if nonlinearity is None else nonlinearity
    _check.choice(f"{name}: nonlinearity", nonlinearity, ("tanh", "relu"))
    return args, nonlinearity


class RecurrentWeights:
    """The weights of one layer in one direction, and what it computes of a sequence.

    They are parameters of a Recurrent or a RecurrentCell, whose options they take. It is given to every method and not held:
    what is held would be the original's in a copy (``copy.copy``, ``DataParallel``).
    """

    def __init__(
        self,
        layer: Any,
        input_size: int,
        suffix: str,
        device: torch.device | str | None,
        dtype: torch.dtype | None,
        directions: int = 1,
    ) -> None:
        self.suffix = suffix
        #: of the layer below, which the input has inside each component
        self.directions = directions
        letters = _LETTERS[layer.cell]
        count = len(letters)
        spec, hidden = layer._spec, layer.hidden_size
        projected = getattr(layer, "proj_size", 0)  # cells have none
        separate = count > 1 and (layer.gates == "separate" or (layer.gates == "automatic" and spec.learns_structure))

        def one_map(between: str, size: int, out: int, count: int) -> HypercomplexWeight:
            return layer.add_weight(
                spec,
                size,
                out,
                maps=count,
                initialiser=layer.initialiser,
                suffix=f"_{between}{suffix}",
                device=device,
                dtype=dtype,
            )

        def maps(source: str, size: int) -> list[HypercomplexWeight]:
            if separate:
                return [one_map(source + letter, size, hidden, 1) for letter in letters]
            return [one_map(source + "h", size, count * hidden, count)]

        self.of_input, self.of_state = maps("i", input_size), maps("h", projected or hidden)
        #: one or none
        self.projection = [one_map("hr", hidden, projected, 1)] if projected else []
        two = layer.bias and not layer.single_bias
        for name, there in (("bias_ih", layer.bias), ("bias_hh", two)):
            value = nn.Parameter(torch.zeros(count * hidden, device=device, dtype=dtype)) if there else None
            layer.register_parameter(name + suffix, value)
        self.start_biases(layer)

    def draw(self, layer: Any) -> None:
        for weight in (*self.of_input, *self.of_state, *self.projection):
            weight.draw(layer)
        self.start_biases(layer)

    def start_biases(self, layer: Any) -> None:
        bias_ih, bias_hh = (getattr(layer, name + self.suffix) for name in ("bias_ih", "bias_hh"))
        if bias_hh is not None:
            nn.init.zeros_(bias_hh)
        if bias_ih is not None:
            initialise_gate_biases_(bias_ih, layer._spec.n, layer.cell, layer.forget_bias, layer.chrono)

    def place_in_real(self, layer: Any, parameter: str) -> Place | None:
        """Torch's names and the order of its rows, one gate after the other; None for what is another's."""
        hidden, gates = layer.hidden_size, len(_LETTERS[layer.cell])

        def inside(outer: int, size: int) -> Tensor:
            """(outer, component, p) of the real layer to (component, outer, p) of this one."""
            return torch.arange(size, device="cpu").view(outer, layer._spec.n, -1).transpose(0, 1).flatten()

        for name, maps in (("weight_ih", self.of_input), ("weight_hh", self.of_state)):
            for k, weight in enumerate(maps):
                if weight.key == parameter:
                    rows = inside(gates, gates * hidden) if len(maps) == 1 else torch.arange(hidden, device="cpu") + k * hidden
                    joined = maps is self.of_input and self.directions > 1
                    columns = inside(self.directions, weight.in_features) if joined else None
                    return Place(name + self.suffix, rows, columns)
        if any(weight.key == parameter for weight in self.projection):
            return Place("weight_hr" + self.suffix)
        if parameter in ("bias_ih" + self.suffix, "bias_hh" + self.suffix):
            return Place(parameter, inside(gates, gates * hidden))
        return None

    def __call__(
        self, layer: Any, x: Tensor, batch_sizes: Tensor, h: Tensor, c: Tensor | None, reverse: bool
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        def operands(weights: Sequence[HypercomplexWeight]) -> tuple[list[Tensor], str, list[Tensor], list[Tensor], bool]:
            """S of each, the algebra, A of those that learn it, the factors of all or none, and whether all S are constant."""
            each = [weight.operands(layer) for weight in weights]
            factors = [factor for *_, known, _ in each for factor in known]
            return (
                [S for S, *_ in each],
                each[0][1],
                [A for _, _, A, _, _ in each if A is not None],
                factors if len(factors) == 3 * len(each) else [],
                all(constant for *_, constant in each),
            )

        S_x, algebra, A_x, factors_x, constant_x = operands(self.of_input)
        S, _, A, factors, constant = operands([*self.of_state, *self.projection])
        bias_ih, bias_hh = (getattr(layer, name + self.suffix) for name in ("bias_ih", "bias_hh"))
        # A gru's second bias is inside its reset gate; elsewhere the two are one.
        gru = layer.cell == "gru"
        mask = None
        if layer.training and layer.recurrent_dropout > 0:
            mask = torch.dropout(torch.ones_like(h), layer.recurrent_dropout, True)
        return ops.recurrent_layer(
            x,
            batch_sizes,
            h,
            c,
            S_x,
            S,
            algebra,
            A_x,
            A,
            factors_x,
            factors,
            bias_ih if bias_hh is None or gru else bias_ih + bias_hh,
            bias_hh if gru else None,
            mask,
            layer.cell,
            layer.way,
            reverse,
            constant_x and constant,
        )
