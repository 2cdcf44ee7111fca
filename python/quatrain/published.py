"""Weights of hypercomplex networks that others trained, as layers that compute the same.

Other toolkits have the four components of a quaternion matrix as ``r_weight``, ``i_weight``, ``j_weight`` and ``k_weight``,
each (in/4, out/4), for the left product W * x of components that are concatenated, as here. HyperNets and PHYDI have ``A``
and ``F`` of a convolution, HyperNets ``a`` and ``s`` of a linear layer, as here.
"""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any, Mapping, Sequence

import torch
from torch import Tensor

from . import models, nn, ops
from ._recurrent_twins import set_nearest
from .models.resnet import _DEPTHS, norm_name
from .nn import _check

__all__ = ["SOURCES", "Source", "convolution", "linear", "recurrent", "resnet"]

_COMPONENTS = ("r_weight", "i_weight", "j_weight", "k_weight")


@dataclasses.dataclass(frozen=True)
class Source:
    """A recurrent layer of another toolkit: what its parameters are called, and which gate each map computes."""

    layer: type[nn.LSTM] | type[nn.RNN]
    #: the name of a map, with ``{map}`` and ``{layer}``, the number of its layer
    name: str
    #: Of the gates that a map computes, in torch's letters (h: no gates), its names for the input and for the state. Where
    #: they are several, the components of one product are the gates: each gate is a whole component.
    maps: Mapping[str, tuple[str, str]]
    batch_first: bool
    #: the name of what the states begin with; ours begin with zero
    start: str = ""


_GATE_BY_GATE = {"i": ("wix", "uih"), "f": ("wfx", "ufh"), "g": ("wcx", "uch"), "o": ("wox", "uoh")}

#: By toolkit and class.
SOURCES: Mapping[str, Source] = {
    "orkis.QLSTM": Source(nn.LSTM, "{map}", _GATE_BY_GATE, batch_first=False),
    "pytorch-kaldi.QLSTM": Source(nn.LSTM, "{map}.{layer}", _GATE_BY_GATE, batch_first=False),
    "speechbrain.QLSTM": Source(nn.LSTM, "rnn.{layer}.{map}", {"ifog": ("w", "u")}, True, "rnn.{layer}.h_init"),
    "speechbrain.QRNN": Source(nn.RNN, "rnn.{layer}.{map}", {"h": ("w", "u")}, True, "rnn.{layer}.h_init"),
}


