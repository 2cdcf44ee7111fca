"""Real layers of any model into hypercomplex ones; factors of learned algebras for fast inference."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Iterable, Iterator, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from . import nn as layers
from . import ops
from ._recurrent_twins import WeightConversion, is_recurrent, recurrent_twin
from ._replaceable import _CONVOLUTIONS, _OUR_CONVOLUTIONS, attention_kept_from, is_transposed, kept_from, replace
from .algebra import Spec
from .nn.torch_attention import TorchMultiheadAttention, leave_fast_paths
from .runs import RunModel

__all__ = ["ConversionReport", "FactorizeReport", "LayerConversion", "LayerFactors", "convert", "factorize"]

_Model = TypeVar("_Model", bound=nn.Module)


def _columns(rows: list[list[str]]) -> str:
    """Aligned: the first column to the left, the others to the right, the last as it is."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:])]
        lines.append("  ".join([*cells, row[-1]]).rstrip())
    return "\n".join(lines)


@dataclasses.dataclass(frozen=True)
class LayerConversion:
    """What became of one linear layer or convolution, or of one weight of a recurrent layer."""

    #: dotted, as in ``named_modules``; of a recurrent layer with the new weight's
    name: str
    in_features: int
    out_features: int
    #: parameters, bias included
    before: int
    #: the same number where it was skipped
    after: int
    #: \\|H - H'\\| / \\|H\\| of the real matrix and the new one; None with fresh weights
    error: float | None
    #: why it was left as it is; empty: it was converted
    skipped: str


@dataclasses.dataclass(frozen=True)
class ConversionReport:
    """What a conversion did; ``print`` shows it as a table."""

    algebra: str
    #: every linear layer, convolution and recurrent layer that was met, in the model's order
    layers: list[LayerConversion]
    #: parameters of the whole model
    before: int
    after: int
    #: parameters in matrices of what is no such layer (embeddings, experts, tables of positions), by its class
    others: dict[str, int] = dataclasses.field(default_factory=dict, init=False)

    @property
    def converted(self) -> int:
        """How many layers, or weights of recurrent ones, were converted."""
        return sum(not layer.skipped for layer in self.layers)

    def __str__(self) -> str:
        rows = [["layer", "in", "out", "parameters", "after", "error", ""]]
        for layer in self.layers:
            error = "-" if layer.error is None else f"{layer.error:.3g}"
            after = "-" if layer.skipped else f"{layer.after:,}"
            sizes = [str(layer.in_features), str(layer.out_features), f"{layer.before:,}"]
            rows.append([layer.name or "the model", *sizes, after, error, layer.skipped])
        for kind, count in self.others.items():
            rows.append([f"({kind})", "", "", f"{count:,}", "-", "", "is not of a kind that convert replaces"])
        rows.append(["whole model", "", "", f"{self.before:,}", f"{self.after:,}", "", ""])
        return _columns(rows)


def _count(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters() if not is_lazy(p))


def _weight(layer: Any) -> Tensor:
    """The parameter that holds the weights; the first where there are several."""
    if isinstance(layer, layers.HypercomplexLayer):
        weight = layer.weights()[0].parts(layer)[-1].value
    else:
        weight = next(layer.parameters()) if is_recurrent(layer) else layer.weight
    assert isinstance(weight, Tensor)
    return weight


def _owners(model: nn.Module) -> dict[Tensor, list[str]]:
    """The names under which the modules hold each parameter; a module that stands in two places counts once."""
    owners: dict[Tensor, list[str]] = {}
    for name, module in model.named_modules():
        for parameter_name, parameter in module.named_parameters(recurse=False):
            owners.setdefault(parameter, []).append(f"{name}.{parameter_name}" if name else parameter_name)
    return owners


_Linear = nn.Linear | nn.RNNBase | nn.RNNCellBase | nn.modules.conv._ConvNd | layers.HypercomplexLayer
_Attentions = dict[nn.MultiheadAttention, TorchMultiheadAttention]


