"""The two layouts of components, and the two forms in which PHM writes its layer."""

from __future__ import annotations

from torch import Tensor


def _swap_parts(function: str, x: Tensor, n: int, sizes: tuple[int, int]) -> Tensor:
    if n < 1 or x.dim() < 1 or x.size(-1) % n:
        raise ValueError(f"{function}: the last axis must be divisible by n = {n}, got {list(x.shape)}")
    return x.unflatten(-1, sizes).transpose(-1, -2).flatten(-2)


def to_concatenated(interleaved: Tensor, n: int) -> Tensor:
    """Interleaved components to concatenated ones, the layout of everything else here: (..., n m) -> the same.

    >>> import torch, quatrain
    >>> quatrain.nn.to_concatenated(torch.tensor([0, 10, 1, 11]), 2)
    tensor([ 0,  1, 10, 11])
    """
    return _swap_parts("to_concatenated", interleaved, n, (-1, n))


def to_interleaved(concatenated: Tensor, n: int) -> Tensor:
    """The inverse of ``to_concatenated``."""
    return _swap_parts("to_interleaved", concatenated, n, (n, -1))


def to_phm_blocks(A: Tensor, S: Tensor) -> tuple[Tensor, Tensor]:
    """PHM's layer as its appendix A writes it: the same map, its numbers in another order.

    A (n, n, n), S (n, k/n, d/n) -> B (n, n, n), indexed [b, a, i], and T (d/n, n, k/n), indexed [q, i, p]:
    B_b[a, i] = A_i[a, b], T_q[i, p] = S_i[p, q], and column (b, q) of H is B_b T_q, row after row (A.1, A.2).

    >>> import torch, quatrain
    >>> layer = quatrain.nn.Linear(8, 12, algebra="phm(4)")
    >>> B, T = quatrain.nn.to_phm_blocks(layer.A, layer.S)
    >>> H = torch.stack([(B[b] @ T[q]).flatten() for b in range(4) for q in range(2)], 1)
    >>> torch.allclose(H, layer.matrix(), atol=1e-6)
    True
    """
    if A.dim() != 3 or len(set(A.shape)) != 1 or S.dim() != 3 or S.size(0) != A.size(0):
        raise ValueError(f"to_phm_blocks: A must be (n, n, n) and S (n, k/n, d/n), got {list(A.shape)} and {list(S.shape)}")
    return A.permute(2, 1, 0).contiguous(), S.permute(2, 0, 1).contiguous()


def from_phm_blocks(B: Tensor, T: Tensor) -> tuple[Tensor, Tensor]:
    """The inverse of ``to_phm_blocks``: A and S."""
    if B.dim() != 3 or len(set(B.shape)) != 1 or T.dim() != 3 or T.size(1) != B.size(0):
        raise ValueError(f"from_phm_blocks: B must be (n, n, n) and T (d/n, n, k/n), got {list(B.shape)} and {list(T.shape)}")
    return B.permute(2, 1, 0).contiguous(), T.permute(1, 2, 0).contiguous()
