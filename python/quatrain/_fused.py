"""Steps of torch's fused optimizers, told to what is prepared of weights.

What the operators keep of a weight in eval mode goes with the version of its tensor, which every write of torch's raises, but
that of a fused optimizer.
"""

from __future__ import annotations

from typing import Any

from torch._compile import _disable_dynamo
from torch.autograd.graph import increment_version
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook


@_disable_dynamo  # a traced call raises nothing
def _raise_versions(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
    for group in optimizer.param_groups:
        if group.get("fused"):
            increment_version(group["params"])


register_optimizer_step_post_hook(_raise_versions)