def _linears(model: nn.Module, attentions: _Attentions) -> Iterator[tuple[str, Any]]:
    """Every linear or recurrent layer by its name, those inside torch's attentions too; an attention that stays is one itself."""
    of_attentions = {m.out_proj for m in model.modules() if type(m) is nn.MultiheadAttention}
    for name, module in model.named_modules():
        if module in attentions:
            for child, layer in attentions[module].named_children():
                if isinstance(layer, _Linear):
                    yield f"{name}.{child}" if name else child, layer
        elif isinstance(module, (_Linear, nn.MultiheadAttention)) and module not in of_attentions or is_transposed(module):
            yield name, module


def _sizes(layer: Any) -> tuple[int, int]:
    if is_recurrent(layer):
        return int(layer.input_size), int(layer.hidden_size)
    if hasattr(layer, "in_channels"):
        return int(layer.in_channels), int(layer.out_channels)
    if is_transposed(layer):
        return int(layer.weight.size(0)), int(layer.weight.size(1))
    held = layer.weights()[0] if isinstance(layer, layers.HypercomplexLayer) else layer
    return int(held.in_features), int(held.out_features)


def _recurrent_lines(name: str, weights: list[WeightConversion], before: int, after: int) -> list[LayerConversion]:
    """A line for each weight; the biases count with the first."""
    lines = []
    for weight in weights:
        full = f"{name}.{weight.key}" if name else weight.key
        lines.append(LayerConversion(full, *weight[1:], skipped=""))
    rest = before - sum(line.before for line in lines), after - sum(line.after for line in lines)
    lines[0] = dataclasses.replace(lines[0], before=lines[0].before + rest[0], after=lines[0].after + rest[1])
    return lines


def _own_options(layer: nn.Module) -> dict[str, Any]:
    """What only our layers have."""
    names = {layers.Linear: ("initialiser", "way", "maps"), layers.Embedding: ("initialiser", "way")}
    return {name: getattr(layer, name) for name in names.get(type(layer), ())}


def _filled(twin: Any, layer: Any, weight: Tensor, matrix: Tensor, fresh: bool) -> tuple[nn.Module, float | None]:
    """The layer with the nearest weights to a matrix and the other's bias, to train what that trains; the relative error."""
    error, bias = None, getattr(layer, "bias", None)
    if not fresh:
        with torch.no_grad():
            error = twin.weights()[0].set_nearest(twin, matrix)
            if bias is not None:
                twin.bias.copy_(bias)
    for part in twin.weights()[0].parts(twin):
        part.value.requires_grad_(weight.requires_grad)
    if bias is not None:
        twin.bias.requires_grad_(bias.requires_grad)
    return twin.train(layer.training), error


def _twin(layer: Any, weight: Tensor, spec: Spec, sizes: tuple[int, int], fresh: bool) -> tuple[nn.Module, float | None]:
    """The layer to stand in its place, and the relative error of its matrix."""
    twin: Any
    like: dict[str, Any] = {"device": weight.device, "dtype": weight.dtype, "algebra": spec, **_own_options(layer)}
    if isinstance(layer, layers.Embedding):
        twin = layers.Embedding(*sizes[::-1], **like)
    else:
        twin = layers.Linear(*sizes, layer.bias is not None, **like)
    matrix = weight.detach().t() if is_transposed(layer) else weight.detach().reshape(sizes[1], sizes[0])
    return _filled(twin, layer, weight, matrix, fresh)


