"""Recurrent layers over any algebra: LSTM, GRU, RNN."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from ..algebra import Spec
from ..init import Initialiser
from . import _check
from ._inherited import shows_arguments
from .component_wise import dropout
from .recurrent_weights import Gates, RecurrentWeights, check_options, take_nonlinearity
from .weight import HypercomplexLayer, Place, Way


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

    Parameters: torch's names with S for weight, ``S_ih_l0`` (n, gates p, d/n) and ``S_hh_l0`` (n, gates p, q) of packed gates,
    ``S_ii_l0``, ``S_if_l0``, ... (n, p, d/n) and ``S_hi_l0``, ... ``S_ho_l0`` (n, p, q) of separate ones, with ``A``, ``w`` and
    ``factors`` likewise; ``bias_ih_l0`` and ``bias_hh_l0`` (n gates p), where the gates of each component lie side by side. A
    projection's ``S_hr_l0`` is (n, q, p). p = hidden_size / n; q = proj_size / n, or p without a projection; d is input_size, or
    for the layers above the first the directions times n q.
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
                RecurrentWeights(self, size, f"_l{number}{suffix}", device, dtype, directions if number else 1) for suffix in suffixes
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
        sizes = torch.full((steps if batch else 0,), batch, dtype=torch.int64, device="cpu")
        rows, h, c = self._rows(by_step.reshape(-1, self.input_size), sizes, h, c)
        y = rows.view(steps, batch, width)
        return y.transpose(0, 1) if self.batch_first else y, h, c

    def extra_repr(self) -> str:
        projection = f", proj_size={self.proj_size}" if self.proj_size else ""
        first = ", batch_first=True" if self.batch_first else ""
        return (
            f"{self.input_size}, {self.hidden_size}{projection}, algebra={self._spec}, num_layers={self.num_layers}, "
            f"bias={self.bias}{first}, dropout={self.dropout}, bidirectional={self.bidirectional}{self._chosen()}"
        )

    def _chosen(self) -> str:
        """What seldom is other than usual, and changes what the layer computes or starts with."""
        usual: dict[str, Any] = {
            "gates": "automatic", "single_bias": False, "recurrent_dropout": 0, "share_directions": False,
            "direction_first": False, "initialiser": "glorot", "chrono": 0, "forget_bias": 0,
        }  # fmt: skip
        chosen = {name: getattr(self, name) for name, value in usual.items() if getattr(self, name) != value}
        if self.cell.endswith("_printed"):
            chosen["printed"] = True
        if self.cell == "rnn_relu":
            chosen["nonlinearity"] = "relu"
        return "".join(f", {name}={value!r}" for name, value in chosen.items())


@shows_arguments
class LSTM(Recurrent):
    """A long short-term memory over any algebra (QRNN (20)-(24), PHM 4.1); at n = 1 ``torch.nn.LSTM``.

    With the gates i, f, g, o = W * x_t + R * h_{t-1} + b: c_t = sigmoid(f) c_{t-1} + sigmoid(i) tanh(g),
    h_t = sigmoid(o) tanh(c_t).

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

    With x = W * x_t + b and y = R * h_{t-1} + b' of each gate r, z, n: r = x_r + y_r, z = x_z + y_z,
    n = tanh(x_n + sigmoid(r) y_n), h_t = (1 - sigmoid(z)) n + sigmoid(z) h_{t-1}.

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
