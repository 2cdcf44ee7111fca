"""The tables of scripts/results whose test sets are speakers: each fold trains the twins without its test speakers.

Errors are added up over the folds, so that every recording is scored once a seed. The speakers of the next fold are dev. The column of dev is the mean
over the runs of the figure that selected their checkpoints. The interval of a difference takes the folds as what was drawn: their speakers, and the
runs that were trained for them. Leaving out one fold in turn gives its standard error (the jackknife), and Student's t the rest.
"""

import json
import math
import re
import subprocess
import sys
from pathlib import Path

DIGITS = ["george", "jackson", "lucas", "nicolas", "theo", "yweweler"]
TIMIT = [
    "fvmh0 mcpm0", "faem0 marc0", "falk0 madc0", "falr0 maeb0",
    "ftlg0 mbgt0", "fapb0 mbma1", "fblv0 madd0", "fbcg1 mbcg0",
]  # fmt: skip
# The recipe, the speakers of each fold, the seeds and the twins, of which the first is the reference.
TABLES = {
    "digits_speakers": ("digits", DIGITS, 5, ["lstm", "lstm-narrow", "qlstm"]),
    "phonemes": ("phonemes", TIMIT, 2, ["lstm", "lstm-narrow", "qlstm"]),
    "phonemes_ctc": ("phonemes_ctc", TIMIT, 2, ["lstm", "lstm-narrow", "qlstm"]),
}
LINE = re.compile(r"^(\S+) %\S+ \S+ \[ (\d+) / (\d+),")  # a speaker's line of test.errors.txt


def trained(program, recipe, data, out, twin, seed, settings):
    """The result of a run, which is trained if it is not there."""
    if not (out / "result.json").exists():
        command = [program, "train", *([out, "--resume"] if out.exists() else [recipe, "--data", data, "--out", out])]
        command += [] if out.exists() else ["--twin", twin, "--seed", str(seed), *sum((["--set", s] for s in settings), [])]
        if subprocess.run(command, stdout=subprocess.DEVNULL).returncode:
            sys.exit(f"results: {out} was not trained; the same command goes on with it")
    return json.loads((out / "result.json").read_text())


def errors_of(run):
    """Errors and tokens of each speaker of a run's test set."""
    lines = (run / "test.errors.txt").read_text().splitlines()
    speakers = [match.groups() for match in map(LINE.match, lines) if match]
    if not speakers:  # one alone: the first line is the speaker's
        speakers = [("", *re.search(r"\[ (\d+) / (\d+),", lines[0]).groups())]
    return {name: (int(errors), int(tokens)) for name, errors, tokens in speakers}


def student(p, degrees):
    """Student's t that is not exceeded in size with probability p, by bisection over Simpson's rule."""
    scale = math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)) / math.sqrt(degrees * math.pi)

    def inside(t, steps=2000):
        heights = [(1 + (i * t / steps) ** 2 / degrees) ** (-(degrees + 1) / 2) for i in range(steps + 1)]
        return 2 * scale * t / steps / 3 * (heights[0] + heights[-1] + 4 * sum(heights[1:-1:2]) + 2 * sum(heights[2:-1:2]))

    low, high = 0.0, 1000.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if inside(middle, 2000 if middle < 50 else 40000) < p else (low, middle)
    return low


def interval(folds, confidence):
    """The pooled difference of folds of (more errors, tokens), and the interval that leaving out folds gives."""
    rate = lambda chosen: sum(more for more, _ in chosen) / sum(tokens for _, tokens in chosen)
    n, pooled = len(folds), rate(folds)
    without = [rate(folds[:i] + folds[i + 1 :]) for i in range(n)]
    error = math.sqrt((n - 1) / n * sum((one - sum(without) / n) ** 2 for one in without))
    reach = student(confidence, n - 1) * error
    return pooled, pooled - reach, pooled + reach


def deviation(values):
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / max(len(values) - 1, 1))


def make(program, name, arguments, root):
    recipe, folds, seeds, twins = TABLES[name]
    out = Path(arguments.out or root / "runs/results" / name)
    twins = list(dict.fromkeys(arguments.twins.split(","))) if arguments.twins else twins  # each once
    seeds = range(1, int(arguments.seeds or seeds) + 1)
    counts, results = {}, {}
    for i, test in enumerate(folds):
        for seed in seeds:
            for twin in twins:
                run = out / f"{twin}-fold{i + 1}-seed{seed}"
                speakers = [f"task.test_speakers={test}", f"task.dev_speakers={folds[(i + 1) % len(folds)]}"]
                result = trained(program, recipe, arguments.data, run, twin, seed, [*speakers, "train.threads=1"])
                results.setdefault(twin, []).append(result)
                for speaker, (errors, tokens) in errors_of(run).items():
                    counts.setdefault(twin, {}).setdefault(i, {}).setdefault(speaker, []).append((errors, tokens))
    return lines_of(twins, counts, results, len(folds), seeds)


def lines_of(twins, counts, results, folds, seeds):
    def added(runs):
        return [sum(column) for column in zip(*runs)]

    def of_fold(twin, i):
        return added([pair for runs in counts[twin][i].values() for pair in runs])

    def mean_of(twin, split, figure):
        shares = [result[split][figure] for result in results[twin]]
        return f"{100 * sum(shares) / len(shares):.1f}"

    frames = "frame_error" in results[twins[0]][0]["test"]
    dev = results[twins[0]][0].get("figure")  # what selected the checkpoint
    if dev not in ("frame_error", "error_rate"):
        sys.exit(f"results: the first run says that {dev} selected its checkpoint, not its errors: train the runs anew")
    columns = ["twin", "of the layers", "wrong frames of dev" if dev == "frame_error" else "errors of dev"]
    columns += [*(["wrong frames"] if frames else []), "errors", "spread over speakers", f"to {twins[0]}", "95% interval"]
    lines = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    for twin in twins:
        rates = [errors / tokens for fold in counts[twin].values() for errors, tokens in map(added, fold.values())]
        errors, tokens = added([of_fold(twin, i) for i in range(folds)])
        cells = [twin, f"{int(results[twin][0]['facts']['encoder_parameters']):,}", mean_of(twin, "dev", dev)]
        cells += [mean_of(twin, "test", "frame_error")] if frames else []
        cells += [f"{100 * errors / tokens:.1f}", f"{100 * min(rates):.1f} to {100 * max(rates):.1f}, \u00b1 {100 * deviation(rates):.1f}"]
        if twin == twins[0]:
            cells += ["", ""]
        else:
            more = [(of_fold(twin, i)[0] - of_fold(twins[0], i)[0], of_fold(twin, i)[1]) for i in range(folds)]
            pooled, low, high = (100 * value for value in interval(more, 1 - 0.05 / (len(twins) - 1)))
            cells += [f"{pooled:+.1f}", f"{low:+.1f} to {high:+.1f}"]
        lines.append("| " + " | ".join(cells) + " |")
    commits = sorted({result["commit"] for runs in results.values() for result in runs})
    lines.append(f"\n{folds} folds, seeds {', '.join(map(str, seeds))}, {tokens // len(seeds):,} tokens; commit {', '.join(commits)}.")
    return "\n".join(lines)
