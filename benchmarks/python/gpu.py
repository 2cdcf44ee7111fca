"""Times quatrain's layers on a GPU beside torch's: the operators are compositions of torch's own there.

    python benchmarks/python/gpu.py

Each line has milliseconds of the real layer, of ours, and their ratio, for inference and for a training step (both passes, without
an optimizer): medians of calls that take turns. Float32 products of matrices are made without TF32; convolutions and LSTMs of cuDNN
may take it, as by torch's default.
"""

from __future__ import annotations

from typing import Callable

import torch
from interleaved import interleaved
from torch import Tensor

from quatrain import nn


def call_of(layer: torch.nn.Module, x: Tensor, training: bool) -> Callable[[], None]:
    """A call that ends when the device has ended it."""

    def infer() -> None:
        with torch.no_grad():
            layer(x)
        torch.cuda.synchronize()

    def step() -> None:
        y = layer(x)
        (y[0] if isinstance(y, tuple) else y).sum().backward()
        layer.zero_grad()
        torch.cuda.synchronize()

    return step if training else infer


def compare(name: str, real: torch.nn.Module, ours: torch.nn.Module, x: Tensor) -> None:
    columns = []
    for training in (False, True):
        calls = [call_of(layer.train(training), x, training) for layer in (real, ours)]
        a, b = (1e3 * timing.median for timing in interleaved(calls, seconds=0.2))
        columns.append(f"{a:.3f} {b:.3f} {b / a:.2f}")
    print(f"{name:<32} inference {columns[0]}   training {columns[1]}", flush=True)


def main() -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    print(torch.cuda.get_device_name())
    for dtype in (torch.float32, torch.bfloat16):
        options = {"device": "cuda", "dtype": dtype}
        for width in (512, 1024, 2048, 4096):
            for rows in (1, 64, 1024, 8192):
                x = torch.randn(rows, width, requires_grad=True, **options)
                real, ours = torch.nn.Linear(width, width, **options), nn.Linear(width, width, **options)
                compare(f"linear {width} {rows} rows {str(dtype)[6:]}", real, ours, x)
    x = torch.randn(16, 128, 32, 32, device="cuda", requires_grad=True)
    pair = (layer(128, 128, 3, padding=1, device="cuda") for layer in (torch.nn.Conv2d, nn.Conv2d))
    compare("conv 3x3 128, 16 of 32x32", *pair, x)
    x = torch.randn(100, 16, 512, device="cuda", requires_grad=True)
    compare("lstm 512, 100 steps of 16", torch.nn.LSTM(512, 512, device="cuda"), nn.LSTM(512, 512, device="cuda"), x)


if __name__ == "__main__":
    main()
