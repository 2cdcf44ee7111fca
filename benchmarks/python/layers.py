"""Times quatrain's Python layers beside others in one process: a call, layers, encoder layers, torch.compile.

    python benchmarks/python/layers.py --threads 1 2
    python benchmarks/python/layers.py --parts call --program build/release/bin/quatrain

Every candidate computes the same map, which is checked before it is timed. They take turns, and what is printed is the
ratio of medians. speechbrain's layer (pip install speechbrain) is left out where it is not installed.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Callable, Iterator

import torch
from torch import Tensor, nn

import quatrain
import rivals
from interleaved import Timing, interleaved

PARTS = ("call", "layer", "encoder", "compile")


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def step_of(module: nn.Module, x: Tensor, training: bool) -> Callable[[], object]:
    """One pass: the output; or the gradients of the input and of all parameters, A moving as it does in training."""
    if not training:
        return lambda: module(x)
    x = x.clone().requires_grad_()
    with torch.no_grad():
        gradient = torch.randn_like(module(x))
    inputs = [x, *(p for p in module.parameters() if p.requires_grad)]
    moving = [(p, torch.randn_like(p) * 1e-3) for name, p in module.named_parameters() if name.split(".")[-1] == "A"]

    def step() -> object:
        for A, change in moving:
            with torch.no_grad():
                A.add_(change)
                change.neg_()
        return torch.autograd.grad(module(x), inputs, gradient)

    return step


def check(name: str, actual: nn.Module, wanted: nn.Module, x: Tensor) -> None:
    """The same outputs and gradients of the input, up to rounding; refuses to time anything else."""
    with torch.no_grad():
        gradient = torch.randn_like(wanted(x))
    results = []
    for module in (actual, wanted):
        given = x.clone().requires_grad_()
        y = module(given)
        results.append((y.detach(), torch.autograd.grad(y, given, gradient)[0]))
    for what, one, other in zip(("output", "gradient of the input"), *results):
        error = ((one - other).norm() / other.norm()).item()
        if not error < 1e-4:
            sys.exit(f"layers.py: {name} does not compute what quatrain's layer does: the {what} is off by {error:.1e}")


def timed(candidates: dict[str, Callable[[], object]], training: bool, seconds: float) -> dict[str, Timing]:
    with torch.set_grad_enabled(training):
        return dict(zip(candidates, interleaved(list(candidates.values()), seconds)))


def row_of(times: dict[str, Timing], reference: str, **labels: object) -> dict:
    """Medians in microseconds, ratios to ``reference``, spreads between the quartiles."""
    return {
        **labels,
        "us": {name: t.median * 1e6 for name, t in times.items()},
        "ratio": {name: t.median / times[reference].median for name, t in times.items()},
        "spread": {name: t.spread for name, t in times.items()},
    }


def cases(arguments: argparse.Namespace) -> Iterator[tuple[int, str, int, int]]:
    for threads in arguments.threads:
        torch.set_num_threads(threads)
        for algebra in arguments.algebra:
            for size in arguments.sizes:
                for batch in arguments.batch:
                    yield threads, algebra, size, batch


def layer_rows(arguments: argparse.Namespace) -> Iterator[dict]:
    """quatrain.nn.Linear, its rivals, all of one map, in inference and in training."""
    for threads, algebra, size, batch in cases(arguments):
        ours = quatrain.nn.Linear(size, size, algebra=algebra)
        ours.factorize()
        x = torch.randn(batch, size)
        modules = {"quatrain": ours, **{name: make(ours) for name, make in rivals.makers(algebra).items()}}
        for name, module in modules.items():
            check(name, module, ours, x)
        for training in (False, True):
            times = timed(
                {name: step_of(m.train(training), x, training) for name, m in modules.items()},
                training,
                arguments.seconds,
            )
            yield row_of(
                times,
                "torch.nn.Linear",
                part="layer",
                algebra=algebra,
                size=str(size),
                batch=batch,
                threads=threads,
                **{"pass": "training" if training else "inference"},
            )


def encoder_rows(arguments: argparse.Namespace) -> Iterator[dict]:
    """An encoder layer with real attention whose linear maps are quatrain's or a rival's; torch's own beside it."""
    width, length = arguments.width, 64
    for threads in arguments.threads:
        torch.set_num_threads(threads)
        for algebra in arguments.algebra:
            for texts in (1, 8):
                ours = quatrain.nn.TransformerEncoderLayer(width, 4, 4 * width, algebra=algebra, attention="real", dropout=0.0)
                x = torch.randn(texts, length, width)
                modules: dict[str, nn.Module] = {"quatrain": ours}
                for name, make in rivals.makers(algebra).items():
                    modules[name] = rivals.with_linears(copy.deepcopy(ours), make)
                quatrain.factorize(ours)
                for name, module in modules.items():
                    check(name, module, ours, x)
                modules["torch's encoder layer"] = nn.TransformerEncoderLayer(
                    width, 4, 4 * width, 0.0, batch_first=True
                )
                for training in (False, True):
                    calls = {name: step_of(m.train(training), x, training) for name, m in modules.items()}
                    times = timed(calls, training, 2 * arguments.seconds)
                    yield row_of(
                        times,
                        "torch.nn.Linear",
                        part="encoder",
                        algebra=algebra,
                        size=f"{width}, {4 * width}",
                        batch=f"{texts} x {length}",
                        threads=threads,
                        **{"pass": "training" if training else "inference"},
                    )


