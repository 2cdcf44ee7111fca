"""Networks with hypercomplex layers as networks of torch's layers alone, every H written out."""

from __future__ import annotations

import copy
from typing import Any, Iterator

import torch
from torch import Tensor, nn
from torch.fx import GraphModule, Tracer
from torch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

from . import nn as layers
from ._recurrent_twins import _OURS, _SHARED, real_state
from ._replaceable import _CONVOLUTIONS, hooked
from .models import ResNet, ResNetBlock
from .models.resnet import norm_name

__all__ = ["materialise"]

_TWINS = _CONVOLUTIONS | _OURS | {nn.Linear: layers.Linear, nn.MultiheadAttention: layers.TorchMultiheadAttention}
_TORCHS: dict[type[nn.Module], Any] = {ours: torchs for torchs, ours in _TWINS.items()}
# Of layers and operators of torch's, once their own layers are torch's.
_NETWORKS = (ResNet, ResNetBlock)
# The batch norm after each; torch names it by the axes.
_NORMS: dict[type[nn.Module], Any] = {
    nn.Linear: nn.BatchNorm1d,
    nn.Conv1d: nn.BatchNorm1d,
    nn.Conv2d: nn.BatchNorm2d,
    nn.Conv3d: nn.BatchNorm3d,
    nn.ConvTranspose1d: nn.BatchNorm1d,
    nn.ConvTranspose2d: nn.BatchNorm2d,
    nn.ConvTranspose3d: nn.BatchNorm3d,
}


def _problem(layer: Any) -> str:
    """Why no layer of torch is the same; empty where one is."""
    if type(layer) not in _TORCHS and type(layer) not in _NETWORKS:
        return f"is a {type(layer).__name__}, which torch.nn does not have"
    if hooked(layer):
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


def _attention(layer: layers.TorchMultiheadAttention) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Torch has the three projections in one parameter where they are of one size."""
    projections: Any = (layer.q_proj, layer.k_proj, layer.v_proj, layer.out_proj)
    *inputs, output = (part.matrix() if isinstance(part, layers.Linear) else part.weight for part in projections)
    state = {f"{letter}_proj_weight": weight for letter, weight in zip("qkv", inputs)} | {"out_proj.weight": output}
    if layer.kdim == layer.vdim == layer.embed_dim:
        state["in_proj_weight"] = torch.cat(inputs)
    bias, extra = layer.q_proj.bias is not None, layer.bias_k is not None
    if bias:
        state |= {"in_proj_bias": torch.cat([part.bias for part in projections[:3]]), "out_proj.bias": layer.out_proj.bias}
    if extra:
        state |= {"bias_k": layer.bias_k, "bias_v": layer.bias_v}
    names = ("embed_dim", "num_heads", "dropout", "add_zero_attn", "kdim", "vdim", "batch_first")
    return state, {"bias": bias, "add_bias_kv": extra} | {name: getattr(layer, name) for name in names}


def _state_and_options(layer: Any) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The parameters of torch's layer, as far as ours has them, and its options."""
    if type(layer) in _OURS.values():
        options = {name: getattr(layer, name) for name in _SHARED if hasattr(layer, name)}
        if not isinstance(layer, layers.LSTM):
            options.pop("proj_size", None)  # torch takes it of an LSTM alone
        if isinstance(layer, (layers.RNN, layers.RNNCell)):
            options["nonlinearity"] = layer.cell.removeprefix("rnn_")
        return real_state(layer), options
    if isinstance(layer, layers.TorchMultiheadAttention):
        return _attention(layer)
    state = {} if layer.bias is None else {"bias": layer.bias}
    if isinstance(layer, layers.Linear):
        names: tuple[str, ...] = ("in_features", "out_features")
        state["weight"] = layer.matrix()
    else:
        last = "output_padding" if layer.transposed else "padding_mode"
        names = ("in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", last)
        state["weight"] = _dense(layer.weight.as_subclass(Tensor), layer.spec.n, layer.groups)
    return state, {"bias": layer.bias is not None} | {name: getattr(layer, name) for name in names}


def _written_out(layer: Any) -> nn.Module:
    """The layer of torch that computes the same."""
    first = next(layer.parameters())
    with torch.inference_mode(False), torch.enable_grad():  # which tells what is made of a frozen parameter alone
        state, options = _state_and_options(layer)
    with torch.no_grad():
        made: nn.Module = _TORCHS[type(layer)](**options, device=first.device, dtype=first.dtype)
        for name, parameter in made.named_parameters():
            # Two directions may share their weights, and one bias may be all there is.
            source = name if name in state else name.removesuffix("_reverse")
            if source in state:
                parameter.copy_(state[source])
            else:
                parameter.zero_()
                source = source.replace("bias_hh", "bias_ih")
            parameter.requires_grad_(source not in state or state[source].requires_grad)
    return made.train(layer.training)


