#!/usr/bin/env python3
"""The time of a plain PyTorch ResNet18 for CIFAR's pictures, to set beside `quatrain bench model cifar10`.

usage: benchmarks/python/resnet.py [--threads N] [--rounds N] [--batch N ...]

Channels last, float32. In inference the batch norms are folded into the convolutions, as torch's own fusion does it.
Training is forward, backward and SGD with momentum. Prints the median time of a batch, in milliseconds.
"""

import argparse
import statistics
import time

import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(outputs)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(outputs)
        self.shortcut = self.shortcut_norm = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.shortcut_norm = nn.BatchNorm2d(outputs)

    def forward(self, x):
        y = torch.relu_(self.first_norm(self.first(x)))
        y = self.second_norm(self.second(y))
        y += self.shortcut_norm(self.shortcut(x))
        return torch.relu_(y)

    def fold(self):
        for name in ("first", "second", "shortcut"):
            convolution, norm = getattr(self, name), getattr(self, f"{name}_norm")
            if isinstance(convolution, nn.Conv2d):
                setattr(self, name, fuse_conv_bn_eval(convolution, norm))
                setattr(self, f"{name}_norm", nn.Identity())


class ResNet18(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.stem_norm = nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64)
        widths = [64, 64, 64, 128, 128, 256, 256, 512, 512]
        self.blocks = nn.Sequential(*(Block(a, b, 1 if a == b else 2) for a, b in zip(widths, widths[1:])))
        self.head = nn.Linear(512, 10)

    def forward(self, x):
        x = torch.relu_(self.stem_norm(self.stem(x)))
        return self.head(self.blocks(x).mean((2, 3)))

    def fold(self):
        self.eval()
        self.stem, self.stem_norm = fuse_conv_bn_eval(self.stem, self.stem_norm), nn.Identity()
        for block in self.blocks:
            block.fold()


def median(call, rounds):
    call(), call()
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return 1000 * statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--batch", type=int, nargs="+", default=[64, 32, 1], help="the first one is trained with too")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    torch.manual_seed(1)
    net = ResNet18().to(memory_format=torch.channels_last)

    def pictures(count):
        return torch.randn(count, 3, 32, 32).to(memory_format=torch.channels_last)

    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
    x, y = pictures(asked.batch[0]), torch.randint(0, 10, (asked.batch[0],))

    def step():
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()

    print(f"training   batch {asked.batch[0]:3}  {median(step, max(3, asked.rounds // 3)):8.1f} ms")
    net.fold()
    with torch.no_grad():
        for count in asked.batch:
            x = pictures(count)
            print(f"inference  batch {count:3}  {median(lambda: net(x), asked.rounds):8.1f} ms")


if __name__ == "__main__":
    main()
