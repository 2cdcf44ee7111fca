"""Trains a small Transformer on several processes: DistributedDataParallel or FSDP2.

    python examples/python/distributed.py
    OMP_NUM_THREADS=1 torchrun --standalone --nproc-per-node 2 examples/python/distributed.py --ddp
    OMP_NUM_THREADS=1 torchrun --standalone --nproc-per-node 2 examples/python/distributed.py --fsdp --algebra 'phm(4)'

All three print the same losses up to rounding: --batch is the number of texts in a step, whatever the number of processes. Needs the
package (docs/python.md); docs/distributed.md says more. The task: which of two words is more frequent in a text.
"""

import argparse
import gc
import os

import quatrain
import torch
import torch.distributed as dist
from quatrain.distributed import shard_placement
from quatrain.models import TextClassifier
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

WORDS, LENGTH = 10, 15


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--ddp", action="store_true", help="every process holds the model, gradients are averaged")
    how.add_argument("--fsdp", action="store_true", help="every process holds a part of each parameter (FSDP2)")
    parser.add_argument("--algebra", default="quaternion", help="of the encoder (default: %(default)s)")
    parser.add_argument("--width", type=int, default=64, help="of the encoder (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=120, help="texts in a step, over all processes (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=100, help="default: %(default)s")
    parser.add_argument("--every", type=int, default=10, help="steps between two printed losses (default: %(default)s)")
    return parser.parse_args()


def make_model(options: argparse.Namespace) -> torch.nn.Module:
    """The same on every process, since all start from one seed."""
    torch.manual_seed(0)
    return TextClassifier(
        WORDS, 2, options.width, heads=2, feed_forward=2 * options.width, dropout=0.0, algebra=options.algebra
    )


def distribute(model: torch.nn.Module, options: argparse.Namespace) -> torch.nn.Module:
    if options.ddp:
        return DistributedDataParallel(model)
    if options.fsdp:
        for layer in model.encoder.layers:  # gathered one by one, so that one layer at a time is whole
            fully_shard(layer, shard_placement_fn=shard_placement)
        fully_shard(model, shard_placement_fn=shard_placement)
    return model


def texts(step: int, options: argparse.Namespace, rank: int, processes: int) -> tuple[torch.Tensor, torch.Tensor]:
    """This process's part of the step's batch."""
    generator = torch.Generator().manual_seed(step)
    tokens = torch.randint(1, WORDS, (options.batch, LENGTH), generator=generator)
    labels = ((tokens == 1).sum(1) > (tokens == 2).sum(1)).long()
    return tokens[rank::processes], labels[rank::processes]


def train(options: argparse.Namespace, rank: int, processes: int) -> None:
    model = distribute(make_model(options), options)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)  # after fully_shard, which makes new parameters
    if rank == 0:
        held = sum((p.to_local() if options.fsdp else p).numel() for p in model.parameters())
        print(f"{processes} process(es), each with {held:,} of {sum(p.numel() for p in model.parameters()):,} parameters")
    for step in range(1, options.steps + 1):
        tokens, labels = texts(step, options, rank, processes)
        loss = torch.nn.functional.cross_entropy(model(tokens), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % options.every == 0:
            mean = loss.detach()
            if dist.is_initialized():
                dist.all_reduce(mean)
                mean /= processes
            if rank == 0:
                print(f"step {step:4}   loss {mean.item():.6f}")


def main() -> None:
    options = arguments()
    processes = int(os.environ.get("WORLD_SIZE", 1))  # torchrun sets it
    if options.batch % processes:
        raise SystemExit(f"--batch must be divisible by the number of processes = {processes}, got {options.batch}")
    if (options.ddp or options.fsdp) != ("WORLD_SIZE" in os.environ):
        raise SystemExit("--ddp or --fsdp goes with torchrun, and torchrun with one of them (--help has the command lines)")
    if not (options.ddp or options.fsdp):
        return train(options, 0, 1)
    dist.init_process_group("gloo")  # on CPUs; nccl on GPUs
    train(options, dist.get_rank(), processes)
    # What still holds the group at the end of a process may abort it: a wrapped model, which is in circles of references,
    # and gloo, which holds tensors up to a barrier.
    gc.collect()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
