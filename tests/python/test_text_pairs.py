"""Ranked answers of a run beside pytrec_eval, which is trec_eval itself."""

import collections
import csv
import json
import os
import random
import subprocess

import pytest

PROGRAM = os.environ.get("QUATRAIN_PROGRAM")
if not PROGRAM:
    pytest.skip("the program is not built", allow_module_level=True)
pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec_eval is not installed (pip install pytrec-eval-terrier)")

SIZE = "model.width=20 model.word_width=20 train.steps=3 train.evaluate_every=0 train.threads=1".split()


def write_answers(folder):
    """Questions of one to nine answers, many of which are equal: their scores are too, and their names decide."""
    generator = random.Random(0)
    for name in ("train", "dev", "test"):
        (folder / name).mkdir()
        lines = collections.defaultdict(list)
        for question in range(40):
            for place in range(generator.randrange(1, 10)):
                lines["a.toks"].append(f"what is word{question}")
                lines["b.toks"].append(f"it is answer{generator.randrange(3)}")
                lines["sim.txt"].append(str(generator.randrange(2)))
                lines["id.txt"].append(f"Q{question}-D{generator.randrange(30)}-{place}")
        for file, of in lines.items():
            (folder / name / file).write_text("\n".join(of) + "\n")


def test_ranking_is_trec_evals(tmp_path):
    write_answers(tmp_path)
    run = tmp_path / "run"
    settings = [word for key in SIZE for word in ("--set", key)]
    done = subprocess.run([PROGRAM, "train", "wikiqa", "--data", tmp_path, "--out", run, *settings], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    relevance, scores = collections.defaultdict(dict), collections.defaultdict(dict)
    with open(run / "test.ranking.tsv") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            relevance[row["question"]][row["document"]] = int(row["relevance"])
            scores[row["question"]][row["document"]] = float(row["score"])
    ties = sum(len(of) - len(set(of.values())) for of in scores.values())
    assert ties > 20
    found = pytrec_eval.RelevanceEvaluator(relevance, {"map", "recip_rank", "P_1"}).evaluate(scores)
    assert len(found) == 40
    ours = json.loads((run / "result.json").read_text())["test"]
    for figure, theirs in (("map", "map"), ("mrr", "recip_rank"), ("precision_at_1", "P_1")):
        assert ours[figure] == pytest.approx(sum(of[theirs] for of in found.values()) / len(found), abs=1e-9)
