"""One step of the recurrent layers, for loops of one's own."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..algebra import Spec
from ..init import Initialiser
from . import _check
from ._inherited import shows_arguments
from .recurrent_weights import Gates, RecurrentWeights, check_options, take_nonlinearity
from .weight import HypercomplexLayer, Place, Way


class RecurrentCell(HypercomplexLayer):
    """What LSTMCell, GRUCell and RNNCell have in common.

    Args:
        input_size: d, size of the input's last axis; n must divide it.
        hidden_size: size of the state; n must divide it.
        bias: whether there are biases. Up to here, and in ``device`` and ``dtype``, the arguments are torch's.
        algebra, gates, single_bias, initialiser, chrono, way: as in the layers, such as ``LSTM``.
        recurrent_dropout: of the state before its map, with a new mask in each call, where a layer has one for all steps of a
            sequence.
        cell, forget_bias: set by the cells that derive from it.

    Parameters: named as in the layers, without the number of one: ``S_ih``, ``S_hh``, ``bias_ih``, ``bias_hh``.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        algebra: str | Spec = "quaternion",
        gates: Gates = "automatic",
        single_bias: bool = False,
        recurrent_dropout: float = 0.0,
        initialiser: Initialiser = "glorot",
        chrono: int = 0,
        way: Way = "auto",
        cell: str = "lstm",
        forget_bias: float = 0.0,
    ) -> None:
        super().__init__()
        name, spec = type(self).__name__, Spec.parse(algebra)
        check_options(name, spec, input_size, hidden_size, bias, recurrent_dropout, gates, way, cell, forget_bias, chrono)
        self.input_size, self.hidden_size, self.bias, self.cell = input_size, hidden_size, bias, cell
        self.gates, self.single_bias, self.recurrent_dropout = gates, single_bias, recurrent_dropout
        self.initialiser, self.way, self.forget_bias, self.chrono = initialiser, way, forget_bias, chrono
        self._spec = spec
        self._step_weights = RecurrentWeights(self, input_size, "", device, dtype)

    def reset_parameters(self) -> None:
        """Draws the weights anew by the initialiser, and sets the biases to their start."""
        self._step_weights.draw(self)

    def place_in_real(self, parameter: str) -> Place:
        return self._step_weights.place_in_real(self, parameter) or Place(parameter)

    def _step(self, x: Tensor, h: Tensor | None, c: Tensor | None, memory: bool) -> tuple[Tensor, Tensor | None]:
        name = type(self).__name__
        _check.state(name, h)
        _check.floating(name, x)
        if x.dim() not in (1, 2) or x.shape[-1] != self.input_size:
            raise ValueError(f"{name}: input must have the shape (batch, {self.input_size}) or ({self.input_size}), got {list(x.shape)}")
        sizes = (*x.shape[:-1], self.hidden_size)

        def start(what: str, state: Tensor | None) -> Tensor:
            if state is not None and state.shape != sizes:
                raise ValueError(f"{name}: {what} must have the shape {list(sizes)}, got {list(state.shape)}")
            return (x.new_zeros(sizes) if state is None else state).reshape(-1, self.hidden_size)

        first_h, first_c = start("h", h), start("c", c) if memory else None
        rows = first_h.shape[0]
        one = torch.full((1 if rows else 0,), rows, dtype=torch.int64, device="cpu")  # a step without a row is none
        _, h, c = self._step_weights(self, x.reshape(-1, self.input_size), one, first_h, first_c, False)
        return h.view(sizes), None if c is None else c.view(sizes)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}, algebra={self._spec}, bias={self.bias}"


@shows_arguments
class LSTMCell(RecurrentCell):
    """One step of an LSTM: x (batch, d) and states (batch, hidden_size) -> the next h and c; at n = 1 ``torch.nn.LSTMCell``.

    The equations are those of ``LSTM``.

    Args: those of ``RecurrentCell``, and
        forget_bias: what ``bias_ih`` of the forget gates starts with (0 in the papers).
        printed: h_t = o c_t, without sigmoid and tanh, as PHM prints it.
    """

    def __init__(self, *args: Any, forget_bias: float = 0.0, printed: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs, cell="lstm_printed" if printed else "lstm", forget_bias=forget_bias)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        h, c = self._step(input, *_check.states(type(self).__name__, hx), True)
        assert c is not None
        return h, c


@shows_arguments
class GRUCell(RecurrentCell):
    """One step of a GRU: x (batch, d) and h (batch, hidden_size) -> the next h; at n = 1 ``torch.nn.GRUCell``.

    The equations are those of ``GRU``.

    Args: those of ``RecurrentCell``
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs, cell="gru")

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step(input, hx, None, False)[0]


@shows_arguments
class RNNCell(RecurrentCell):
    """One step of an RNN: x (batch, d) and h (batch, hidden_size) -> the next h; at n = 1 ``torch.nn.RNNCell``.

    The equation is that of ``RNN``.

    Args: those of ``RecurrentCell``, and
        nonlinearity: ``tanh`` or ``relu``; fourth, behind ``bias``, where the arguments go without names, as torch has it.
    """

    def __init__(self, *args: Any, nonlinearity: str | None = None, **kwargs: Any) -> None:
        args, nonlinearity = take_nonlinearity(type(self).__name__, args, nonlinearity)
        super().__init__(*args, **kwargs, cell="rnn_" + nonlinearity)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step(input, hx, None, False)[0]
