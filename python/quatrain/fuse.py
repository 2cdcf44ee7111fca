"""Batch norms, sums and activations computed together with the convolutions before them, for inference."""

from __future__ import annotations

import copy
import operator
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx import GraphModule, Node, Proxy, Tracer
from torch.nn import functional
from torch.nn.utils.fusion import fuse_conv_bn_eval

from . import nn as layers
from . import ops
from ._replaceable import _CONVOLUTIONS, _OUR_CONVOLUTIONS, hooked, replace
from .materialise import _NORMS, _TORCHS, graph_module
from .models.resnet import scale_and_shift

__all__ = ["fuse"]

# What the operator computes while a value is in the cache; others would be a pass of their own there too.
_RIDING = {"relu": nn.ReLU, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid}
_ACTIVATIONS: dict[Any, str] = {
    form: name
    for name, kind in _RIDING.items()
    for form in (kind, name, f"{name}_", getattr(torch, name), getattr(torch, f"{name}_"), getattr(functional, name))
}
_SUMS = (operator.add, torch.add, "add")
# Layers that give what they are given, in eval mode.
_NOTHING = (nn.Identity, nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)
# Norms of others that are torch's in eval mode; timm's has a dropout and an activation behind.
_NORMS_OF_OTHERS = {("timm.layers.norm_act", "BatchNormAct2d"): ("drop", "act"), ("torchvision.ops.misc", "FrozenBatchNorm2d"): ()}
# What Python calls for `+=` and its kin.
_IN_PLACE = ("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "iand", "ior", "ixor", "ilshift", "irshift")


class ConvolutionWithEpilogue(nn.Module):
    """What ``fuse`` puts in the place of a convolution, a norm, a sum and an activation that follow each other.

    Parameters: ``scale`` and ``shift`` (out_channels), where there is a norm; those of ``convolution``.
    """

    scale: Tensor | None
    shift: Tensor | None

    def __init__(self, convolution: Any, norm: Any, activation: str) -> None:
        super().__init__()
        self.convolution, self.activation = convolution, activation
        with torch.no_grad():
            values = (None, None) if norm is None else scale_and_shift(norm)
        for name, value in zip(("scale", "shift"), values):
            made = None if value is None else nn.Parameter(value, norm.weight.requires_grad)
            self.register_parameter(name, made)
        self.training = False

    def forward(self, x: Tensor, *residual: Any) -> Tensor:
        layer = self.convolution
        if self.scale is not None and x.dim() == layer._axes + 1:
            raise ValueError(
                f"fuse: behind a fused norm images come in a batch, got one of shape {list(x.shape)} (x.unsqueeze(0) makes a batch of it)"
            )
        if all(self._rides(added, x) for added in residual):
            return layer.forward_with_epilogue(x, self.scale, self.shift, *residual, activation=self.activation)
        return ops.split_activation(layer.forward_with_epilogue(x, self.scale, self.shift) + residual[0], self.activation)

    def _rides(self, residual: Any, x: Tensor) -> bool:
        """False where the sum broadcasts or gives another type, which only its values tell."""
        kind = x.device.type
        if not isinstance(residual, Tensor) or torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind):
            return False
        return residual.dtype == x.dtype and residual.shape == self.convolution._result_sizes(x)

    def extra_repr(self) -> str:
        return f"activation={self.activation}, norm={self.scale is not None}"


class _Value(Proxy):
    """Keeps `+=` and its kin, which write into what other names may stand for: torch.fx makes new values of them."""


def _written(name: str) -> Any:
    function = getattr(operator, name)
    return lambda value, other: value.tracer.create_proxy("call_function", function, (value, other), {})


for _name in _IN_PLACE:
    setattr(_Value, f"__{_name}__", _written(_name))


class _Layers(Tracer):
    """Goes into other people's networks: layers, what has hooks and all of ours stay whole."""

    def proxy(self, node: Node) -> Proxy:
        return _Value(node, self)

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        ours = isinstance(m, layers.HypercomplexLayer) or type(m).__module__.startswith("quatrain.")
        return ours or hooked(m) or super().is_leaf_module(m, module_qualified_name)


