"""The tensors of a state dict, and the maps that they make."""

from __future__ import annotations

from typing import Mapping

import torch
from torch import Tensor

COMPONENTS = ("r_weight", "i_weight", "j_weight", "k_weight")


class State:
    """The tensors below a prefix, taken one after the other."""

    def __init__(self, what: str, state: Mapping[str, Tensor], prefix: str) -> None:
        self.what, self.prefix = what, prefix + "." if prefix else ""
        begins = {name: tensor for name, tensor in state.items() if name.startswith(self.prefix)}
        self.rest = {name[len(self.prefix) :]: tensor.detach() for name, tensor in begins.items()}

    def take(self, name: str) -> Tensor:
        if name not in self.rest:
            raise ValueError(f"{self.what}: there is no '{self.prefix}{name}'")
        return self.rest.pop(name)

    def below(self, name: str) -> State:
        """Those whose names begin with this one and a dot; they stay in ``rest``."""
        whole = {self.prefix + rest: tensor for rest, tensor in self.rest.items()}
        return State(self.what, whole, self.prefix + name)

    def components(self, begin: str, axes: tuple[int, ...], sizes: str) -> Tensor:
        """The four of a quaternion map, one after the other, each of one of these numbers of axes."""
        parts = [self.take(begin + component) for component in COMPONENTS]
        if parts[0].dim() not in axes or any(part.shape != parts[0].shape for part in parts):
            raise ValueError(
                f"{self.what}: '{self.prefix}{begin}r_weight' and the other components must have one shape ({sizes}), "
                f"got {[list(part.shape) for part in parts]}"
            )
        for extra in ("scale_param", "zero_kernel"):
            if begin + extra in self.rest:
                raise ValueError(f"{self.what}: '{self.prefix}{begin}{extra}' is of a map that rotates, W x conj(W), not of W x")
        return torch.stack(parts)

    def map(self, name: str) -> tuple[Tensor, Tensor | None]:
        """S (4, out/4, in/4) of a quaternion map, and its bias."""
        begin = name + "." if name else ""
        S = self.components(begin, (2,), "in/4, out/4").transpose(1, 2).contiguous()
        return S, self.bias(begin, 4 * S.size(1))

    def kernel(self, transposed: bool) -> tuple[Tensor, Tensor | None]:
        """F (4, out/4, in/4, kernel...) of a quaternion convolution, or (4, in/4, out/4, kernel...), and its bias."""
        F = self.components("", (3, 4, 5), "in/4, out/4, kernel..." if transposed else "out/4, in/4, kernel...")
        if transposed:  # theirs is the adjoint of the other, which multiplies by conj(W)
            F[1:].neg_()
        return F, self.bias("", 4 * F.size(2 if transposed else 1))

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
