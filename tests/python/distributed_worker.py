"""One of several processes, started by test_distributed.py: python -m torch.distributed.run ... ALGEBRA [ALGEBRA ...].

Trains a Transformer under DistributedDataParallel and under FSDP2, each against the same model in one process on the whole
batch; every process checks.
"""

import gc
import sys

import quatrain
import torch
import torch.distributed as dist
from quatrain.distributed import shard_placement
from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

# Every number of processes divides the batch, and the width of a component.
WIDTH, BATCH, STEPS = 120, 30, 12


def make_model(algebra, way="auto"):
    torch.manual_seed(0)
    return quatrain.nn.TransformerEncoder(
        WIDTH, 2, layers=2, feed_forward=2 * WIDTH, algebra=algebra, dropout=0.0, norm="pre", way=way
    )


def shard(model):
    for layer in model.layers:
        fully_shard(layer, shard_placement_fn=shard_placement)
    return fully_shard(model, shard_placement_fn=shard_placement)


def train(model, whole):
    """The losses of the whole batch, whatever part of it this process takes."""
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    losses = []
    for step in range(STEPS):
        generator = torch.Generator().manual_seed(step)
        x = torch.randn(BATCH, 6, WIDTH, generator=generator)
        target = x.roll(1, dims=2)
        part = slice(None) if whole else slice(dist.get_rank(), None, dist.get_world_size())
        loss = (model(x[part]) - target[part]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = loss.detach()
        if not whole:
            dist.all_reduce(mean)
            mean /= dist.get_world_size()
        losses.append(mean.item())
    return losses


def linears(model):
    return [part for part in model.modules() if isinstance(part, quatrain.nn.Linear)]


def check_placement(model, algebra):
    n, size = quatrain.algebra.Spec.parse(algebra).n, dist.get_world_size()
    for layer in linears(model):
        whole, local = list(layer.S.shape), list(layer.S.to_local().shape)
        cut = 1 if n % size else 0
        whole[cut] //= size
        assert local == whole, f"S of {layer} is cut into {local}"


def check_followed(model):
    """A learned A is followed here as in one process: one search, then from step to step."""
    reports = [quatrain.ops.structure_report(layer.A) for layer in linears(model)]
    assert all(report.rank and report.solved == 1 and report.steps >= STEPS - 2 for report in reports), reports


def check_training(algebra):
    way = "factored" if algebra.startswith("phm") else "auto"  # small layers would run on H
    reference = make_model(algebra, way)
    expected = train(reference, whole=True)
    assert expected[-1] < 0.9 * expected[0]

    model = shard(make_model(algebra, way))
    check_placement(model, algebra)
    torch.testing.assert_close(train(model, whole=False), expected, rtol=1e-4, atol=0)
    if way == "factored":
        for layer in model.layers:
            layer.unshard()
        check_followed(model)

    model = DistributedDataParallel(make_model(algebra, way))
    torch.testing.assert_close(train(model, whole=False), expected, rtol=1e-4, atol=0)
    if way == "factored":
        check_followed(model)
    for parameter in model.parameters():
        mine = parameter.detach().clone()
        dist.broadcast(mine, 0)
        assert torch.equal(mine, parameter)


def check_evaluation(algebra):
    """What eval mode keeps never outlives the weights it was made of: they are gathered into the same memory."""
    states = []
    for factor in (1.0, 1.1, 1.2, 1.3):
        states.append({name: factor * value for name, value in make_model(algebra).state_dict().items()})
    reference, model = make_model(algebra, "materialised").eval(), make_model(algebra, "materialised").eval()
    shard(model)
    x = torch.randn(2, 6, WIDTH)
    with torch.no_grad():
        for state in states * 2:
            reference.load_state_dict(state)
            model.reshard()  # the outermost parameters stay whole after a forward
            set_model_state_dict(model, dict(state), options=StateDictOptions(full_state_dict=True))
            torch.testing.assert_close(model(x), reference(x))
    assert quatrain.ops.prepared_size()[0] > 0


def check_save(algebra):
    try:
        quatrain.save_model(shard(make_model(algebra)), "never-written")
    except ValueError as error:
        assert "spread over several processes" in str(error)
    else:
        raise AssertionError("save_model wrote a part of a model")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    for algebra in sys.argv[1:]:
        check_training(algebra)
        check_evaluation(algebra)
    check_save(sys.argv[1])
    gc.collect()  # as in examples/python/distributed.py
    dist.barrier()
    dist.destroy_process_group()
