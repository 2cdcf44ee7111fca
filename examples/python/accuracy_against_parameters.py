# %% [markdown]
# Accuracy against parameters: small classifiers with n = 1, 2, 4 and 8 on generated data.
#
#     python examples/python/accuracy_against_parameters.py
#
# The cells run in order in an editor that knows `# %%`, or all at once as a program. It needs the package
# (docs/python.md); matplotlib draws the picture, and without it the table is printed all the same.
#
# The task: a unit quaternion q and a point p of the unit sphere are given, 8 numbers. Which of the twelve corners of an
# icosahedron is nearest to p, rotated by q? A guess is right in one of twelve. New data are drawn in every step, so
# nothing can be learned by heart: what a model gets wrong it is too small, or too shortly trained, to know.

# %%
import argparse
import statistics
import sys

import quatrain
import torch
from torch import Tensor, nn

COMPONENTS = (1, 2, 4, 8)

parser = argparse.ArgumentParser(description="Accuracy against parameters of small classifiers, n = 1, 2, 4, 8.")
parser.add_argument(
    "--widths", type=int, nargs="+", default=[16, 32, 64, 128], help="of the hidden layers; multiples of 8"
)
parser.add_argument("--seeds", type=int, default=4, help="runs of each model (4)")
parser.add_argument("--steps", type=int, default=1000, help="of training, each on 256 new examples (1000)")
parser.add_argument(
    "--out", default="accuracy_against_parameters.svg", help="where the picture goes; .svg, .png or .pdf"
)
parser.add_argument("--quick", action="store_true", help="two widths, two seeds, 60 steps: to see that it runs")
options = parser.parse_args([] if "ipykernel" in sys.modules else None)
if options.quick:
    options.widths, options.seeds, options.steps = options.widths[:2], 2, 60
if options.seeds < 1 or options.steps < 1 or any(width < 8 or width % 8 for width in options.widths):
    parser.error("--seeds and --steps must be at least 1, --widths multiples of 8")
torch.set_num_threads(1)  # more do not help layers as small as these

# %% [markdown]
# Data: q p q* is two Hamilton products, which the library has as an operator.

# %%
GOLDEN = (1 + 5**0.5) / 2
EDGES = torch.tensor([[0, a, b * GOLDEN] for a in (1, -1) for b in (1, -1)])
CORNERS = torch.cat([EDGES, EDGES.roll(1, dims=1), EDGES.roll(2, dims=1)])


def draw(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Inputs (count, 8), components q and then 0, p; and the index of the nearest corner, (count)."""
    q = nn.functional.normalize(torch.randn(count, 4, generator=generator), dim=1)
    p = nn.functional.normalize(torch.randn(count, 3, generator=generator), dim=1)
    p = nn.functional.pad(p, (1, 0))
    product = quatrain.ops.hamilton_product
    rotated = product(product(q, p, "quaternion"), quatrain.ops.hypercomplex_conjugate(q, "quaternion"), "quaternion")
    return 2 * torch.cat([q, p], dim=1), (rotated[:, 1:] @ CORNERS.T).argmax(1)


# %% [markdown]
# Models: two hidden layers over a learned algebra, phm(n); n = 1 is the real layer. The last layer is always real.


# %%
def make_model(n: int, width: int) -> nn.Sequential:
    return nn.Sequential(
        quatrain.nn.Linear(8, width, algebra=f"phm({n})"),
        nn.GELU(),
        quatrain.nn.Linear(width, width, algebra=f"phm({n})"),
        nn.GELU(),
        nn.Linear(width, len(CORNERS)),
    )


def train(n: int, width: int, seed: int) -> tuple[int, float]:
    """Parameters, and the percentage of right answers on 10,000 examples that are the same for all models."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(1000 + seed)
    model = make_model(n, width)
    optimizer = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=4e-3, total_steps=options.steps)
    for _ in range(options.steps):
        x, label = draw(256, generator)
        loss = nn.functional.cross_entropy(model(x), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    x, label = draw(10_000, torch.Generator().manual_seed(0))
    with torch.no_grad():
        right = model.eval()(x).argmax(1) == label
    return sum(p.numel() for p in model.parameters()), 100 * right.double().mean().item()


# %% [markdown]
# Training. The spread is the standard deviation over the seeds.

# %%
results: dict[int, list[tuple[int, float, float]]] = {}
print("  n  width  parameters  accuracy")
for n in COMPONENTS:
    for width in options.widths:
        runs = [train(n, width, seed) for seed in range(options.seeds)]
        accuracies = [accuracy for _, accuracy in runs]
        spread = statistics.stdev(accuracies) if len(runs) > 1 else 0.0
        results.setdefault(n, []).append((runs[0][0], statistics.mean(accuracies), spread))
        print(f"{n:3}  {width:5}  {runs[0][0]:10,}  {results[n][-1][1]:5.1f} +- {spread:.1f} %", flush=True)

# %% [markdown]
# The picture.


# %%
def draw_picture(path: str) -> None:
    import matplotlib

    matplotlib.use("svg" if path.endswith(".svg") else "agg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "quatrain", "font.size": 10})
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    for n, colour, marker in zip(COMPONENTS, ("#222222", "#0072b2", "#d55e00", "#009e73"), "osD^"):
        parameters, accuracy, spread = zip(*results[n])
        axes.errorbar(
            parameters,
            accuracy,
            spread,
            color=colour,
            marker=marker,
            markersize=4.5,
            capsize=2.5,
            linewidth=1.4,
            label="n = 1 (real)" if n == 1 else f"n = {n}",
        )
    axes.set_xscale("log")
    axes.set_xticks([ticks * 10**power for power in range(2, 7) for ticks in (1, 2, 5)], minor=False)
    axes.set_xticks([], minor=True)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    all_parameters = [row[0] for rows in results.values() for row in rows]
    axes.set_xlim(min(all_parameters) / 1.2, max(all_parameters) * 1.2)
    axes.set_xlabel("parameters of the classifier (log scale)")
    axes.set_ylabel("right answers on new data (%)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.legend(title=f"hidden widths {', '.join(map(str, options.widths))}", frameon=False, loc="lower right")
    figure.savefig(path, metadata={"Date": None} if path.endswith(".svg") else None)
    print(f"picture: {path}")


try:
    draw_picture(options.out)
except ImportError as error:
    if error.name != "matplotlib":
        raise
    print("no picture was drawn: matplotlib is not installed (pip install matplotlib)", file=sys.stderr)