def compile_rows(arguments: argparse.Namespace) -> Iterator[dict]:
    """A layer alone and a feed-forward, each as it is and compiled; the same of torch's linear layers."""
    for threads, algebra, size, batch in cases(arguments):
        for name, ours in (
            ("layer", nn.Sequential(quatrain.nn.Linear(size, size, algebra=algebra))),
            ("feed-forward", quatrain.nn.FeedForward(size, 4 * size, algebra=algebra, activation="gelu")),
        ):
            x = torch.randn(batch, size)
            real = rivals.with_linears(copy.deepcopy(ours), rivals.real)
            for training in (False, True):
                torch.compiler.reset()
                modules = {}
                for whose, eager in (("", ours), ("torch.nn, ", real)):
                    eager.train(training)
                    modules[whose + "eager"] = eager
                    modules[whose + "compiled"] = torch.compile(eager, fullgraph=True, dynamic=False)
                    with torch.no_grad():
                        modules[whose + "compiled"](x)
                for whose, module in modules.items():
                    check(whose, module, ours, x)
                calls = {name: step_of(module, x, training) for name, module in modules.items()}
                row = row_of(
                    timed(calls, training, arguments.seconds),
                    "eager",
                    part="compile",
                    algebra=f"{algebra}, {name}",
                    size=str(size),
                    batch=batch,
                    threads=threads,
                    **{"pass": "training" if training else "inference"},
                )
                us = row["us"]
                row["added"] = {
                    "adds": us["compiled"] - us["eager"],
                    "adds to torch.nn's": us["torch.nn, compiled"] - us["torch.nn, eager"],
                }
                yield row


def program_times(
    program: str, arguments: argparse.Namespace, threads: int
) -> dict[tuple[str, int], tuple[float, float]]:
    """Microseconds of a call of the C++ layer and of torch::nn::Linear, by algebra and size."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [
            program,
            "bench",
            "linear",
            "--algebra",
            *arguments.algebra,
            "--sizes",
            ",".join(map(str, arguments.call_sizes)),
            "--batch",
            "1",
            "--threads",
            str(threads),
            "--pass",
            "inference",
            "--seconds",
            str(arguments.seconds),
            "--json",
            str(report),
        ]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return {(row["algebra"], row["in"]): (row["us"], row["real_us"]) for row in json.loads(report.read_text())}


def call_rows(arguments: argparse.Namespace) -> Iterator[dict]:
    """A call on one row: the Python layer, the bare operator, the C++ layer as the program times it; torch's beside."""
    program = arguments.program
    if not program:
        progress("call: the C++ layer's times are left out: no program quatrain was found (--program PATH)")
    for threads in arguments.threads:
        torch.set_num_threads(threads)
        seen: dict[tuple[str, int], dict[str, list[float]]] = {}
        for _ in range(arguments.rounds):
            cpp = program_times(program, arguments, threads) if program else {}
            for algebra in arguments.algebra:
                for size in arguments.call_sizes:
                    layer = quatrain.nn.Linear(size, size, algebra=algebra)
                    layer.factorize()
                    layer.eval()
                    x, plain = torch.randn(1, size), rivals.real(layer)
                    factors = layer._factored[1:] if layer._factored else ()
                    operands = (x, layer.S, layer.bias, layer._algebra, layer.A, factors, "auto", None, True)
                    operator = torch.ops.quatrain.linear.default
                    check("the operator", operator_module(operands), layer, x)
                    times = timed(
                        {
                            "layer": lambda: layer(x),
                            "operator": lambda: operator(*operands),
                            "torch.nn.Linear": lambda: plain(x),
                        },
                        False,
                        arguments.seconds,
                    )
                    record = seen.setdefault((algebra, size), {})
                    for name, t in times.items():
                        record.setdefault(name, []).append(t.median * 1e6)
                    if cpp:
                        record.setdefault("C++ layer", []).append(cpp[algebra, size][0])
                        record.setdefault("torch::nn::Linear", []).append(cpp[algebra, size][1])
        for (algebra, size), record in seen.items():
            us = {name: statistics.median(values) for name, values in record.items()}
            spread = {name: (max(values) - min(values)) / us[name] for name, values in record.items()}
            added = {"over the operator": us["layer"] - us["operator"]}
            if program:
                added["over C++"] = us["layer"] - us["C++ layer"]
                added["torch's over its C++"] = us["torch.nn.Linear"] - us["torch::nn::Linear"]
            yield {
                "part": "call",
                "algebra": algebra,
                "size": str(size),
                "batch": 1,
                "threads": threads,
                "pass": "inference",
                "us": us,
                "added": added,
                "spread": spread,
            }


