"""Where FSDP2 (``torch.distributed.fsdp.fully_shard``) cuts the parameters of these layers. Import it by its name."""

from __future__ import annotations

import torch.distributed as dist
from torch import Tensor
from torch.distributed.tensor import Shard

__all__ = ["shard_placement"]


def shard_placement(parameter: Tensor, size: int | None = None) -> Shard | None:
    """The ``shard_placement_fn`` of ``fully_shard`` for models with hypercomplex layers.

    ``fully_shard`` cuts dimension 0 of every parameter. Of ``S`` (n, k/n, d/n) that is n: with more processes than n some
    would hold nothing, and all would pad their memory to a whole component. Here parameters of three dimensions are cut
    along the first one that the number of processes divides. Where it divides none, and for all other parameters, it is
    dimension 0 (None), the only one that FSDP2 cuts into unequal parts.

    Args:
        parameter: whole, as the module holds it.
        size: processes that share a parameter; by default all. With a mesh of several dimensions give the size of the one
            that shards: ``functools.partial(shard_placement, size=mesh["shard"].size())``.

    >>> import quatrain
    >>> from quatrain.distributed import shard_placement
    >>> layer = quatrain.nn.Linear(12, 24, algebra="complex")  # S: (2, 12, 6)
    >>> [shard_placement(layer.S, size) for size in (2, 3, 4, 5)]
    [Shard(dim=0), Shard(dim=1), Shard(dim=1), None]
    >>> shard_placement(layer.bias, 3) is None
    True
    """
    if parameter.dim() < 3:
        return None
    if size is None:
        size = dist.get_world_size()
    return next((Shard(dim) for dim, extent in enumerate(parameter.shape) if extent % size == 0), None)
