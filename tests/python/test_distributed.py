"""Several processes on one machine: DistributedDataParallel and FSDP2 train as one process does."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from quatrain import nn

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples/python/distributed.py"

pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no torch.distributed")


def run(processes, script, *arguments):
    """What it printed; 0 processes: without torchrun."""
    path = os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    # Addresses instead of --standalone: a bare machine may know neither its own name nor "localhost", and looking for
    # them takes a minute each time.
    meeting = ["--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0", "--local-addr", "127.0.0.1"]
    launcher = ["-m", "torch.distributed.run", *meeting]
    launcher = [*launcher, "--nproc-per-node", str(processes)] if processes else []
    command = [sys.executable, *launcher, str(script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    # What each process wrote is told by its number; without one, by torchrun or a process alone.
    told = "\n".join(re.findall(r"^.*\[rank\d+\].*$", done.stderr, re.MULTILINE)[-90:])
    assert done.returncode == 0, told or done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize(
    "processes, algebras", [(2, ["quaternion", "phm(4)"]), (3, ["complex"])], ids=["2", "3 > n"]
)
def test_training_on_several_processes(processes, algebras):
    run(processes, Path(__file__).with_name("distributed_worker.py"), *algebras)


def test_the_example():
    curves = []
    for processes, how in ((0, []), (2, ["--ddp"]), (2, ["--fsdp"])):
        text = run(processes, EXAMPLE, "--steps", "20", "--every", "5", "--width", "16", "--batch", "40", *how)
        curves.append([float(loss) for loss in re.findall(r"loss ([\d.]+)", text)])
    assert len(curves[0]) == 4 and curves[0][-1] < curves[0][0]
    for curve in curves[1:]:
        assert curve == pytest.approx(curves[0], rel=1e-4, abs=1e-6)


def test_placement():
    from quatrain.distributed import shard_placement

    layer = nn.Linear(24, 40, algebra="phm(4)")  # S: (4, 10, 6), A: (4, 4, 4)
    cuts = {size: shard_placement(layer.S, size) for size in (1, 2, 3, 4, 5, 6, 7)}
    assert {size: cut and cut.dim for size, cut in cuts.items()} == {1: 0, 2: 0, 3: 2, 4: 0, 5: 1, 6: 2, 7: None}
    assert shard_placement(layer.A, 3) is None and shard_placement(layer.bias, 8) is None
