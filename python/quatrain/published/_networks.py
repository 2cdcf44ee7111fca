"""Whole networks."""

from __future__ import annotations

import warnings
from typing import Mapping, Sequence

import torch
from torch import Tensor

from .. import models
from ..models.resnet import _DEPTHS, norm_name
from ._state import State


def _resnet_names(blocks: Sequence[int], convolutions: int, fixup: bool) -> tuple[dict[str, str], dict[str, str]]:
    """By the names of our layers, and of our scalars, those of the published ones."""
    names, scalars = {"stem": "conv1", "head": "linear"}, {}
    numbers = range(1, convolutions + 1)
    parts, factors = {f"conv{number}": f"conv{number}" for number in numbers} | {"shortcut": "shortcut.0"}, {"alpha": "res_weight"}
    if fixup:
        scalars = {"after_stem": "bias1", "before_head": "bias2"}
        factors = {f"before{number}": f"bias{number}a" for number in numbers} | {"scale": "scale"}
        factors |= {f"after{number}": f"bias{number}b" for number in numbers}
    else:
        names["stem_norm"] = "bn1"
        parts |= {norm_name(f"conv{number}"): f"bn{number}" for number in numbers} | {"shortcut_norm": "shortcut.1"}
    places = [f"layer{stage}.{number}" for stage, count in enumerate(blocks, 1) for number in range(count)]
    for block, place in enumerate(places):
        names |= {f"blocks.{block}.{ours}": f"{place}.{theirs}" for ours, theirs in parts.items()}
        scalars |= {f"blocks.{block}.{ours}": f"{place}.{theirs}" for ours, theirs in factors.items()}
    return names, scalars


def _resnet_tensors(tensors: State, names: Mapping[str, str], scalars: Mapping[str, str]) -> tuple[dict[str, Tensor], list[str]]:
    """The tensors under our names; the published convolutions that have a bias."""
    found = {ours: tensors.rest[theirs] for ours, theirs in scalars.items() if theirs in tensors.rest}
    biased = []
    for ours, theirs in names.items():
        part, last = tensors.below(theirs), ours.split(".")[-1]
        if last == "shortcut" and not part.rest:
            continue
        if last in ("stem", "shortcut") or last.startswith("conv"):
            A, F, _, drops = part.convolution()
            if part.rest:
                raise ValueError(f"{part.what}: '{part.prefix}{next(iter(part.rest))}' is of no layer of a ResNet")
            found |= {f"{ours}.F": F} | ({f"{ours}.A": A} if A.size(0) > 1 else {})
            biased += [theirs] if drops else []
        else:
            found |= {f"{ours}.{name}": tensor for name, tensor in part.rest.items()}
    return found, biased


def resnet(state: Mapping[str, Tensor], prefix: str = "") -> models.ResNet:
    """The network with the weights of HyperNets' or PHYDI's ``PHCResNet`` and ``PHCResNetLarge``, in eval mode.

    Depth, widths, n and classes are those of the tensors. Where the blocks have ``res_weight``, the network is
    ``residual="code"``, where there is ``bias1`` (PHYDI's ``FixupResNet``) ``"fixup"``, and else ``"plain"``. Scores are equal
    for images of 32 x 32 pixels, of which the published network takes the mean. The convolutions' biases are never added; they
    are dropped, with one warning where some are not zero.

    Args:
        state: a state dict with ``conv1``, ``bn1``, ``layer1`` to ``layer4`` and ``linear``.
        prefix: of these names, without the last dot: ``module`` of a network that was trained in parallel.

    Raises ValueError where a tensor is missing, has another shape or belongs to a network that ours is not: other numbers of
    blocks, a product with ``kron_weights`` over a kernel of more than one place, a second sum.

    >>> state = torch.load("phcresnet18.pt", weights_only=True)  # doctest: +SKIP
    >>> quatrain.published.resnet(state)  # doctest: +SKIP
    """
    tensors = State("published.resnet", state, prefix)
    where = f"published.resnet: '{tensors.prefix}"
    fixup = "bias1" in tensors.rest
    blocks = tuple(len({name.split(".")[1] for name in tensors.rest if name.startswith(f"layer{stage}.")}) for stage in range(1, 5))
    convolutions = 3 if any(name.startswith("layer1.0.conv3.") for name in tensors.rest) else 2
    depth = next((depth for depth, made in _DEPTHS.items() if made == (blocks, convolutions == 3)), None)
    if depth is None:
        raise ValueError(
            f"{where}layer1' to 'layer4' must have as many blocks as a ResNet of depth {', '.join(map(str, _DEPTHS))}, got "
            f"{list(blocks)} of {convolutions} convolutions"
        )
    names, scalars = _resnet_names(blocks, convolutions, fixup)
    found, biased = _resnet_tensors(tensors, names, scalars)
    if biased:
        warnings.warn(
            f"published.resnet: the biases of {len(biased)} convolutions, the first '{tensors.prefix}{biased[0]}', are dropped: the "
            "published layers never add them",
            stacklevel=2,
        )
    stem, first = found["stem.F"], [found[f"blocks.{sum(blocks[:stage])}.conv1.F"] for stage in range(4)]
    n = first[0].size(0)
    net = models.ResNet(
        stem.size(0) * stem.size(2),
        tensors.below("linear").take("bias").numel(),
        depth=depth,
        widths=[F.size(0) * F.size(1) for F in first],
        residual="fixup" if fixup else "code" if any(name.endswith("alpha") for name in found) else "plain",
        real_stem=stem.size(0) < n,
        algebra=f"phm({n})",
        device=stem.device,
        dtype=stem.dtype,
    )

    def told(name: str) -> str:
        owner, _, last = name.rpartition(".")
        return tensors.prefix + (scalars.get(name) or f"{names[owner]}.{last}")

    mine = net.state_dict()
    for name, tensor in mine.items():
        theirs = found.setdefault(name, tensor) if name.endswith("num_batches_tracked") else found.get(name)
        if theirs is None:
            raise ValueError(f"published.resnet: there is no '{told(name)}'")
        if theirs.numel() != tensor.numel() or (theirs.dim() > 1 and theirs.shape != tensor.shape):
            raise ValueError(f"published.resnet: '{told(name)}' must have the shape {list(tensor.shape)}, got {list(theirs.shape)}")
        found[name] = theirs.reshape(tensor.shape)
    known = tuple(f"{theirs}." for theirs in (*names.values(), *scalars.values()))
    others = [tensors.prefix + name for name in tensors.rest if not f"{name}.".startswith(known)]
    others += [told(name) for name in found if name not in mine]
    if others:
        raise ValueError(f"published.resnet: '{others[0]}' is of a network that ours is not")
    net.load_state_dict(found)
    return net.eval()