def _called(network: GraphModule, node: Node | None) -> Any:
    """The layer that a node calls with one value, where that is its ``forward`` in eval mode alone; else None."""
    if node is None or node.op != "call_module" or len(node.args) != 1 or node.kwargs:
        return None
    part = network.get_submodule(str(node.target))
    return None if part.training or hooked(part) or "forward" in vars(part) else part


def _as_torchs(norm: Any) -> nn.Module:
    """A norm of others as torch's and what is behind it; anything else as it is."""
    behind = _NORMS_OF_OTHERS.get((type(norm).__module__, type(norm).__name__))
    if behind is None or norm.training or norm.running_mean is None or norm.weight is None or hooked(norm) or "forward" in vars(norm):
        return norm
    torchs = nn.BatchNorm2d(norm.running_mean.numel(), norm.eps, device=norm.running_mean.device).eval()
    for name in ("weight", "bias"):  # buffers of a frozen norm
        value = getattr(norm, name)
        setattr(torchs, name, value if isinstance(value, nn.Parameter) else nn.Parameter(value, requires_grad=False))
    torchs.running_mean, torchs.running_var = norm.running_mean, norm.running_var
    return nn.Sequential(torchs, *(getattr(norm, name) for name in behind)).eval() if behind else torchs


def _user(call: Node) -> Node | None:
    """What reads the call's value, if nothing else does."""
    return next(iter(call.users)) if len(call.users) == 1 else None


def _norm(network: GraphModule, call: Node, layer: Any) -> Any:
    """The batch norm of a layer's channels behind its call, with fixed numbers."""
    norm = _called(network, _user(call))
    if type(norm) is not _NORMS[_TORCHS.get(type(layer), type(layer))] or norm.num_features != layer.out_channels:
        return None
    return None if any(values is None for values in (norm.running_mean, norm.weight, norm.bias)) else norm


def _is_fresh(network: GraphModule, value: Any) -> bool:
    """Whether a sum alone reads the value, and it has memory of its own: so nothing sees that `+=` writes into it."""
    if not isinstance(value, Node) or value.op != "call_module" or len(value.users) > 1:
        return False
    makers = (ConvolutionWithEpilogue, *_CONVOLUTIONS, *_OUR_CONVOLUTIONS, *_NORMS.values())
    return type(network.get_submodule(str(value.target))) in makers


def _residual(network: GraphModule, call: Node) -> Node | None:
    """What is added to the call's value. Right behind it: so nothing can write into it between the two."""
    user = _user(call)
    if user is None or user.prev is not call or len(user.args) != 2 or user.kwargs:
        return None
    if user.target not in _SUMS and (user.target is not operator.iadd or not _is_fresh(network, user.args[0])):
        return None
    other = user.args[1] if user.args[0] is call else user.args[0]
    return other if isinstance(other, Node) and other is not call and user.op != "call_module" else None


def _activation(network: GraphModule, call: Node) -> str | None:
    """The name of the activation behind the call, where it rides."""
    user = _user(call)
    if user is None or len(user.all_input_nodes) > 1 or not set(user.kwargs) <= {"inplace"}:
        return None
    if user.op != "call_module":
        return _ACTIVATIONS.get(user.target)
    part = _called(network, user)
    return _ACTIVATIONS.get(part.name if type(part) is layers.Activation else type(part))


def _take(network: GraphModule, call: Node) -> None:
    """What reads the call's value becomes part of the call."""
    user = next(iter(call.users))
    user.replace_all_uses_with(call)
    network.graph.erase_node(user)


def _alone(network: GraphModule, call: Node) -> bool:
    """Whether no other node reads the layer, a part of it, or what it is a part of."""
    own, names = f"{call.target}.", [f"{node.target}." for node in network.graph.nodes if node.op in ("call_module", "get_attr")]
    return sum(name.startswith(own) or own.startswith(name) for name in names) == 1


