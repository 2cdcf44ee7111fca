"""Which layers a new one may take the place of, why not the others, and how it takes it."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.nn.utils import parametrize

from . import _recurrent_twins as recurrent
from . import nn as layers

# Of one axis to three; torch's by their own names.
_CONVOLUTIONS: dict[type[nn.Module], type[layers.HypercomplexLayer]] = {
    nn.Conv1d: layers.Conv1d,
    nn.Conv2d: layers.Conv2d,
    nn.Conv3d: layers.Conv3d,
    nn.ConvTranspose1d: layers.ConvTranspose1d,
    nn.ConvTranspose2d: layers.ConvTranspose2d,
    nn.ConvTranspose3d: layers.ConvTranspose3d,
}
_OUR_CONVOLUTIONS = tuple(_CONVOLUTIONS.values())
_COMPUTED = "its weight is computed from others (weight_norm, spectral_norm, pruning): make it a parameter first"


def is_transposed(layer: nn.Module) -> bool:
    """Whether it is the linear layer of GPT-2 in ``transformers``, whose weight is (in, out); known by its name, without an import."""
    return (type(layer).__module__, type(layer).__name__) == ("transformers.pytorch_utils", "Conv1D")


def hooked(part: nn.Module) -> bool:
    """Whether the part has hooks, which what takes its place would lose."""
    return bool(part._forward_pre_hooks or part._forward_hooks or part._backward_pre_hooks or part._backward_hooks)


def _put_on(layer: nn.Module, parts: tuple[str, ...] = ()) -> str:
    """What others put on a layer, which a new one would lose; the parts are its own."""
    if hooked(layer):
        return "has hooks, which a new layer would lose: remove them, convert, and register them again"
    if "forward" in vars(layer):
        return "has a forward of its own, which a new layer would lose: take it off, convert, and put it on again"
    held = (*layer._modules, *layer._buffers, *(() if parts or recurrent.is_recurrent(layer) else layer._parameters))
    more = [] if isinstance(layer, layers.HypercomplexLayer) else [name for name in held if name not in (*parts, "weight", "bias")]
    return f"holds {more[0]} too, which a new layer would lose: take it off, and convert then" if more else ""


def kept_from(layer: nn.Module) -> str:
    """What a layer does beside its matrix, which a new layer would not do; empty where there is nothing."""
    if any(is_lazy(parameter) for parameter in layer.parameters(recurse=False)):
        return "is lazy and has no weights yet: give the model an input first, then convert it"
    if recurrent.is_recurrent(layer):
        if kept := recurrent.kept_from(layer):
            return kept
    elif type(layer) in _CONVOLUTIONS or isinstance(layer, _OUR_CONVOLUTIONS):
        if getattr(layer, "groups", 1) > 1:
            return "its groups are runs of channels, where a hypercomplex layer's are parts of every component"
    elif parametrize.is_parametrized(layer, "weight"):
        return _COMPUTED
    elif type(layer) not in (nn.Linear, layers.Linear, layers.Embedding) and not is_transposed(layer):
        kind = "an embedding" if isinstance(layer, layers.Embedding) else "a convolution" if isinstance(layer, tuple(_CONVOLUTIONS)) else "a linear layer"
        return f"is a {type(layer).__name__}, which may do more than {kind}"
    if (type(layer) is nn.Linear or type(layer) in _CONVOLUTIONS or is_transposed(layer)) and "weight" not in layer._parameters:
        return _COMPUTED
    return _put_on(layer)


def attention_kept_from(attention: nn.MultiheadAttention, owners: dict[Tensor, list[str]]) -> str:
    """Why an attention of torch's stays as a whole; empty where each of its projections may become a layer."""
    if type(attention) is not nn.MultiheadAttention:
        return f"is a {type(attention).__name__}, which may do more than an attention"
    if kept := _put_on(attention, ("out_proj",)):
        return kept
    output = attention.out_proj
    if type(output) is not nn.modules.linear.NonDynamicallyQuantizableLinear or "weight" not in output._parameters:
        return "its out_proj was changed (weight_norm, pruning, another layer): make it torch's own first"
    if kept := _put_on(output):
        return kept
    tied = [parameter for parameter in attention.parameters() if len(owners[parameter]) > 1]
    return f"its weights are tied: {' and '.join(owners[tied[0]])} are one" if tied else ""


def replace(module: nn.Module, twins: dict[nn.Module, nn.Module]) -> None:
    """Puts the twins where the module holds their originals: as its children, and in lists, tuples and dictionaries of its own."""
    held: Any
    for name, held in [("", vars(module)), *vars(module).items()]:
        if type(held) is tuple and any(isinstance(child, nn.Module) and child in twins for child in held):
            vars(module)[name] = tuple(twins.get(child, child) if isinstance(child, nn.Module) else child for child in held)
        places = list(held.items()) if isinstance(held, dict) else list(enumerate(held)) if isinstance(held, list) else ()
        for place, child in places:
            if isinstance(child, nn.Module) and child in twins:
                held[place] = twins[child]