class _State:
    """The tensors below a prefix, taken one after the other."""

    def __init__(self, what: str, state: Mapping[str, Tensor], prefix: str) -> None:
        self.what, self.prefix = what, prefix + "." if prefix else ""
        begins = {name: tensor for name, tensor in state.items() if name.startswith(self.prefix)}
        self.rest = {name[len(self.prefix) :]: tensor.detach() for name, tensor in begins.items()}

    def take(self, name: str) -> Tensor:
        if name not in self.rest:
            raise ValueError(f"{self.what}: there is no '{self.prefix}{name}'")
        return self.rest.pop(name)

    def below(self, name: str) -> _State:
        """Those whose names begin with this one and a dot; they stay in ``rest``."""
        whole = {self.prefix + rest: tensor for rest, tensor in self.rest.items()}
        return _State(self.what, whole, self.prefix + name)

    def map(self, name: str) -> tuple[Tensor, Tensor | None]:
        """S (4, out/4, in/4) of a quaternion map, and its bias."""
        begin = name + "." if name else ""
        parts = [self.take(begin + component) for component in _COMPONENTS]
        if parts[0].dim() != 2 or any(part.shape != parts[0].shape for part in parts):
            raise ValueError(
                f"{self.what}: '{self.prefix}{begin}r_weight' and the other components must have one shape (in/4, out/4), "
                f"got {[list(part.shape) for part in parts]}"
            )
        for extra in ("scale_param", "zero_kernel"):
            if begin + extra in self.rest:
                raise ValueError(f"{self.what}: '{self.prefix}{begin}{extra}' is of a map that rotates, W x conj(W), not of W x")
        return torch.stack(parts).transpose(1, 2).contiguous(), self.bias(begin, 4 * parts[0].size(1))

    def bias(self, begin: str, outputs: int) -> Tensor | None:
        """The bias (outputs) of a map, where it has one."""
        bias = self.rest.pop(begin + "bias", None)
        if bias is not None and bias.shape != (outputs,):
            raise ValueError(f"{self.what}: '{self.prefix}{begin}bias' must have the shape ({outputs},), got {tuple(bias.shape)}")
        return bias

    def learned(self, names: tuple[str, str], axes: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        """A (n, n, n) and S (n, out/n, in/n, kernel...) with one of these numbers of axes."""
        A, S = (self.take(name) for name in names)
        n = A.size(0) if A.dim() else 0
        if n == 0 or A.shape != (n, n, n) or S.dim() not in axes or S.size(0) != n:
            kernel = "" if axes == (3,) else ", kernel..."
            raise ValueError(
                f"{self.what}: '{self.prefix}{names[0]}' and '{names[1]}' must have the shapes (n, n, n) and "
                f"(n, out/n, in/n{kernel}), got {list(A.shape)} and {list(S.shape)}"
            )
        return A, A[0, 0, 0] * S if n == 1 else S  # a real layer of ours has no A

    def convolution(self) -> tuple[Tensor, Tensor, Tensor | None, bool]:
        """A, F and kron_weights of a convolution, and whether it has a bias that is not zero, which is never added."""
        where = f"{self.what}: '{self.prefix}"
        A, F = self.learned(("a", "s") if "A" not in self.rest and "a" in self.rest else ("A", "F"), (4, 5, 6))
        n, w = A.size(0), self.rest.pop("kron_weights", None)
        if w is not None and w.numel() != n:
            raise ValueError(f"{where}kron_weights' must have n = {n} values, got {list(w.shape)}")
        for second in ("A2", "F2"):
            if second in self.rest:
                raise ValueError(f"{where}{second}' is of a second sum, H = sum A (x) F + sum A2 (x) F2, which no layer of ours has")
        if w is not None and n == 1:
            F = w.reshape(()) * F
        kernel = list(F.shape[3:])
        if w is not None and any(size > 1 for size in kernel):
            raise ValueError(
                f"{where}kron_weights' is of a product that scatters A over the kernel, so only kernels of one place are the same "
                f"here, got {kernel}"
            )
        bias = self.rest.pop("bias", None)
        return A, F, w, bias is not None and bool(bias.any())


def linear(state: Mapping[str, Tensor], prefix: str = "") -> nn.Linear:
    """The layer with the weights of Orkis's ``QuaternionLinear``, ``QuaternionLinearAutograd``, speechbrain's ``QLinear`` or
    HyperNets' ``PHMLinear``.

    The last holds ``a`` (n, n, n) and ``s`` (n, out/n, in/n) of H = sum_i a_i (x) s_i, which become A and S of
    ``algebra="phm(n)"``; the others are quaternion layers.

    Args:
        state: a state dict that holds PREFIX.r_weight and the others, or PREFIX.a and PREFIX.s, and PREFIX.bias where there
            is one.
        prefix: of the layer's names, without the last dot.

    Raises ValueError where a tensor is missing, has another shape, or belongs to a layer that rotates.

    >>> import torch, quatrain
    >>> state = {f"fc1.{c}_weight": torch.randn(3, 2) for c in "rijk"}
    >>> quatrain.published.linear(state, "fc1")
    Linear(in_features=12, out_features=8, algebra=quaternion, bias=False)
    >>> quatrain.published.linear({"fc2.a": torch.randn(2, 2, 2), "fc2.s": torch.randn(2, 4, 3)}, "fc2")
    Linear(in_features=6, out_features=8, algebra=phm(2), bias=False)
    """
    tensors = _State("published.linear", state, prefix)
    A: Tensor | None = None
    if "a" in tensors.rest:
        A, S = tensors.learned(("a", "s"), (3,))
        bias = tensors.bias("", S.size(0) * S.size(1))
    else:
        S, bias = tensors.map("")
    n = S.size(0)
    layer = nn.Linear(
        n * S.size(2), n * S.size(1), bias is not None, S.device, S.dtype, algebra="quaternion" if A is None else f"phm({n})"
    )
    with torch.no_grad():
        for mine, theirs in ((layer.A, A), (layer.S, S), (layer.bias, bias)):
            if mine is not None and theirs is not None:
                mine.copy_(theirs)
    return layer


def convolution(state: Mapping[str, Tensor], prefix: str = "", **options: Any) -> nn.Conv1d | nn.Conv2d | nn.Conv3d:
    """The convolution over a learned algebra with the weights of HyperNets' ``PHConv1D`` and ``PHMConv2d`` or PHYDI's.

    Theirs hold ``A`` (n, n, n) and ``F`` (n, out/n, in/n, kernel...) of H = sum_i A_i (x) F_i, which become A and F of
    ``algebra="phm(n)"``; some of them are called ``a`` and ``s``. With PHYDI's ``kron_weights`` (n) it is ``wkp(n)``. Their
    ``bias`` is never added; it is dropped, with a warning where it is not zero.

    Args:
        state: a state dict that holds PREFIX.A and PREFIX.F, or PREFIX.a and PREFIX.s.
        prefix: of the layer's names, without the last dot.
        options: stride, padding, dilation and padding_mode, which a state dict does not hold.

    Raises ValueError where a tensor is missing or has another shape, where there is a second sum (``A2``, ``F2``), and for
    ``kron_weights`` with a kernel of more than one place, over which their product scatters the entries of A.

    >>> import torch, quatrain
    >>> state = {"conv1.A": torch.randn(2, 2, 2), "conv1.F": torch.randn(2, 4, 3, 3, 3)}
    >>> quatrain.published.convolution(state, "conv1", padding=1)
    Conv2d(6, 8, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), algebra=phm(2), bias=False)
    """
    tensors = _State("published.convolution", state, prefix)
    A, F, w, biased = tensors.convolution()
    n, kernel = A.size(0), tuple(F.shape[3:])
    if biased:
        warnings.warn(f"published.convolution: '{tensors.prefix}bias' is dropped: the published layer never adds it", stacklevel=2)
    kinds: tuple[Any, ...] = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
    layer: nn.Conv1d | nn.Conv2d | nn.Conv3d = kinds[len(kernel) - 1](
        n * F.size(2),
        n * F.size(1),
        kernel,
        bias=False,
        device=F.device,
        dtype=F.dtype,
        algebra=f"phm({n})" if w is None else f"wkp({n})",
        **options,
    )
    with torch.no_grad():
        for mine, theirs in ((layer.A, A), (layer.F, F), (layer.w, w)):
            if mine is not None and theirs is not None:
                mine.copy_(theirs.reshape(mine.shape))
    return layer


def _resnet_names(blocks: Sequence[int], convolutions: int) -> dict[str, str]:
    """By the names of our layers those of the published ones."""
    names = {"stem": "conv1", "stem_norm": "bn1", "head": "linear"}
    parts = {f"conv{number}": f"conv{number}" for number in range(1, convolutions + 1)}
    parts |= {norm_name(name): name.replace("conv", "bn") for name in parts}
    parts |= {"shortcut": "shortcut.0", "shortcut_norm": "shortcut.1", "alpha": "res_weight"}
    places = [f"layer{stage}.{number}" for stage, count in enumerate(blocks, 1) for number in range(count)]
    for block, place in enumerate(places):
        names |= {f"blocks.{block}.{ours}": f"{place}.{theirs}" for ours, theirs in parts.items()}
    return names


def _resnet_tensors(tensors: _State, names: Mapping[str, str]) -> tuple[dict[str, Tensor], list[str]]:
    """The tensors under our names; the published convolutions that have a bias."""
    found: dict[str, Tensor] = {}
    biased = []
    for ours, theirs in names.items():
        part, last = tensors.below(theirs), ours.split(".")[-1]
        if last == "alpha":
            found |= {ours: tensors.rest[theirs]} if theirs in tensors.rest else {}
        elif last == "shortcut" and not part.rest:
            continue
        elif last in ("stem", "shortcut") or last.startswith("conv"):
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
    ``residual="code"``, and else ``"plain"``. Scores are equal for images of 32 x 32 pixels, of which the published network
    takes the mean. The convolutions' biases are never added; they are dropped, with one warning where some are not zero.

    Args:
        state: a state dict with ``conv1``, ``bn1``, ``layer1`` to ``layer4`` and ``linear``.
        prefix: of these names, without the last dot: ``module`` of a network that was trained in parallel.

    Raises ValueError where a tensor is missing, has another shape or belongs to a network that ours is not: other numbers of
    blocks, a product with ``kron_weights`` over a kernel of more than one place, a second sum, Fixup.

    >>> state = torch.load("phcresnet18.pt", weights_only=True)  # doctest: +SKIP
    >>> quatrain.published.resnet(state)  # doctest: +SKIP
    """
    tensors = _State("published.resnet", state, prefix)
    where = f"published.resnet: '{tensors.prefix}"
    if "bias1" in tensors.rest:
        raise ValueError(f"{where}bias1' is of a network with Fixup, which adds it to the first convolution; ours adds nothing there")
    blocks = tuple(len({name.split(".")[1] for name in tensors.rest if name.startswith(f"layer{stage}.")}) for stage in range(1, 5))
    convolutions = 3 if any(name.startswith("layer1.0.conv3.") for name in tensors.rest) else 2
    depth = next((depth for depth, made in _DEPTHS.items() if made == (blocks, convolutions == 3)), None)
    if depth is None:
        raise ValueError(
            f"{where}layer1' to 'layer4' must have as many blocks as a ResNet of depth {', '.join(map(str, _DEPTHS))}, got "
            f"{list(blocks)} of {convolutions} convolutions"
        )
    names = _resnet_names(blocks, convolutions)
    found, biased = _resnet_tensors(tensors, names)
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
        residual="code" if any(name.endswith("alpha") for name in found) else "plain",
        real_stem=stem.size(0) < n,
        algebra=f"phm({n})",
        device=stem.device,
        dtype=stem.dtype,
    )

    def told(name: str) -> str:
        owner, _, last = name.rpartition(".")
        return tensors.prefix + (names.get(name) or f"{names[owner]}.{last}")

    mine = net.state_dict()
    for name, tensor in mine.items():
        theirs = found.setdefault(name, tensor) if name.endswith("num_batches_tracked") else found.get(name)
        if theirs is None:
            raise ValueError(f"published.resnet: there is no '{told(name)}'")
        if theirs.numel() != tensor.numel() or (theirs.dim() > 1 and theirs.shape != tensor.shape):
            raise ValueError(f"published.resnet: '{told(name)}' must have the shape {list(tensor.shape)}, got {list(theirs.shape)}")
        found[name] = theirs.reshape(tensor.shape)
    known = tuple(f"{layer}." for layer in names.values())
    others = [tensors.prefix + name for name in tensors.rest if not f"{name}.".startswith(known)]
    others += [told(name) for name in found if name not in mine]
    if others:
        raise ValueError(f"published.resnet: '{others[0]}' is of a network that ours is not")
    net.load_state_dict(found)
    return net.eval()


def _gates(source: Source, state: _State, number: int, which: int) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """By gate: the real matrices of a layer's maps for the input (which = 0) or the state (1), and the biases."""
    matrices: dict[str, Tensor] = {}
    biases: dict[str, Tensor] = {}
    for letters, names in source.maps.items():
        S, bias = state.map(source.name.format(map=names[which], layer=number))
        H = ops.materialise(S, "quaternion")
        matrices.update(zip(letters, H.chunk(len(letters))))
        if bias is not None:
            biases.update(zip(letters, bias.chunk(len(letters))))
    return matrices, biases


def _count_layers(source: Source, state: _State) -> int:
    if "{layer}" not in source.name:
        return 1
    name, number = next(iter(source.maps.values()))[0], 0
    while f"{source.name.format(map=name, layer=number)}.r_weight" in state.rest:
        number += 1
    return max(number, 1)  # so that the first is missed by name


def _real_state(source: Source, state: _State, layers: int) -> tuple[dict[str, Tensor], int]:
    """The parameters of the real layer that computes the same, under torch's names; the number of biases."""
    order = "ifgo" if source.layer is nn.LSTM else "h"
    real, kinds = {}, 0
    for number in range(layers):
        for which, kind in enumerate(("ih", "hh")):
            matrices, biases = _gates(source, state, number, which)
            real[f"weight_{kind}_l{number}"] = torch.cat([matrices[gate] for gate in order])
            if biases and len(biases) < len(order):
                raise ValueError(f"{state.what}: layer {number} has biases of {len(biases)} of its {len(order)} gates ({kind})")
            if biases:
                real[f"bias_{kind}_l{number}"] = torch.cat([biases[gate] for gate in order])
                kinds = max(kinds, which + 1)
        start = state.rest.pop(source.start.format(layer=number), None)
        if start is not None and start.any():
            raise ValueError(f"{state.what}: the states of layer {number} do not begin with zero, as those of our layers do")
    return real, kinds


def recurrent(
    state: Mapping[str, Tensor], source: str, prefix: str = "", bidirectional: bool = False, nonlinearity: str = "tanh"
) -> tuple[nn.LSTM | nn.RNN, dict[str, Tensor]]:
    """The recurrent layers with the weights of another toolkit's, and the tensors that do not belong to them, by their names.

    What comes out computes the same in eval mode, from states that begin with zero. It is a quaternion layer where ours can be
    the same, and else a real one (``algebra="real"``) of four times as many numbers: speechbrain's QLSTM takes the four
    components of one product as its four gates, so that no gate is a quaternion map; and where several layers go both ways,
    these toolkits put one direction after the other, so that the layers above take other components from them than ours do.

    Args:
        state: a state dict.
        source: one of ``SOURCES``.
        prefix: of the layers' names, without the last dot.
        bidirectional: whether they go both ways; the two directions share their weights. Outputs are one direction after the
            other (``direction_first``).
        nonlinearity: of ``speechbrain.QRNN``: tanh or relu.

    Raises ValueError where a tensor is missing or has another size, or states begin with other values than zero.

    >>> import torch, quatrain
    >>> state = {f"w{gate}x.{c}_weight": torch.randn(3, 2) for gate in "ifoc" for c in "rijk"}
    >>> state |= {f"u{gate}h.{c}_weight": torch.randn(2, 2) for gate in "ifoc" for c in "rijk"}
    >>> quatrain.published.recurrent(state | {"fco.bias": torch.zeros(3)}, "orkis.QLSTM")
    (LSTM(12, 8, algebra=quaternion, num_layers=1, bias=False, dropout=0.0, bidirectional=False), {'fco.bias': tensor([0., 0., 0.])})
    """
    _check.choice("published.recurrent: source", source, tuple(SOURCES))
    _check.choice("published.recurrent: nonlinearity", nonlinearity, ("tanh", "relu"))
    kind, tensors = SOURCES[source], _State("published.recurrent", state, prefix)
    layers = _count_layers(kind, tensors)
    real, biases = _real_state(kind, tensors, layers)
    hidden, directions = real["weight_hh_l0"].size(1), 2 if bidirectional else 1
    gates = 4 if kind.layer is nn.LSTM else 1
    for number in range(layers):
        size = directions * hidden if number else real["weight_ih_l0"].size(1)
        for name, sizes in (("ih", (gates * hidden, size)), ("hh", (gates * hidden, hidden))):
            found = real[f"weight_{name}_l{number}"].shape
            if found != sizes:
                raise ValueError(
                    f"published.recurrent: layer {number} has a map of {list(found)} where {list(sizes)} is right for {source} "
                    f"with bidirectional = {bidirectional}"
                )
    same = all(len(letters) == 1 for letters in kind.maps) and (layers == 1 or not bidirectional)
    weight = real["weight_ih_l0"]
    options: dict[str, Any] = {} if kind.layer is nn.LSTM else {"nonlinearity": nonlinearity}
    layer = kind.layer(
        weight.size(1),
        hidden,
        layers,
        bias=biases > 0,
        batch_first=kind.batch_first,
        bidirectional=bidirectional,
        device=weight.device,
        dtype=weight.dtype,
        algebra="quaternion" if same else "real",
        single_bias=biases == 1,
        share_directions=bidirectional,
        direction_first=bidirectional,
        **options,
    )
    set_nearest(layer, real)  # which is exact: the matrices are of the algebra
    return layer, {tensors.prefix + name: tensor for name, tensor in tensors.rest.items()}