def operator_module(operands: tuple) -> nn.Module:
    class Operator(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.ops.quatrain.linear.default(x, *operands[1:])

    return Operator()


def table(rows: list[dict]) -> str:
    """One table a part: ratios, or for `call` microseconds."""
    lines = []
    for part in PARTS:
        mine = [row for row in rows if row["part"] == part]
        if not mine:
            continue
        value = "us" if part in ("call", "compile") else "ratio"
        columns = list(dict.fromkeys(name for row in mine for name in [*row[value], *row.get("added", {})]))
        titles = ["algebra", "size", "batch", "threads", "pass", *columns, "spread"]
        cells = [titles]
        for row in mine:
            values = {**row[value], **row.get("added", {})}
            shown = [f"{values[c]:.2f}" if c in values else "-" for c in columns]
            cells.append([str(row[t]) for t in titles[:5]] + shown + [f"{max(row['spread'].values()):.0%}"])
        widths = [max(len(r[i]) for r in cells) for i in range(len(titles))]
        unit = "microseconds" if value == "us" else "share of the time with torch.nn.Linear"
        lines += [f"{part}: {unit}"] + ["  ".join(c.rjust(w) for c, w in zip(r, widths)) for r in cells] + [""]
    return "\n".join(lines)


def machine() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        found = [line.split(":")[1].strip() for line in lines if "model name" in line]
    except OSError:
        found = []
    return (
        f"{found[0] if found else platform.processor()}, {os.cpu_count()} cores, {quatrain.ops.instruction_sets()[0]}"
    )


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="what to measure (all)")
    parser.add_argument("--algebra", nargs="+", default=["quaternion", "phm(4)"], help="quaternion 'phm(4)'")
    parser.add_argument(
        "--sizes",
        nargs="+",
        type=int,
        default=[256, 512, 1024],
        metavar="WIDTH",
        help="of square layers (256 512 1024)",
    )
    parser.add_argument(
        "--batch", nargs="+", type=int, default=[1, 32, 1024], metavar="ROWS", help="rows of the input (1 32 1024)"
    )
    parser.add_argument(
        "--call-sizes", nargs="+", type=int, default=[64, 256], metavar="WIDTH", help="of the part call (64 256)"
    )
    parser.add_argument("--width", type=int, default=256, help="of the encoder layer (256)")
    parser.add_argument(
        "--threads", nargs="+", type=int, default=[torch.get_num_threads()], help="numbers of threads (torch's)"
    )
    parser.add_argument("--seconds", type=float, default=0.5, help="about how long to measure a case (0.5)")
    parser.add_argument(
        "--rounds", type=int, default=5, help="of the part call: how often the program and Python take turns (5)"
    )
    parser.add_argument(
        "--program",
        default=os.environ.get("QUATRAIN_PROGRAM") or shutil.which("quatrain"),
        help="quatrain, for the C++ layer's times (QUATRAIN_PROGRAM, or from PATH)",
    )
    parser.add_argument("--json", metavar="FILE", help="write the rows as JSON too; - is the standard output")
    arguments = parser.parse_args()
    for name in ("threads", "sizes", "batch", "call_sizes"):
        if min(getattr(arguments, name)) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1, got {min(getattr(arguments, name))}")
    return arguments


def main() -> None:
    arguments = parse()
    torch.manual_seed(0)
    if rivals.QLinear is None:
        progress("speechbrain is not installed: its layer is left out (pip install speechbrain)")
    parts = {"call": call_rows, "layer": layer_rows, "encoder": encoder_rows, "compile": compile_rows}
    rows: list[dict] = []
    try:
        for part in arguments.parts:
            for row in parts[part](arguments):
                rows.append(row)
                case = f"{row['algebra']}, {row['size']}, batch {row['batch']}"
                progress(f"{part}: {case}, {row['threads']} threads, {row['pass']}")
    except KeyboardInterrupt:
        progress("stopped; what was measured so far:")
    except ValueError as error:
        sys.exit(f"layers.py: {error}")
    report = json.dumps({"machine": machine(), "torch": torch.__version__, "rows": rows}, indent=2)
    if arguments.json == "-":
        print(report)
    else:
        print(machine() + f", torch {torch.__version__}\n\n" + table(rows))
        if arguments.json:
            Path(arguments.json).write_text(report + "\n")


if __name__ == "__main__":
    main()
