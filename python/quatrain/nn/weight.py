"""The weight of one hypercomplex map, and the base of layers that hold such weights."""

from __future__ import annotations

import copy
from typing import Any, Callable, Literal, NamedTuple, NoReturn, Sequence, get_args

import torch
from torch import Tensor, nn

from .. import ops
from ..algebra import Spec, get
from ..init import INITIALISERS, Initialiser
from . import _check
from ._computed import is_wrapped

#: How a map is evaluated.
Way = Literal["auto", "factored", "mixed", "materialised"]
WAYS = get_args(Way)

_weighted_summands = torch.ops.quatrain.weighted_summands.default


def _stays(S: Tensor) -> bool:
    """Only what stays the same tensor from call to call is worth preparing. The class alone is asked sooner."""
    return type(S) is nn.Parameter or isinstance(S, nn.Parameter)


class Part(NamedTuple):
    """One of a weight's parameters."""

    #: as registered in the layer
    name: str
    value: Tensor
    #: whether weight decay applies: to S, not to what says how S is used
    decays: bool


class Place(NamedTuple):
    """Where a parameter lies in the real layer of its kind (n = 1), by which ``convert`` finds its values there."""

    #: of the real layer's parameter; for a weight, what lies there is its matrix H
    name: str
    #: of it, in the order of this layer's; None: all, in their order
    rows: Tensor | None = None
    columns: Tensor | None = None