def _convolution_twin(layer: Any, weight: Tensor, spec: Spec, fresh: bool) -> tuple[nn.Module, float | None]:
    """The same of a convolution."""
    own = ("initialiser", "way", "winograd") if isinstance(layer, _OUR_CONVOLUTIONS) else ()
    names = ("in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "padding_mode", "output_padding", *own)
    options = {name: getattr(layer, name) for name in names if hasattr(layer, name)}
    made: Any = _CONVOLUTIONS.get(type(layer), type(layer))
    if made.transposed:
        options.pop("padding_mode", None)
    else:
        options.pop("output_padding", None)
    twin = made(**options, bias=layer.bias is not None, device=weight.device, dtype=weight.dtype, algebra=spec)
    kernel = layer.weight.detach()
    return _filled(twin, layer, weight, (kernel.transpose(0, 1) if made.transposed else kernel).flatten(1), fresh)


def _others(model: nn.Module, listed: Iterable[nn.Module]) -> dict[str, int]:
    """By its class, the parameters in matrices of what is none of the listed layers."""
    inside, found = {part for layer in listed for part in layer.modules()}, dict[str, int]()
    for module in model.modules():
        own = sum(p.numel() for p in module.parameters(recurse=False) if not is_lazy(p) and p.dim() > 1)
        if own and module not in inside:
            found[type(module).__name__] = found.get(type(module).__name__, 0) + own
    return found


def convert(
    model: _Model,
    algebra: str | Spec,
    where: Callable[[str, nn.Module], bool] | None = None,
    fresh: bool = False,
) -> tuple[_Model, ConversionReport]:
    """Replaces the linear layers, convolutions and recurrent layers of a model, torch's and real ones of ours, by hypercomplex ones.

    A real ``Embedding`` of ours is replaced too; torch's stays.

    The weights become the nearest hypercomplex ones: with a fixed algebra by projection, with a learned one as the best sum
    of n Kronecker products. The model is changed in place and returned with a report; only a model that is itself such a
    layer is returned as a new one. Parameters are new tensors: make the optimizer afterwards.

    Recurrent layers are ``LSTM``, ``GRU``, ``RNN`` and their cells. Their units, states and outputs keep their places; those
    of two directions come one after the other, as in torch (``direction_first``).

    Args:
        model: any module.
        algebra: what the layers shall multiply with.
        where: which layers to convert, by dotted name and module; all by default.
        fresh: new weights by the layers' initialiser, for a model yet to be trained.

    Skipped, with the reason in the report: sizes that n does not divide, convolutions with groups, weights that are tied to
    another module, what ``where`` excludes, layers that are hypercomplex already, lazy layers that have no weights yet,
    subclasses of torch's layers, layers with hooks, with a ``forward`` or parts that others gave them, or with a weight
    that is computed (``weight_norm``, ``prune``); the same holds of attentions as a whole. Raises ValueError without
    ``fresh`` for weights on the meta device, weights that are not finite, and trained factors (``trained_rank``), which
    have no nearest ones.

    ``torch.nn.MultiheadAttention`` reads its projections' weights itself, so it is replaced whole, by
    ``quatrain.nn.TorchMultiheadAttention`` with the layers ``q_proj``, ``k_proj``, ``v_proj`` and ``out_proj``.

    >>> import torch, quatrain
    >>> model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    >>> model, report = quatrain.convert(model, "quaternion")
    >>> report.converted, report.layers[1].skipped
    (1, 'n = 4 does not divide 2')
    """
    spec = Spec.parse(algebra)
    if not isinstance(model, nn.Module):
        raise TypeError(f"convert: model must be a torch.nn.Module, got {model!r}")
    if where is not None and not callable(where):
        raise TypeError(f"convert: where must be a function of a name and a module, got {where!r} (where=lambda name, layer: 'head' not in name)")
    if isinstance(model, RunModel):
        raise ValueError("convert: the model of a run is computed in C++ and stays as it is: the program converts it, quatrain convert RUN NEW")
    if spec.trained_rank and not fresh:
        raise ValueError(
            f"convert: trained factors have no nearest weights in closed form, got algebra = {spec} (take fresh = True, or "
            "a learned A)"
        )
    before, owners = _count(model), _owners(model)
    whole = {m: attention_kept_from(m, owners) for m in model.modules() if isinstance(m, nn.MultiheadAttention)}
    # They read their layers' weights themselves: these have layers that are called.
    attentions = {attention: TorchMultiheadAttention(attention) for attention, kept in whole.items() if not kept}
    others = _others(model, [layer for _, layer in _linears(model, {})])
    twins: dict[nn.Module, nn.Module] = {}
    done: list[LayerConversion] = []
    for name, layer in _linears(model, attentions):
        count, error, skipped = _count(layer), None, ""
        if layer in whole:
            done.append(LayerConversion(name, layer.embed_dim, layer.embed_dim, count, count, None, whole[layer]))
            continue
        weight, sizes = _weight(layer), _sizes(layer)
        tied = [
            f"its {'bias' if part.startswith('bias') else 'weight'} is tied to {other}"
            for part, parameter in layer.named_parameters()
            for other in owners.get(parameter, [])
            if other.rpartition(".")[0] != name
        ]
        projection = getattr(layer, "proj_size", 0)
        odd = [size for size in (*sizes, *([projection] if projection else [])) if size % spec.n or size == 0]
        if isinstance(layer, layers.HypercomplexLayer) and layer.spec.n > 1:
            skipped = f"is hypercomplex already ({layer.spec})"
        elif where is not None and not where(name, layer):
            skipped = "excluded by where"
        elif kept := kept_from(layer):
            skipped = kept
        elif tied:
            skipped = tied[0]
        elif odd:
            skipped = f"n = {spec.n} does not divide {odd[0]}"
        elif not fresh and not weight.is_meta and not weight.isfinite().all():
            raise ValueError(f"convert: the weight of '{name}' holds nan or inf, to which nothing is near (repair it, or take fresh = True)")
        elif weight.is_meta and not fresh:
            raise ValueError(
                f"convert: the weights of '{name}' are on the meta device, so nothing is near to them (load them first, or "
                "take fresh = True)"
            )
        elif is_recurrent(layer):
            twins[layer], parts = recurrent_twin(layer, spec, fresh)
            done.extend(_recurrent_lines(name, parts, count, _count(twins[layer])))
            continue
        elif hasattr(layer, "in_channels"):
            twins[layer], error = _convolution_twin(layer, weight, spec, fresh)
        else:
            twins[layer], error = _twin(layer, weight, spec, sizes, fresh)
        after = count if skipped else _count(twins[layer])
        done.append(LayerConversion(name, *sizes, count, after, error, skipped))
    for attention, opened in attentions.items():
        if any(layer in twins for layer in opened.children()):
            twins[attention] = opened
    for module in [*model.modules(), *attentions.values()]:
        replace(module, twins)
    result = twins.get(model, model)
    leave_fast_paths(result)
    report = ConversionReport(spec.text, done, before, _count(result))
    report.others.update(others)
    return result, report  # type: ignore[return-value]


@dataclasses.dataclass(frozen=True)
class LayerFactors:
    """What became of a weight whose A is learned."""

    #: of its layer, dotted, as in ``named_modules``; with its own where there are several
    name: str
    n: int
    #: of the best try, sound or not; the factored way costs rank / n^2 of the real layer
    rank: int
    #: relative error of the best try
    error: float
    #: of dA/d(U, V, W); infinite where its rank is below n^3, or no try is sound
    condition: float
    #: held, and used in eval mode; else the layer computes in another way
    sound: bool


@dataclasses.dataclass(frozen=True)
class FactorizeReport:
    """What ``factorize`` found; ``print`` shows it as a table."""

    layers: list[LayerFactors]

    @property
    def learned(self) -> int:
        """Weights with a learned A."""
        return len(self.layers)

    @property
    def sound(self) -> int:
        """How many of these weights have sound factors."""
        return sum(layer.sound for layer in self.layers)

    def __str__(self) -> str:
        rows = [["layer", "n", "rank", "error", ""]]
        for layer in self.layers:
            sizes = [str(layer.n), str(layer.rank), f"{layer.error:.3g}"]
            rows.append([layer.name or "the model", *sizes, "" if layer.sound else "no sound factors"])
        return _columns(rows)


def factorize(
    model: nn.Module, rank: int = 0, tolerance: float = 1e-6, starts: int = 6, seed: int = 0
) -> FactorizeReport:
    """Computes the factors of every learned A in a model (``Linear.factorize``), for fast inference.

    >>> import quatrain
    >>> quatrain.factorize(quatrain.nn.FeedForward(8, 8, algebra="phm(2)")).sound
    2
    """
    found = []
    for name, layer in model.named_modules():
        for weight in layer.weights() if isinstance(layer, layers.HypercomplexLayer) else ():
            if weight.spec.operand == "learned":
                best = weight.find_factors(layer, rank, tolerance, starts, seed)
                part = [weight.key] if len(layer.weights()) > 1 else []
                full = ".".join(filter(None, [name, *part]))
                found.append(LayerFactors(full, weight.spec.n, best.rank, best.residual, best.condition, best.sound))
    return FactorizeReport(found)
