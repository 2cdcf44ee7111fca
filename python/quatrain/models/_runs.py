"""Networks of Python's layers from the runs of the program."""

from __future__ import annotations

from typing import Any, TypeVar

import torch
from torch import nn

from ..runs import Run

_Network = TypeVar("_Network", bound=nn.Module)


def options_of(network: str, run: Run, kind: str) -> dict[str, Any]:
    """The table [model] of a run's recipe; an error where the run is of another kind."""
    if not hasattr(run, "kind"):
        raise TypeError(f"{network}.from_run: run must be what quatrain.load gives, got {type(run).__name__}")
    if run.kind != kind:
        raise ValueError(f"{network}.from_run: the run must be of the kind {kind}, got {run.kind}")
    return dict(run.recipe["model"])


def with_state_of(run: Run, network: _Network) -> _Network:
    """The network with a copy of the run's weights, on their device, in eval mode; what is frozen there is frozen here. Buffers of
    the run alone are kept: a file of its weights has them."""
    state = run.model.state_dict()
    known = network.state_dict()
    for name, buffer in run.model.named_buffers():
        if name not in known:
            network.register_buffer(name, torch.empty_like(buffer))
    network.load_state_dict(state)
    trained = dict(run.model.named_parameters())
    for name, parameter in network.named_parameters():
        parameter.requires_grad_(trained[name].requires_grad)
    return network.eval()


def place_of(run: Run) -> dict[str, Any]:
    """Device and dtype of a run's parameters."""
    first = next(run.model.parameters())
    return {"device": first.device, "dtype": first.dtype}