def _fuse_behind(network: GraphModule, call: Node) -> None:
    """Makes one call of a convolution's call and those behind it."""
    layer = _called(network, call)
    if type(layer) not in (*_CONVOLUTIONS, *_OUR_CONVOLUTIONS) or not _alone(network, call):
        return
    norm = _norm(network, call, layer)
    if type(layer) in _CONVOLUTIONS:
        # Torch's function takes no transposed ones with groups.
        if norm is not None and not (layer.transposed and layer.groups > 1):
            network.add_submodule(str(call.target), fuse_conv_bn_eval(layer, norm, layer.transposed))
            _take(network, call)
        return
    if norm is not None:
        _take(network, call)
    residual = _residual(network, call)
    if residual is not None:
        _take(network, call)
        call.args = (*call.args, residual)
    activation = _activation(network, call)
    if activation is not None:
        _take(network, call)
    if norm is not None or residual is not None or activation is not None:
        network.add_submodule(str(call.target), ConvolutionWithEpilogue(layer, norm, activation or "identity"))


def fuse(model: nn.Module) -> nn.Module:
    """A copy of a model in eval mode, in which batch norms, sums and activations are computed with the convolutions before them.

    A batch norm cannot be folded into the weights of a hypercomplex layer, since it scales the components of one unit
    differently. But the operator of the convolutions takes a scale, a shift, a tensor to be added and an activation
    (``Conv2d.forward_with_epilogue``), so none of these needs a pass of its own where no gradient is asked for.

    Fused with a convolution of ours is what follows it, in this order, as far as nothing else reads what is between: a batch
    norm of torch's that has weights and running statistics; a sum with a tensor, ``+``, ``+=`` or ``torch.add``, right behind; ReLU,
    tanh or sigmoid, as a module, function or method. timm's ``BatchNormAct2d`` and torchvision's ``FrozenBatchNorm2d`` count as
    torch's norms. A sum that broadcasts stays a sum. Batch norms behind convolutions of
    torch's are folded into their weights (``torch.nn.utils.fusion``). Left as they are: layers with hooks, parametrizations
    or in training mode, subclasses, convolutions that are called more than once. A ``quatrain.models.ResNet`` does all this
    by itself and stays whole.

    Args:
        model: any module that ``torch.fx`` can trace; it stays as it is.

    Returns a ``torch.fx.GraphModule`` with parameters of its own; of a single layer, and of what is ours, a copy. Those of a
    fused convolution are ``NAME.convolution.F`` ... and, where there was a norm, ``NAME.scale`` and ``NAME.shift``, which stay
    what they are in training mode too. Behind a fused norm images come in a batch.

    Raises ValueError for a model that is in training mode, has hooks itself, cannot be traced by ``torch.fx``, or is a
    ``DataParallel`` or ``DistributedDataParallel``.

    >>> import torch, quatrain
    >>> model = torch.nn.Sequential(quatrain.nn.Conv2d(8, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU())
    >>> fused, x = quatrain.fuse(model.eval()), torch.randn(2, 8, 5, 5)
    >>> [node.target for node in fused.graph.nodes if node.op == "call_module"]
    ['0']
    >>> torch.allclose(fused(x), model(x), atol=1e-5)
    True
    """
    if model.training:
        raise ValueError("fuse: the model must be in eval mode, where its norms have fixed statistics (call model.eval() first)")
    if isinstance(model, (nn.DataParallel, nn.parallel.DistributedDataParallel)):
        raise ValueError(f"fuse: the model is a {type(model).__name__}, which hides its network (fuse model.module)")
    if hooked(model):
        raise ValueError("fuse: the model has hooks, which its copy would lose (remove them, and register them with the copy)")
    tracer, copied = _Layers(), copy.deepcopy(model)
    if tracer.is_leaf_module(copied, ""):
        return copied
    norms: dict[nn.Module, nn.Module] = {part: torchs for part in copied.modules() if (torchs := _as_torchs(part)) is not part}
    for part in list(copied.modules()):
        if not hooked(part):
            replace(part, norms)
    try:
        fused = graph_module(copied, tracer)
    except Exception as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(
            f"fuse: torch.fx cannot trace {type(model).__name__}: {reason} (fuse the parts that it can trace: model.part = "
            "quatrain.fuse(model.part))"
        ) from error
    for node in list(fused.graph.nodes):
        part = _called(fused, node)
        if type(part) in _NOTHING:
            node.replace_all_uses_with(node.args[0])
            fused.graph.erase_node(node)
    for node in list(fused.graph.nodes):
        _fuse_behind(fused, node)
    fused.delete_all_unused_submodules()
    fused.recompile()
    return fused