class HypercomplexWeight:
    """The weight of one map, H = sum_i w_i A_i (x) S_i: how its parameters are made and drawn, and what an operator gets.

    It is not a module and holds no parameters: they are registered in the layer, which every method is given, under their
    names and the suffix: ``A`` (n, n, n) where it is learned and n > 1; in its place ``factors`` (3, n, R) where the algebra
    says ``trained_rank=R``; ``w`` (n) of WKP; ``S`` (n, out/n, in/n, kernel...). ``HypercomplexLayer.add_weight`` makes it.
    """

    def __init__(
        self,
        spec: Spec,
        in_features: int,
        out_features: int,
        initialiser: str,
        maps: int,
        name: str,
        suffix: str,
        decays: bool,
        inputs_first: bool,
    ) -> None:
        self.decays, self.inputs_first = decays, inputs_first
        self.spec, self.in_features, self.out_features = spec, in_features, out_features
        self.initialiser, self.maps = initialiser, maps
        #: the name of S in the layer
        self.key = name + suffix
        self._A, self._factors, self._w = "A" + suffix, "factors" + suffix, "w" + suffix
        self._operand = spec.operand
        #: The A that factors were computed for, bit for bit, and U, V and W; outside the state dict, ignored when A differs.
        self.factored: tuple[Tensor, ...] | None = None
        #: Whether a move rounded A since then.
        self._rounded = False

    def _get(self, layer: nn.Module, name: str) -> Any:
        held: dict[str, Any] = layer._parameters
        return held[name] if name in held else getattr(layer, name)

    def draw(self, layer: nn.Module) -> None:
        """Draws S and A again by the initialiser, as the C++ layer does from the same seed, and sets w to one."""
        with torch.no_grad():
            factors, w = self._get(layer, self._factors), self._get(layer, self._w)
            structure = self._get(layer, self._A) if factors is None else factors
            S = self._get(layer, self.key)
            torch.ops.quatrain.initialise_layer_(self._outputs_first(S), structure, self.spec.text, self.initialiser, self.maps)
            if w is not None:
                w.fill_(1)

    def _outputs_first(self, S: Tensor) -> Tensor:
        """S as (n, out/n, in/n, kernel...), a view."""
        return S.transpose(1, 2) if self.inputs_first else S

    def parts(self, layer: nn.Module) -> list[Part]:
        """All parameters, in their order."""
        found = [Part(name, self._get(layer, name), False) for name in (self._A, self._factors, self._w)]
        return [part for part in found if part.value is not None] + [Part(self.key, self._get(layer, self.key), self.decays)]

    def trained(self, layer: nn.Module) -> list[Tensor]:
        """S, or where it is computed (parametrized, pruned) the parameters that it is computed from."""
        held = layer._parameters
        computed_by: Any = layer._modules.get("parametrizations")
        if computed_by is not None and self.key in computed_by:
            return list(computed_by[self.key].parameters(recurse=False))
        names = (self.key + ending for ending in ("", "_orig", "_g", "_v"))  # as torch.nn.utils names them
        found: list[Tensor] = [p for p in map(held.get, names) if p is not None]
        return found or [getattr(layer, self.key)]

    def operands(self, layer: nn.Module) -> tuple[Tensor, str, Tensor | None, Sequence[Tensor], bool]:
        """What ``quatrain.ops.linear`` takes: S (for WKP w_i S_i, which is kept in eval mode), the algebra, A, its factors, and
        whether S is constant."""
        # nn.Module's search for a parameter costs half a microsecond each: taken from its dictionary, unless one is
        # computed (parametrized, pruned).
        held: dict[str, Any] = layer._parameters
        S = held[self.key] if self.key in held else getattr(layer, self.key)
        if self._operand != "learned":
            factors = self._get(layer, self._factors) if self._operand == "factored" else None
            return S, self._operand, factors, (), not layer.training and _stays(S)
        A = held[self._A] if self._A in held else getattr(layer, self._A)
        constant = not layer.training and _stays(S)
        if self.spec.weighted:
            if torch.compiler.is_compiling() and not layer.training:  # a program keeps nothing, and A is the smaller one
                return S, *self.product(layer), (), False
            w = self._get(layer, self._w)
            # w_i scales A_i (x) S_i: taken on S, A itself is what the operator sees, whose factors can follow it.
            constant = constant and _stays(w)
            S = _weighted_summands(S, w, constant)
        factored = self.factored  # read once: another thread may move the layer
        if layer.training or factored is None or torch.compiler.is_compiling() or not self._fits(factored, A):
            return S, "learned", A, (), constant
        return S, "learned", A, factored[1:], constant

    def product(self, layer: nn.Module) -> tuple[str, Tensor | None]:
        """What S itself is multiplied with: the algebra, and A where it is learned (for WKP times w) or its trained factors."""
        A, factors, w = (self._get(layer, name) for name in (self._A, self._factors, self._w))
        if A is None:
            return self._operand, factors
        return self._operand, A if w is None else w.view(-1, 1, 1) * A

    def matrix(self, layer: nn.Module) -> Tensor:
        """H (out, in), or (out, in times the kernel), differentiable."""
        S = self._outputs_first(self._get(layer, self.key))
        return ops.materialise(S.flatten(2) if S.dim() > 3 else S, *self.product(layer))

    def find_factors(
        self, layer: nn.Module, rank: int = 0, tolerance: float = 1e-6, starts: int = 6, seed: int = 0
    ) -> ops.Decomposition:
        """Computes the factors of a learned A; they are held where they are sound. Raises ValueError where A is not learned."""
        A = self._get(layer, self._A)
        if A is None:
            raise ValueError(f"find_factors: A must be learned, got algebra = {self.spec}")
        structure = A.detach().clone()
        found = ops.decompose(structure, rank, tolerance, starts, seed)
        self.factored = (structure, *found.factors) if found.sound else None
        self._rounded = False
        self.drop_prepared(layer)
        return found

    def has_factors(self, layer: nn.Module) -> bool:
        """True where factors are held and still fit A."""
        factored, A = self.factored, self._get(layer, self._A)
        return factored is not None and A is not None and self._fits(factored, A)

    def set_nearest(self, layer: nn.Module, H: Tensor) -> float:
        """Sets the parameters to the nearest of H (out, in); returns the relative error."""
        with torch.no_grad():
            found = ops.nearest(H.detach(), self.spec.text)
            mine = self._outputs_first(self._get(layer, self.key))
            mine.copy_(found.S.view(mine.shape))
            structure, w = self._get(layer, self._A), self._get(layer, self._w)
            if structure is not None:
                structure.copy_(found.A)
            if w is not None:
                w.fill_(1)
        self.drop_prepared(layer)
        return found.error

    def drop_prepared(self, layer: nn.Module) -> None:
        """Forgets what the operator prepared from S: for what changes S without autograd's knowledge."""
        S = layer._parameters.get(self.key)
        if S is not None:
            ops.drop_prepared(S)

    def before_move(self, layer: nn.Module) -> None:
        self.drop_prepared(layer)
        if self.factored is not None and not self.has_factors(layer):
            self.factored = None

    def after_move(self, layer: nn.Module) -> None:
        """Held factors follow an A that went to another type or device, but not one that was rounded to a finer type."""
        self.drop_prepared(layer)
        A = self._get(layer, self._A)
        if self.factored is None or A is None or self._fits(self.factored, A):
            return
        made_for, *factors = self.factored
        self.factored = None
        if A.is_meta:
            return
        structure = A.detach().clone()
        finer = torch.finfo(structure.dtype).eps < torch.finfo(made_for.dtype).eps
        now, then = structure.to("cpu", torch.float64), made_for.to("cpu", torch.float64)
        tolerance = 2 * torch.finfo(structure.dtype).eps * float(then.abs().max())
        if not torch.allclose(now, then, rtol=0, atol=tolerance) or self._rounded and finer:
            return
        self._rounded = self._rounded or not torch.equal(now, then)
        self.factored = (structure, *(factor.to(structure.device) for factor in factors))

    @staticmethod
    def _fits(factored: tuple[Tensor, ...], structure: Tensor) -> bool:
        if is_wrapped(structure):  # by vmap: many tensors in one
            return False
        made_for = factored[0]
        return structure.dtype is made_for.dtype and structure.device == made_for.device and torch.equal(structure, made_for)


