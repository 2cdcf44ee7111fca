"""Sizes of a model, and which parameters decay."""

from __future__ import annotations

import dataclasses

from torch import nn

from .encoder import TransformerEncoder


@dataclasses.dataclass(frozen=True)
class ParameterReport:
    """Sizes of a model, in numbers."""

    #: all parameters
    total: int
    #: those that require a gradient
    trainable: int
    #: those of nn.Embedding modules
    embeddings: int
    #: those of TransformerEncoder modules: the papers' counts without embeddings and head
    encoder: int


def _count(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


def parameter_report(module: nn.Module) -> ParameterReport:
    """Counts a model's parameters.

    >>> import quatrain
    >>> quatrain.nn.parameter_report(quatrain.nn.Linear(8, 8, algebra="quaternion")).total
    24
    """
    return ParameterReport(
        total=_count(module),
        trainable=sum(p.numel() for p in module.parameters() if p.requires_grad),
        embeddings=sum(_count(part) for part in module.modules() if isinstance(part, nn.Embedding)),
        encoder=sum(_count(part) for part in module.modules() if isinstance(part, TransformerEncoder)),
    )


def takes_weight_decay(parameter: str) -> bool:
    """Whether weight decay applies to a parameter of this (dotted) name: only to weights, ``S`` (a convolution's ``F``).

    >>> import quatrain
    >>> quatrain.nn.takes_weight_decay("encoder.linear1.S"), quatrain.nn.takes_weight_decay("encoder.linear1.A")
    (True, False)
    """
    return parameter.rpartition(".")[2] in ("S", "F")
