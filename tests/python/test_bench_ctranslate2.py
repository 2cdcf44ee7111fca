"""scripts/bench_ctranslate2 with a stand-in for CTranslate2: what it asks for, and when it times nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "bench_ctranslate2"
# Every translation is as long as its source where it may be, and scores are those of the folder plus OFF.
STAND_IN = """
import json, os
from types import SimpleNamespace

__version__ = "0"

class Translator:
    def __init__(self, folder, compute_type, **options):
        self.folder, self.compute_type = folder, compute_type

    def translate_batch(self, sources, *, min_decoding_length, max_decoding_length, **options):
        lengths = [min(max(len(source), min_decoding_length), max_decoding_length) for source in sources]
        return [SimpleNamespace(hypotheses=[["w"] * length]) for length in lengths]

    def score_batch(self, sources, targets, **options):
        pairs = json.load(open(f"{self.folder}/scores.json"))
        assert (sources, targets) == ([pair["source"] for pair in pairs], [pair["target"] for pair in pairs])
        off = [float(value) for value in os.environ["OFF"].split()]
        return [SimpleNamespace(log_probs=[score + by for score, by in zip(pair["log_probabilities"], off)]) for pair in pairs]
"""


@pytest.fixture
def bench(tmp_path):
    (tmp_path / "ctranslate2.py").write_text(STAND_IN)
    (tmp_path / "model.bin").touch()
    (tmp_path / "sources").write_text("w4 w5 w6\nw7\n")

    def run(*options, off="0 0"):
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), "OFF": off}
        command = [sys.executable, SCRIPT, tmp_path, "--source", tmp_path / "sources", "--batch", "2", "--beam", "1", "--threads", "1", *options]
        return subprocess.run(command, capture_output=True, text=True, env=environment)

    return run


def cases(done):
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_lengths_are_equal_or_free(bench):
    assert {case["target_tokens"] for case in cases(bench("--length", "6"))} == {12}
    assert {case["target_tokens"] for case in cases(bench("--length", "6", "--free"))} == {4}
    assert {case["target_tokens"] for case in cases(bench("--length", "2", "--free"))} == {3}


def test_all_lines_are_translated_where_lengths_are_free(bench, tmp_path):
    (tmp_path / "sources").write_text("".join("w4 " * length + "\n" for length in (3, 1, 5, 2, 4)))
    assert {(case["sentences"], case["target_tokens"]) for case in cases(bench("--length", "6", "--free"))} == {(5, 15)}
    assert {(case["sentences"], case["target_tokens"]) for case in cases(bench("--length", "6"))} == {(4, 24)}


def test_nothing_is_timed_where_scores_differ(bench, tmp_path):
    assert not any(case["checked"] for case in cases(bench()))
    pairs = [{"source": ["w4"], "target": ["w5"], "log_probabilities": [-1.5, -2.0]}]
    (tmp_path / "scores.json").write_text(json.dumps(pairs))
    for off in ("0 0", "9e-4 0", "0 -9e-4"):
        assert all(case["checked"] for case in cases(bench(off=off)))
    for off in ("2e-3 0", "0 -2e-3", "nan 0", "0 nan"):
        done = bench(off=off)
        assert done.returncode != 0 and not done.stdout
        assert "a token of pair 1 of" in done.stderr and "computes another function" in done.stderr
    done = bench(off="0")
    assert done.returncode != 0 and "has 2 log-probabilities, where CTranslate2 gives 1" in done.stderr