class HypercomplexLayer(nn.Module):
    """Base of layers that hold hypercomplex weights.

    Saving and loading, ``factorize``, ``convert``, ``parameter_report`` and weight decay ask ``weights()`` of every module
    and know no layer by its type; whatever changes the parameters beside training is told to the weights.
    """

    _weights: list[HypercomplexWeight]

    def __init__(self) -> None:
        super().__init__()
        self._weights = []

    def add_weight(
        self,
        spec: str | Spec,
        in_features: int,
        out_features: int,
        kernel: Sequence[int] = (),
        maps: int = 1,
        initialiser: Initialiser = "glorot",
        name: str = "S",
        suffix: str = "",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        decays: bool = True,
        inputs_first: bool = False,
    ) -> HypercomplexWeight:
        """Makes a weight's parameters, registers them and draws them. All weights of a layer are of one algebra.

        Args:
            spec, in_features, out_features: of H; n divides both.
            kernel: further axes of S: a convolution's.
            maps: how many maps lie beside each other in ``out_features``, as Q, K and V of a packed projection do, or the
                gates of a cell: the weight is drawn with the fans of one.
            initialiser: one of ``quatrain.init.INITIALISERS``.
            name: the name of S (``F`` of a convolution).
            suffix: what the parameters' names end with, where a layer holds several weights.
            decays: whether weight decay applies to S.
            inputs_first: S is (n, d/n, k/n, kernel...), as torch holds the weights of a transposed convolution.
        """
        spec = Spec.parse(spec)
        _check.choice("initialiser", initialiser, INITIALISERS)
        if self._weights and self._weights[0].spec != spec:
            raise ValueError(f"add_weight: the weights of a layer are of one algebra, got {self._weights[0].spec} and {spec}")
        if dtype is not None and not dtype.is_floating_point:
            raise TypeError(f"{type(self).__name__}: dtype must be a floating-point type, got {dtype}")
        n = spec.n
        _check.divisible("add_weight", "in_features", in_features, n)
        _check.divisible("add_weight", "out_features", out_features, n)
        if name + suffix in self._parameters:
            raise ValueError(f"add_weight: the layer has a parameter {name + suffix} already: give this weight another name or suffix")
        if n == 1 and not get(spec.operand).properties.unital:  # embeddings, attention, files and conversions take n = 1 for the reals
            raise ValueError(
                f"algebra: a layer with n = 1 is the real one, whose table is 1, got {spec.name} with another table (take real; "
                "its weights take up the factor)"
            )
        weight = HypercomplexWeight(spec, in_features, out_features, initialiser, maps, name, suffix, decays, inputs_first)

        def add(part: str, there: bool, *shape: int) -> None:
            self.register_parameter(part, nn.Parameter(torch.empty(shape, device=device, dtype=dtype)) if there else None)

        trained = spec.learns_structure and spec.trained_rank > 0
        add("A" + suffix, spec.learns_structure and not trained, n, n, n)
        add("factors" + suffix, trained, 3, n, spec.trained_rank)
        add("w" + suffix, spec.learns_structure and spec.weighted, n)
        sizes = (in_features // n, out_features // n) if inputs_first else (out_features // n, in_features // n)
        add(name + suffix, True, n, *sizes, *kernel)
        self._weights.append(weight)
        weight.draw(self)
        return weight

    def weights(self) -> list[HypercomplexWeight]:
        """The weights that the layer holds itself, not its children's."""
        return list(self._weights)

    def place_in_real(self, parameter: str) -> Place:
        """Where a parameter, a weight by its key, lies in the real layer of this kind."""
        return Place(parameter)

    @property
    def spec(self) -> Spec:
        """What the weights multiply with."""
        return self._weights[0].spec

    @property
    def algebra(self) -> str:
        """The notation of what the layer multiplies with."""
        return self.spec.text

    # Everything that changes S without autograd's knowledge forgets what the operator prepared from it.

    def __setattr__(self, name: str, value: Any) -> None:
        # FSDP2 gathers S into the same memory in every forward, unseen by versions; it assigns what it gathered.
        super().__setattr__(name, value)
        for weight in self.__dict__.get("_weights", ()):
            if name == weight.key:
                weight.drop_prepared(self)

    def train(self, mode: bool = True) -> HypercomplexLayer:
        super().train(mode)
        for weight in self._weights:
            weight.drop_prepared(self)
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> HypercomplexLayer:
        for weight in self._weights:
            weight.before_move(self)
        super()._apply(fn, recurse)
        for weight in self._weights:
            weight.after_move(self)
        return self

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        # Weights of different algebras have the same names and shapes; what says which is stored beside the version.
        metadata = getattr(destination, "_metadata", {}).get(prefix[:-1])
        if metadata is not None and self._weights:
            metadata["algebra"] = self.spec.identity

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing: Any, unexpected: Any, errors: list[str]
    ) -> None:
        stored = local_metadata.get("algebra")
        if stored is not None and self._weights and not self.spec.is_same(stored):
            shown = f"layer '{prefix[:-1]}'" if prefix else "the layer"
            errors.append(f"{shown} was trained with the algebra {stored}, the model has {self.spec.identity}.")
            return
        for weight in self._weights:
            weight.drop_prepared(self)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing, unexpected, errors)
        for weight in self._weights:
            weight.drop_prepared(self)

    def __prepare_scriptable__(self) -> NoReturn:
        # Which torch.jit.script calls first; it would blame an annotation.
        raise TypeError(
            f"{type(self).__name__}: torch.jit.script cannot read this layer: take torch.jit.trace or torch.export, or script "
            "what quatrain.materialise makes of the model"
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> HypercomplexLayer:
        result = self.__class__.__new__(self.__class__)
        memo[id(self)] = result
        result.__dict__ = copy.deepcopy(self.__dict__, memo)
        for weight in self._weights:
            mine, copied = self._parameters.get(weight._A), result._parameters.get(weight._A)
            if mine is not None and copied is not None and not mine.is_meta:
                ops.set_structure_state(copied, ops.structure_state(mine))
        return result


class OneWeightLayer(HypercomplexLayer):
    """What layers with one weight share."""

    _weight: HypercomplexWeight
    A: Tensor | None
    factors: Tensor | None

    def matrix(self) -> Tensor:
        """H (outputs, inputs) = sum_i A_i (x) S_i, differentiable; a convolution's is
        (outputs, inputs times kernel), an embedding's (num_embeddings, embedding_dim)."""
        return self._weight.matrix(self)

    def factorize(self, rank: int = 0, tolerance: float = 1e-6, starts: int = 6, seed: int = 0) -> bool:
        """Computes the factors of a learned A, so that eval mode may take the factored way; True where they are sound.

        They stay outside the state dict, follow ``deepcopy`` and ``to``, and are ignored from the moment that A differs from
        what they were computed for. Always True without work where A is not learned.
        """
        return self.A is None or self.find_factors(rank, tolerance, starts, seed).sound

    def find_factors(self, rank: int = 0, tolerance: float = 1e-6, starts: int = 6, seed: int = 0) -> ops.Decomposition:
        """What ``factorize`` found, sound or not. Raises ValueError where A is not learned."""
        return self._weight.find_factors(self, rank, tolerance, starts, seed)

    def has_factors(self) -> bool:
        """True where factors are held and still fit A."""
        return self._weight.has_factors(self)
