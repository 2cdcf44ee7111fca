"""Recurrent layers over any algebra: LSTM, GRU, RNN."""

from __future__ import annotations

import warnings
from typing import Any, Literal, Sequence, get_args

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from .. import ops
from ..algebra import Spec
from ..init import Initialiser
from . import _check
from ._inherited import shows_arguments
from .component_wise import dropout
from .weight import WAYS, HypercomplexLayer, HypercomplexWeight, Place, Way

#: How many maps the gates of a cell have, for its input and for its state each.
Gates = Literal["automatic", "packed", "separate"]
GATES = get_args(Gates)

_LETTERS = {"lstm": "ifgo", "lstm_printed": "ifgo", "gru": "rzn", "rnn_tanh": "h", "rnn_relu": "h"}


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


class Direction:
    """The weights of one layer in one direction, and what it computes of a sequence (RecurrentWeights in C++).

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
        with torch.no_grad():
            for name in ("bias_ih", "bias_hh"):
                bias = getattr(layer, name + self.suffix)
                if bias is not None:
                    bias.zero_()
            bias, count = getattr(layer, "bias_ih" + self.suffix), len(_LETTERS[layer.cell])
            if bias is None or count == 1:
                return
            gates = bias.view(layer._spec.n, count, -1)
            keeps = gates[:, 1]  # the state: f of an lstm, z of a gru
            if layer.forget_bias:
                keeps.fill_(layer.forget_bias)
            if layer.chrono:
                # In float32 also for float16, which does not hold such numbers.
                keeps.copy_(torch.empty_like(keeps, dtype=torch.float32).uniform_(1, layer.chrono - 1).log_())
                if "lstm" in layer.cell:
                    gates[:, 0] = -keeps

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


class Recurrent(HypercomplexLayer):
    """A stack of recurrent layers: what LSTM, GRU and RNN have in common.

    Args:
        input_size: d, size of the input's last axis; n must divide it.
        hidden_size: size of the state; n must divide it.
        num_layers: layers, one on top of the other.
        bias: whether there are biases.
        batch_first: input and output (batch, steps, ...) instead of (steps, batch, ...).
        dropout: between the layers.
        bidirectional: a second direction, from the last step to the first; the outputs of the two are joined inside each
            component, which at n = 1 is torch's order.
        proj_size: of an LSTM, the size that h is projected to by a map of its own without bias; n must divide it, and it is
            smaller than hidden_size, which c keeps. 0 for none. Up to here, and in ``device`` and ``dtype``, the arguments are
            torch's.
        algebra: ``quaternion``, ``phm(4)``, ``real`` ...
        gates: ``packed``, one map for all gates; ``separate``, one a gate, each with its own A where it is learned
            (PHM-LSTM); ``automatic``, separate where A is learned.
        single_bias: one bias instead of torch's two.
        recurrent_dropout: of the state before its map, with one mask for all steps of a sequence.
        share_directions: both directions have the weights of the first.
        direction_first: the output has one direction after the other, each with its components, as torch's layers have
            it; between the layers of a stack they stay joined.
        initialiser: one of ``quatrain.init.INITIALISERS``; fans are those of one gate and direction.
        chrono: of an LSTM or a GRU with biases, the longest time in steps, T >= 3, that the state is to remember something for
            (Tallec and Ollivier 2018, chrono initialisation): what keeps the state starts with biases log u, u uniform in
            1 .. T - 1, and an LSTM's input gates with -log u. 0 for none; ``forget_bias`` must be 0 beside it.
        way: how the maps of the inputs are evaluated.
        cell, forget_bias: set by the layers that derive from it.

    Parameters: torch's names with S for weight, ``S_ih_l0`` and ``S_hh_l0`` (n, gates p, d/n) of packed gates, ``S_ii_l0``,
    ``S_if_l0``, ... ``S_ho_l0`` (n, p, d/n) of separate ones, with ``A``, ``w`` and ``factors`` likewise; ``bias_ih_l0`` and
    ``bias_hh_l0`` (n gates p), where the gates of each component lie side by side; p = hidden_size / n. A projection's
    ``S_hr_l0`` is (n, proj_size / n, p).
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        algebra: str | Spec = "quaternion",
        gates: Gates = "automatic",
        single_bias: bool = False,
        recurrent_dropout: float = 0.0,
        share_directions: bool = False,
        direction_first: bool = False,
        initialiser: Initialiser = "glorot",
        chrono: int = 0,
        way: Way = "auto",
        cell: str = "lstm",
        forget_bias: float = 0.0,
    ) -> None:
        super().__init__()
        self.cell, self.forget_bias, self.chrono = cell, forget_bias, chrono
        #: torch's name of the cell: LSTM, GRU, RNN_TANH or RNN_RELU
        self.mode = cell.removesuffix("_printed").upper()
        name = type(self).__name__
        spec = Spec.parse(algebra)
        check_options(name, spec, input_size, hidden_size, bias, recurrent_dropout, gates, way, cell, forget_bias, chrono)
        _check.at_least_one(name, "num_layers", num_layers)
        for option, asked in (("batch_first", batch_first), ("bidirectional", bidirectional), ("single_bias", single_bias)):
            _check.flag(name, option, asked)
        _check.probability(name, "dropout", dropout)
        if dropout and num_layers == 1:
            warnings.warn(
                f"{name}: dropout is between the layers, so dropout = {dropout} does nothing with num_layers = 1", stacklevel=3
            )
        _check.whole(name, "proj_size", proj_size)
        if proj_size and "lstm" not in cell:
            raise ValueError(f"{name}: proj_size is an LSTM's, got {proj_size}; leave it 0")
        if proj_size and not 0 < proj_size < hidden_size:
            raise ValueError(
                f"{name}: proj_size must be smaller than hidden_size = {hidden_size}, or 0 for none, got {proj_size}"
            )
        if proj_size:
            _check.divisible(name, "proj_size", proj_size, spec.n)
        for option, asked in (("share_directions", share_directions), ("direction_first", direction_first)):
            if asked and not bidirectional:
                raise ValueError(f"{name}: {option} needs two directions; set bidirectional")
        self.input_size, self.hidden_size, self.num_layers, self.bias = input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional = batch_first, dropout, bidirectional
        self.proj_size, self._state_size = proj_size, proj_size or hidden_size
        self.gates, self.single_bias, self.recurrent_dropout = gates, single_bias, recurrent_dropout
        self.share_directions, self.direction_first = share_directions, direction_first
        self.initialiser, self.way = initialiser, way
        self._spec = spec
        directions = 2 if bidirectional else 1
        suffixes = ("", "_reverse") if bidirectional and not share_directions else ("",)
        self._layers = [
            [
                Direction(self, size, f"_l{number}{suffix}", device, dtype, directions if number else 1) for suffix in suffixes
            ]
            for number, size in enumerate([input_size] + [directions * self._state_size] * (num_layers - 1))
        ]

    def reset_parameters(self) -> None:
        """Draws the weights anew by the initialiser, and sets the biases to their start."""
        for layer in self._layers:
            for direction in layer:
                direction.draw(self)

    def flatten_parameters(self) -> None:
        """Does nothing: models that were written for torch's layers call it."""

    def place_in_real(self, parameter: str) -> Place:
        places = (direction.place_in_real(self, parameter) for layer in self._layers for direction in layer)
        return next((place for place in places if place is not None), Place(parameter))

    def _start(self, state: Tensor | None, batch: int, x: Tensor, what: str) -> Tensor:
        size = self._state_size if what == "h0" else self.hidden_size
        sizes = (self.num_layers * (2 if self.bidirectional else 1), batch, size)
        if state is None:
            return x.new_zeros(sizes)
        if state.shape != sizes:
            raise ValueError(
                f"{type(self).__name__}: {what} must have the shape (layers * directions, batch, "
                f"{'hidden_size' if size == self.hidden_size else 'proj_size'}) = {list(sizes)}, got {list(state.shape)}"
            )
        return state

    def _rows(self, x: Tensor, batch_sizes: Tensor, h: Tensor, c: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
        last_h: list[Tensor] = []
        last_c: list[Tensor | None] = []
        for number, layer in enumerate(self._layers):
            outputs = []
            for direction in range(2 if self.bidirectional else 1):
                place = len(last_h)
                y, h_last, c_last = layer[direction % len(layer)](
                    self, x, batch_sizes, h[place], None if c is None else c[place], direction == 1
                )
                outputs.append(y.unflatten(1, (self._spec.n, -1)))
                last_h.append(h_last)
                last_c.append(c_last)
            last = number + 1 == self.num_layers
            x = torch.cat(outputs, 1 if self.direction_first and last else 2).flatten(1)
            if not last:
                x = dropout(x, self.dropout, self.training, self._spec.n)
        return x, torch.stack(last_h), None if c is None else torch.stack([c for c in last_c if c is not None])

    def _run(
        self, x: Tensor | PackedSequence, h: Tensor | None, c: Tensor | None, memory: bool
    ) -> tuple[Tensor | PackedSequence, Tensor, Tensor | None]:
        _check.state(type(self).__name__, h)
        _check.floating(type(self).__name__, x.data if isinstance(x, PackedSequence) else x)
        if isinstance(x, PackedSequence):
            if x.data.shape[-1] != self.input_size:
                raise ValueError(
                    f"{type(self).__name__}: the frames of a PackedSequence must have {self.input_size} values, "
                    f"got {x.data.shape[-1]}"
                )
            sizes, order, back = x.batch_sizes, x.sorted_indices, x.unsorted_indices
            h = self._start(h, int(sizes[0]), x.data, "h0")
            c = self._start(c, int(sizes[0]), x.data, "c0") if memory else None
            if order is not None:
                h, c = h[:, order], None if c is None else c[:, order]
            y, h, c = self._rows(x.data, sizes, h, c)
            if back is not None:
                h, c = h[:, back], None if c is None else c[:, back]
            return PackedSequence(y, sizes, order, back), h, c
        if x.dim() not in (2, 3) or x.shape[-1] != self.input_size:
            axes = "batch, steps" if self.batch_first else "steps, batch"
            raise ValueError(
                f"{type(self).__name__}: input must have the shape ({axes}, {self.input_size}) or (steps, {self.input_size}), "
                f"got {list(x.shape)}"
            )
        if x.dim() == 3:
            return self._dense(x, h, c, memory)
        axis = 0 if self.batch_first else 1

        def as_batch(state: Tensor | None) -> Tensor | None:
            if state is not None and state.dim() != 2:
                raise ValueError(
                    f"{type(self).__name__}: the states of a sequence without a batch must have the shape "
                    f"(layers * directions, hidden_size), got {list(state.shape)}"
                )
            return None if state is None else state.unsqueeze(1)

        y, h, c = self._dense(x.unsqueeze(axis), as_batch(h), as_batch(c), memory)
        return y.squeeze(axis), h.squeeze(1), None if c is None else c.squeeze(1)

    def _dense(
        self, x: Tensor, h: Tensor | None, c: Tensor | None, memory: bool
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        by_step = x.transpose(0, 1) if self.batch_first else x
        steps, batch = by_step.shape[:2]
        h = self._start(h, batch, x, "h0")
        c = self._start(c, batch, x, "c0") if memory else None
        width = self._state_size * (2 if self.bidirectional else 1)
        # Steps without a row are no steps; what autograd records is the same.
        sizes = torch.full((steps if batch else 0,), batch, dtype=torch.int64)
        rows, h, c = self._rows(by_step.reshape(-1, self.input_size), sizes, h, c)
        y = rows.view(steps, batch, width)
        return y.transpose(0, 1) if self.batch_first else y, h, c

    def extra_repr(self) -> str:
        projection = f", proj_size={self.proj_size}" if self.proj_size else ""
        first = ", batch_first=True" if self.batch_first else ""
        return (
            f"{self.input_size}, {self.hidden_size}{projection}, algebra={self._spec}, num_layers={self.num_layers}, "
            f"bias={self.bias}{first}, dropout={self.dropout}, bidirectional={self.bidirectional}"
        )


@shows_arguments
class LSTM(Recurrent):
    """A long short-term memory over any algebra (QRNN (20)-(24), PHM 4.1); at n = 1 ``torch.nn.LSTM``.

    Args: those of ``Recurrent``, and
        forget_bias: what ``bias_ih`` of the forget gates starts with (0 in the papers).
        printed: h_t = o c_t, without sigmoid and tanh, as PHM prints it.

    Shape: as torch's: (steps, batch, d) -> (steps, batch, directions hidden_size), states (layers directions, batch,
    hidden_size); with ``proj_size`` the outputs and h have it in the place of hidden_size.

    >>> import torch, quatrain
    >>> layer = quatrain.nn.LSTM(8, 16, algebra="quaternion", bidirectional=True)
    >>> y, (h, c) = layer(torch.randn(5, 3, 8))
    >>> y.shape, h.shape
    (torch.Size([5, 3, 32]), torch.Size([2, 3, 16]))
    """

    def __init__(self, *args: Any, forget_bias: float = 0.0, printed: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs, cell="lstm_printed" if printed else "lstm", forget_bias=forget_bias)

    def forward(
        self, input: Tensor | PackedSequence, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor | PackedSequence, tuple[Tensor, Tensor]]:
        y, h, c = self._run(input, *_check.states(type(self).__name__, hx), True)
        assert c is not None
        return y, (h, c)


@shows_arguments
class GRU(Recurrent):
    """A gated recurrent unit over any algebra; at n = 1 ``torch.nn.GRU``.

    Args: those of ``Recurrent``

    Shape: as torch's: (steps, batch, d) -> (steps, batch, directions hidden_size), state (layers directions, batch, hidden_size).
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs, cell="gru")

    def forward(self, input: Tensor | PackedSequence, hx: Tensor | None = None) -> tuple[Tensor | PackedSequence, Tensor]:
        y, h, _ = self._run(input, hx, None, False)
        return y, h


@shows_arguments
class RNN(Recurrent):
    """A plain recurrence over any algebra, h_t = tanh(W * x_t + R * h_{t-1} + b) (QRNN (6)); at n = 1 ``torch.nn.RNN``.

    Args: those of ``Recurrent``, and
        nonlinearity: ``tanh`` or ``relu``; fourth, before ``bias``, where the arguments go without names, as torch has it.

    Shape: as torch's: (steps, batch, d) -> (steps, batch, directions hidden_size), state (layers directions, batch, hidden_size).
    """

    def __init__(self, *args: Any, nonlinearity: str | None = None, **kwargs: Any) -> None:
        args, nonlinearity = take_nonlinearity(type(self).__name__, args, nonlinearity)
        super().__init__(*args, **kwargs, cell="rnn_" + nonlinearity)

    def forward(self, input: Tensor | PackedSequence, hx: Tensor | None = None) -> tuple[Tensor | PackedSequence, Tensor]:
        y, h, _ = self._run(input, hx, None, False)
        return y, h
