"""Sizes of a model, and which parameters decay."""

from __future__ import annotations

import dataclasses

from typing import Any

from torch import Tensor, nn

from .decoder import TransformerDecoder
from .embedding import Embedding
from .encoder import TransformerEncoder
from .weight import HypercomplexLayer, HypercomplexWeight


@dataclasses.dataclass(frozen=True)
class ParameterReport:
    """Sizes of a model, in numbers."""

    #: all parameters
    total: int
    #: those that require a gradient
    trainable: int
    #: those of embeddings, torch's and ours
    embeddings: int
    #: those of TransformerEncoder and TransformerDecoder modules: the papers' counts without embeddings and head
    encoder: int
    #: those of hypercomplex layers' weights, n = 1 too: without biases and norms
    weights: int


def _count(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


def _weights(module: nn.Module) -> list[tuple[HypercomplexLayer, HypercomplexWeight]]:
    layers = (layer for layer in module.modules() if isinstance(layer, HypercomplexLayer))
    return [(layer, weight) for layer in layers for weight in layer.weights()]


def parameter_report(module: nn.Module) -> ParameterReport:
    """Counts a model's parameters.

    >>> import quatrain
    >>> quatrain.nn.parameter_report(quatrain.nn.Linear(8, 8, algebra="quaternion")).total
    24
    """
    return ParameterReport(
        total=_count(module),
        trainable=sum(p.numel() for p in module.parameters() if p.requires_grad),
        embeddings=sum(_count(part) for part in module.modules() if isinstance(part, (nn.Embedding, Embedding))),
        encoder=sum(_count(part) for part in module.modules() if isinstance(part, (TransformerEncoder, TransformerDecoder))),
        weights=sum(part.value.numel() for layer, weight in _weights(module) for part in weight.parts(layer)),
    )


def decaying_parameters(module: nn.Module) -> list[Tensor]:
    """The parameters to which weight decay applies: S of every hypercomplex layer (F of a convolution).

    A, factors, w, alpha, biases, norms and embeddings do not decay. By role: a parameter of another kind of module does
    not decay, whatever its name. Where S is parametrized or pruned, what it is computed from decays.

    >>> import quatrain
    >>> layer = quatrain.nn.Linear(8, 8, algebra="phm(4)")
    >>> [p is layer.S for p in quatrain.nn.decaying_parameters(layer)]
    [True]
    """
    return [parameter for layer, weight in _weights(module) if weight.decays for parameter in weight.trained(layer)]


def parameter_groups(module: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """The trained parameters as two groups for an optimizer of torch, with and without weight decay.

    C++ has ``decaying_parameters`` alone.

    >>> import torch, quatrain
    >>> layer = quatrain.nn.Linear(8, 8, algebra="phm(4)")
    >>> optimizer = torch.optim.AdamW(quatrain.nn.parameter_groups(layer, 0.01), lr=1e-3)
    >>> [(len(group["params"]), group["weight_decay"]) for group in optimizer.param_groups]
    [(1, 0.01), (2, 0.0)]
    """
    decaying = {id(p) for p in decaying_parameters(module)}
    trained = [p for p in module.parameters() if p.requires_grad]
    return [
        {"params": [p for p in trained if id(p) in decaying], "weight_decay": weight_decay},
        {"params": [p for p in trained if id(p) not in decaying], "weight_decay": 0.0},
    ]
