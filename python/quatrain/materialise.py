"""Networks with hypercomplex layers as networks of torch's layers alone, every H written out."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from . import nn as layers
from ._recurrent_twins import _OURS, _SHARED, real_state
from .convert import _CONVOLUTIONS, _HOOKS

__all__ = ["materialise"]

_TORCHS: dict[type[nn.Module], Any] = {ours: torchs for torchs, ours in (_CONVOLUTIONS | _OURS | {nn.Linear: layers.Linear}).items()}
# The batch norm after each; torch names it by the axes.
_NORMS: dict[type[nn.Module], Any] = {
    nn.Conv1d: nn.BatchNorm1d,
    nn.Conv2d: nn.BatchNorm2d,
    nn.Conv3d: nn.BatchNorm3d,
    nn.ConvTranspose1d: nn.BatchNorm1d,
    nn.ConvTranspose2d: nn.BatchNorm2d,
    nn.ConvTranspose3d: nn.BatchNorm3d,
}


def _problem(layer: Any) -> str:
    """Why no layer of torch is the same; empty where one is."""
    if type(layer) not in _TORCHS:
        return f"is a {type(layer).__name__}, which torch.nn does not have"
    if any(getattr(layer, hooks) for hooks in _HOOKS):
        return "has hooks, which a new layer would lose (remove them, and register them again afterwards)"
    if getattr(layer, "cell", "") == "lstm_printed":
        return "has the cell of printed = True, which torch's LSTM does not have"
    if getattr(layer, "recurrent_dropout", 0) > 0:
        return "has recurrent_dropout, which torch's layer does not have (set it to 0)"
    if getattr(layer, "bidirectional", False) and layer.spec.n > 1 and not layer.direction_first:
        return "joins its directions inside each component, and torch's puts one after the other (take direction_first = True)"
    return ""


def _dense(kernel: Tensor, n: int, groups: int) -> Tensor:
    """The kernel of the layer without groups, with zeros between them: ours are parts of each component, torch's are not."""
    if groups == 1:
        return kernel
    (rows, columns), sizes = kernel.shape[:2], kernel.shape[2:]
    dense = kernel.new_zeros(n, groups, rows // (n * groups), n, groups, columns // n, *sizes)
    parts = kernel.reshape(n, groups, rows // (n * groups), n, columns // n, *sizes)
    for group in range(groups):
        dense[:, group, :, :, group] = parts[:, group]
    return dense.reshape(rows, columns * groups, *sizes)


def _state_and_options(layer: Any) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The parameters of torch's layer, as far as ours has them, and its options."""
    if type(layer) in _OURS.values():
        options = {name: getattr(layer, name) for name in _SHARED if hasattr(layer, name)}
        if not isinstance(layer, layers.LSTM):
            options.pop("proj_size", None)  # torch takes it of an LSTM alone
        if isinstance(layer, (layers.RNN, layers.RNNCell)):
            options["nonlinearity"] = layer.cell.removeprefix("rnn_")
        return real_state(layer), options
    state = {} if layer.bias is None else {"bias": layer.bias}
    if isinstance(layer, layers.Linear):
        names: tuple[str, ...] = ("in_features", "out_features")
        state["weight"] = layer.matrix()
    else:
        last = "output_padding" if layer._transposed else "padding_mode"
        names = ("in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", last)
        state["weight"] = _dense(layer.weight.as_subclass(Tensor), layer.spec.n, layer.groups)
    return state, {"bias": layer.bias is not None} | {name: getattr(layer, name) for name in names}


def _written_out(layer: Any) -> nn.Module:
    """The layer of torch that computes the same."""
    first = next(layer.parameters())
    with torch.no_grad():
        state, options = _state_and_options(layer)
        made: nn.Module = _TORCHS[type(layer)](**options, device=first.device, dtype=first.dtype)
        for name, parameter in made.named_parameters():
            # Two directions may share their weights, and one bias may be all there is.
            found = state.get(name, state.get(name.removesuffix("_reverse")))
            if found is None:
                parameter.zero_()
            else:
                parameter.copy_(found)
            parameter.requires_grad_(any(one.requires_grad for one in layer.parameters()))
    return made.train(layer.training)


def _fold_norms(model: nn.Module) -> None:
    """Folds what stands behind a convolution in a Sequential into it; an Identity keeps the names of the others."""
    places: dict[nn.Module, int] = {}
    for part in model.modules():
        for child in part._modules.values():
            if child is not None:
                places[child] = places.get(child, 0) + 1
    for part in model.modules():
        if type(part) is not nn.Sequential:
            continue
        names = list(part._modules)
        for name, after in zip(names, names[1:]):
            layer: Any = part._modules[name]
            norm: Any = part._modules[after]
            if type(layer) not in _NORMS or type(norm) is not _NORMS[type(layer)] or places[layer] > 1 or places[norm] > 1:
                continue
            transposed = isinstance(layer, nn.modules.conv._ConvTransposeNd)
            hooked = any(getattr(one, hooks) for one in (layer, norm) for hooks in _HOOKS)
            if layer.training or norm.training or norm.running_mean is None or hooked or (transposed and layer.groups > 1):
                continue
            part._modules[name] = fuse_conv_bn_eval(layer, norm, transposed)
            part._modules[after] = nn.Identity().eval()


def materialise(model: nn.Module, fold_norms: bool = False) -> nn.Module:
    """A copy of a model with torch's layers in the place of ours, every H written out: it computes the same without quatrain.

    ``Linear``, convolutions and recurrent layers and their cells become those of ``torch.nn``, with n times as many weights.
    A state dict of the copy has torch's names and loads into the same network of torch's layers. A convolution with groups
    becomes one without, with zeros between the groups, since ours are parts of each component. Layers that share parameters
    without being one module share none afterwards.

    Args:
        model: any module; it stays as it is.
        fold_norms: folds torch's batch norms that are in eval mode, each right behind a convolution in a
            ``torch.nn.Sequential``, into the convolution's weights. An ``Identity`` stands in their place.

    Raises ValueError, which names the layer, where torch has none that is the same: attention and Transformers of ours,
    ``WhiteningNorm``, recurrent layers that join their directions inside components, layers with hooks.

    >>> import torch, quatrain
    >>> model = torch.nn.Sequential(quatrain.nn.Linear(8, 16), torch.nn.ReLU(), quatrain.nn.Linear(16, 4))
    >>> quatrain.materialise(model)[0]
    Linear(in_features=8, out_features=16, bias=True)
    """
    made: dict[nn.Module, nn.Module] = {}
    for name, layer in model.named_modules():
        ours = type(layer).__module__.startswith("quatrain.") or isinstance(layer, layers.HypercomplexLayer)
        if ours and (problem := _problem(layer)):
            raise ValueError(f"materialise: '{name}' {problem}" if name else f"materialise: the model {problem}")
        if ours:
            made[layer] = _written_out(layer)
    # What is in the memo is taken as the copy, so that ours are not copied.
    result: nn.Module = copy.deepcopy(model, {id(layer): torchs for layer, torchs in made.items()})
    if fold_norms:
        _fold_norms(result)
    return result