def _neighbours(model: nn.Module) -> Iterator[tuple[nn.Module, str, str]]:
    """Where a norm may stand right behind a layer: in which module, and the names of the two."""
    for part in model.modules():
        names = list(part._modules)
        if type(part) is nn.Sequential:
            yield from ((part, *pair) for pair in zip(names, names[1:]))
        elif type(part) in _NETWORKS:
            yield from ((part, name, norm_name(name)) for name in names if norm_name(name) in names)


def _fold_norms(model: nn.Module) -> None:
    """Folds norms into the layers right before them; an Identity keeps the names of the others."""
    places: dict[nn.Module, int] = {}
    for part in model.modules():
        for child in part._modules.values():
            if child is not None:
                places[child] = places.get(child, 0) + 1
    for part, name, after in _neighbours(model):
        layer: Any = part._modules[name]
        norm: Any = part._modules[after]
        if type(layer) not in _NORMS or type(norm) is not _NORMS[type(layer)] or places[layer] > 1 or places[norm] > 1:
            continue
        transposed = isinstance(layer, nn.modules.conv._ConvTransposeNd)
        if layer.training or norm.training or norm.running_mean is None or hooked(layer) or hooked(norm):
            continue
        if transposed and layer.groups > 1:  # torch's function takes none
            continue
        if not isinstance(layer, nn.Linear):
            part._modules[name] = fuse_conv_bn_eval(layer, norm, transposed)
        elif norm.affine and norm.num_features == layer.out_features:
            part._modules[name] = fuse_linear_bn_eval(layer, norm)
        else:
            continue
        part._modules[after] = nn.Identity().eval()


def graph_module(network: nn.Module, tracer: Tracer) -> GraphModule:
    """The network as a graph of the layers that the tracer does not go into, under their names."""
    graph = tracer.trace(network)
    for node in graph.nodes:
        node.type = None  # the text of an annotation, which cannot be pickled
    made = GraphModule(network, graph, type(network).__name__)
    for part in made.modules():
        if type(part) is nn.Module:  # the tracer's, which hold the layers
            part.training = network.training
    return made


def _traced(network: nn.Module) -> nn.Module:
    """The network as torch's own graph of its layers: a class of ours is no part of it."""
    tracer = Tracer()
    if isinstance(network, ResNet):
        tracer.traced_func_name = "_layers"
    made = graph_module(network, tracer)
    for name, buffer in network.named_buffers(recurse=False):
        made.register_buffer(name, buffer)
    return made


def _without_networks(model: nn.Module) -> nn.Module:
    """The model with each network of ours traced."""
    if isinstance(model, _NETWORKS):
        return _traced(model)
    traced: dict[nn.Module, nn.Module] = {}
    for part in list(model.modules()):
        for name, child in part._modules.items():
            if isinstance(child, _NETWORKS) and not isinstance(part, _NETWORKS):
                if child not in traced:
                    traced[child] = _traced(child)
                part._modules[name] = traced[child]
    return model


def materialise(model: nn.Module, fold_norms: bool = False) -> nn.Module:
    """A copy of a model with torch's layers in the place of ours, every H written out: it computes the same without quatrain.

    ``Linear``, convolutions and recurrent layers and their cells become those of ``torch.nn``, with n times as many weights.
    A state dict of the copy has torch's names and loads into the same network of torch's layers. A convolution with groups
    becomes one without, with zeros between the groups, since ours are parts of each component. What ``convert`` put in the
    place of a ``torch.nn.MultiheadAttention`` is one again. A ``quatrain.models.ResNet`` becomes a ``torch.fx.GraphModule`` with
    layers of the same names. Layers that share parameters without being one module share none afterwards.

    Args:
        model: any module; it stays as it is.
        fold_norms: folds torch's batch norms that are in eval mode into the weights of the layer right before: behind a
            convolution, or behind a ``Linear``, whose outputs must then be rows (B, features), in a ``torch.nn.Sequential`` or a ResNet. An ``Identity``
            stands in their place.

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
        if ours and type(layer) not in _NETWORKS:
            made[layer] = _written_out(layer)
    # What is in the memo is taken as the copy, so that ours are not copied.
    result: nn.Module = copy.deepcopy(model, {id(layer): torchs for layer, torchs in made.items()})
    if fold_norms:
        _fold_norms(result)
    return _without_networks(result)
