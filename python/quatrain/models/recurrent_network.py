"""Networks of recurrent layers over any algebra."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from ..algebra import Spec
from ..nn import GRU, LSTM, RNN, Linear, _check
from ..nn.component_wise import dropout as dropped
from ..nn.recurrent_weights import CELLS
from ..runs import Run
from ._runs import options_of, place_of, with_state_of


class RecurrentNetwork(nn.Module):
    """Recurrent layers of any cell, and a real linear layer that scores classes at each step, as QRNN's acoustic models are.

    With ``dense`` the scores are those of tanh(D * y): QRNN's table 3.

    Args:
        input_size, hidden_size: as in ``LSTM``.
        classes: how many scores a step has.
        cell: ``lstm``, ``lstm_printed`` (h = o c), ``gru``, ``rnn_tanh`` or ``rnn_relu``.
        num_layers, bidirectional, dropout, forget_bias: as in ``LSTM``; ``dropout`` acts before a dense layer too.
        dense: width of a layer of the algebra between the recurrent ones and the scores; 0 for none.
        algebra: of the recurrent layers and the dense one.
        **options: the other arguments of ``LSTM``, such as ``gates``, ``recurrent_dropout``, ``chrono``, but no projection.

    Children: ``layers``, ``dense`` (if there is one), ``output`` (``torch.nn.Linear``). Shape: x (steps, batch, input_size), or
    with ``batch_first`` (batch, steps, input_size) -> the same with ``classes`` at the end. Of a ``PackedSequence`` the rows of its
    sequences (N, classes), as its ``data`` has them.

    >>> import torch, quatrain
    >>> network = quatrain.models.RecurrentNetwork(40, 64, 10, algebra="quaternion", bidirectional=True)
    >>> network(torch.randn(7, 3, 40)).shape
    torch.Size([7, 3, 10])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        classes: int,
        *,
        cell: str = "lstm",
        num_layers: int = 1,
        bidirectional: bool = False,
        dropout: float = 0.0,
        dense: int = 0,
        forget_bias: float = 0.0,
        chrono: int = 0,
        algebra: str | Spec = "quaternion",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        _check.choice("cell", cell, CELLS)
        _check.at_least_one("RecurrentNetwork", "classes", classes)
        _check.at_least_zero("RecurrentNetwork", "dense", dense)
        _check.probability("RecurrentNetwork", "dropout", dropout)
        for name in ("proj_size", "direction_first", "nonlinearity", "printed"):
            if name in options:
                raise ValueError(f"RecurrentNetwork: {name} is not one of its options: cell, dense and bidirectional settle it")
        self.spec = spec = Spec.parse(algebra)
        self.dropout = dropout
        at: dict[str, Any] = {"device": device, "dtype": dtype}
        options |= {"num_layers": num_layers, "bidirectional": bidirectional, "algebra": spec, **at}
        if num_layers > 1:  # else it acts before `dense` alone
            options["dropout"] = dropout
        # As torch's layers have it, whose weights can be taken; but a layer of the algebra reads whole numbers.
        options["direction_first"] = bidirectional and dense == 0
        self.layers: LSTM | GRU | RNN
        if cell.startswith("lstm"):
            bias = 0.0 if chrono else forget_bias
            self.layers = LSTM(input_size, hidden_size, forget_bias=bias, printed=cell == "lstm_printed", chrono=chrono, **options)
        elif cell == "gru":
            self.layers = GRU(input_size, hidden_size, chrono=chrono, **options)
        else:
            self.layers = RNN(input_size, hidden_size, nonlinearity=cell.removeprefix("rnn_"), **options)
        width = hidden_size * (2 if bidirectional else 1)
        maps = {name: options[name] for name in ("initialiser", "way") if name in options}
        self.dense = Linear(width, dense, algebra=spec, **maps, **at) if dense > 0 else None
        self.output = nn.Linear(dense or width, classes, **at)

    @classmethod
    def from_run(cls, run: Run) -> RecurrentNetwork:
        """The network of a run of speech (``quatrain.load``), with a copy of its weights, in eval mode.

        Other than the run's own model it can be copied, compiled and exported. It takes what ``run.inputs`` makes of recordings,
        as a ``PackedSequence``. ``save_model`` writes what ``quatrain predict`` reads. Raises ValueError where the run is of another
        kind.
        """
        options = options_of("RecurrentNetwork", run, "speech")
        hidden, layers = options.pop("hidden"), options.pop("layers")
        state = run.model.state_dict()
        first = next(S for name, S in state.items() if name.startswith("layers.S_i") and name.endswith("_l0"))
        inputs, classes = first.size(0) * first.size(2), state["output.weight"].size(0)
        return with_state_of(run, cls(inputs, hidden, classes, num_layers=layers, **options, **place_of(run)))

    def _scores(self, y: Tensor) -> Tensor:
        if self.dense is not None:
            y = torch.tanh(self.dense(dropped(y, self.dropout, self.training, self.spec.n)))
        scores: Tensor = self.output(y)
        return scores

    def forward(self, x: Tensor | PackedSequence) -> Tensor:
        y = self.layers(x)[0]
        return self._scores(y.data if isinstance(y, PackedSequence) else y)
