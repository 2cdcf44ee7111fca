"""A matrix that is computed, and says so where somebody writes into it."""

from __future__ import annotations

import copy
from typing import Any, Callable

import torch
from torch import Tensor

#: Whether a function transform (vmap, grad) stands behind a tensor.
is_wrapped = torch._C._functorch.is_functorch_wrapped_tensor
#: What is part of the matrix itself, and would be written into as it would.
_SAME = {Tensor.detach, Tensor.data.__get__, Tensor.real.__get__}  # type: ignore[attr-defined]
_REQUIRES_GRAD = Tensor.requires_grad.__set__  # type: ignore[attr-defined]


class ComputedMatrix(Tensor):
    """H of a layer: reads as any tensor; a write into it, or into a view of it, is an error and not lost in silence."""

    @classmethod
    def __torch_function__(cls, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        written = name.endswith("_") and not name.endswith("__") or name in ("__setitem__", "__set__")
        target = args[0] if args else (kwargs or {}).get("tensor")  # torch.nn.init's functions name it
        freezes = name == "requires_grad_" or func == _REQUIRES_GRAD
        if written and isinstance(target, ComputedMatrix) and not freezes:
            raise RuntimeError(
                f"the matrix of a hypercomplex layer is computed, so {name}() would change nothing: write into layer.S, of a "
                "convolution layer.F (and layer.A), or call layer.reset_parameters()"
            )
        if freezes and isinstance(target, ComputedMatrix) and target.grad_fn is not None and False in (*args[1:], *(kwargs or {}).values()):
            raise RuntimeError(
                "the matrix of a hypercomplex layer is computed, so it cannot be frozen: freeze layer.S, of a convolution layer.F "
                "(and layer.A), by requires_grad_(False)"
            )
        with torch._C.DisableTorchFunctionSubclass():
            result = func(*args, **(kwargs or {}))
        if not isinstance(result, Tensor) or isinstance(result, ComputedMatrix) or not args:
            return result
        source = args[0]
        shares = func in _SAME or (isinstance(source, Tensor) and result._is_view() and not is_wrapped(result))
        return result.as_subclass(ComputedMatrix) if shares and isinstance(source, ComputedMatrix) else result

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.as_subclass(Tensor).__reduce_ex__(protocol)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        return copy.deepcopy(self.as_subclass(Tensor), memo)


def computed(matrix: Tensor) -> Tensor:
    """The matrix, guarded. Compilers and function transforms get the plain one."""
    if torch.compiler.is_compiling() or is_wrapped(matrix):
        return matrix
    return matrix.as_subclass(ComputedMatrix)
