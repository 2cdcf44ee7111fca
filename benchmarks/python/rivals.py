"""The layers that quatrain's are measured against, all with the same map: y = (sum_i A_i (x) S_i) x + bias."""

from __future__ import annotations

import torch
from torch import Tensor, nn

import quatrain

try:
    from speechbrain.nnet.quaternion_networks.q_linear import QLinear
except ImportError:
    QLinear = None


class Materialised(nn.Module):
    """Writes out H in every call, as public layers of learned algebras do, and multiplies with it."""

    def __init__(self, like: quatrain.nn.Linear) -> None:
        super().__init__()
        if like.A is None:
            self.register_buffer("A", quatrain.algebra.get(like.algebra).table.to(like.S.dtype))
        else:
            self.A = nn.Parameter(like.A.detach().clone())
        self.S = nn.Parameter(like.S.detach().clone())
        self.bias = nn.Parameter(like.bias.detach().clone())

    def forward(self, x: Tensor) -> Tensor:
        n, k, d = self.S.shape
        H = torch.einsum("iab,ikd->akbd", self.A, self.S).reshape(n * k, n * d)
        return nn.functional.linear(x, H, self.bias)


def speechbrain(like: quatrain.nn.Linear) -> nn.Module:
    """speechbrain's quaternion layer with the weights of ``like``: it holds the components' blocks transposed."""
    layer = QLinear(n_neurons=like.out_features // 4, input_shape=[1, like.in_features])
    with torch.no_grad():
        for weight, block in zip((layer.r_weight, layer.i_weight, layer.j_weight, layer.k_weight), like.S):
            weight.copy_(block.T)
        layer.bias.copy_(like.bias)
    return layer


def real(like: quatrain.nn.Linear) -> nn.Module:
    """torch's own layer of the same sizes, holding H: n times the weights."""
    layer = nn.Linear(like.in_features, like.out_features)
    with torch.no_grad():
        layer.weight.copy_(like.weight)
        layer.bias.copy_(like.bias)
    return layer


def makers(algebra: str) -> dict:
    """By name; each makes a rival that computes what a given layer does."""
    found = {"torch.nn.Linear": real, "materialised": Materialised}
    if algebra == "quaternion" and QLinear is not None:
        found["speechbrain"] = speechbrain
    return found


def with_linears(model: nn.Module, make) -> nn.Module:
    """``model`` with each of quatrain's linear layers replaced in place by its rival."""
    for name, child in model.named_children():
        if isinstance(child, quatrain.nn.Linear):
            setattr(model, name, make(child))
        else:
            with_linears(child, make)
    return model
