"""`quatrain score` beside sacrebleu, over lines of every kind."""

import json
import os
import random
import subprocess

import pytest

PROGRAM = os.environ.get("QUATRAIN_PROGRAM")
if not PROGRAM:
    pytest.skip("the program is not built", allow_module_level=True)
sacrebleu = pytest.importorskip("sacrebleu", reason="sacrebleu is not installed (pip install sacrebleu)")

# White space of Unicode (and what looks like it), marks that the rules 13a know, digits, letters of 1 to 4 bytes.
SPACES = " \u00a0\u2003\u3000\u2028\x0b\x1c\x85\u200b"
PIECES = [*"abcXYZ0123456789.,.,.,-'\"&<>()[]{}/:;@!?+*%$#^_`|~\\", "&quot;", "&amp;", "&lt;", "&gt;", "<skipped>", *"äßéжλ日本語😀\u0301", *SPACES]


def scores(tmp_path, hypotheses, references, tokenize):
    files = [tmp_path / "hypotheses", *(tmp_path / f"references{i}" for i in range(len(references)))]
    for file, lines in zip(files, (hypotheses, *references)):
        file.write_bytes("".join(line + "\n" for line in lines).encode())
    done = subprocess.run(
        [PROGRAM, "score", *files, "--tokenize", tokenize, "--json", "-"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def compare(tmp_path, hypotheses, *references, tokenize):
    ours = scores(tmp_path, hypotheses, references, tokenize)
    bleu, chrf = sacrebleu.BLEU(tokenize=tokenize, force=True), sacrebleu.CHRF()
    score = bleu.corpus_score(hypotheses, references)
    assert ours["bleu"]["score"] == pytest.approx(score.score, rel=1e-9, abs=1e-12)
    assert ours["bleu"]["precisions"] == pytest.approx(score.precisions, rel=1e-9)
    assert ours["bleu"]["brevity_penalty"] == pytest.approx(score.bp, rel=1e-9)
    assert (ours["bleu"]["hypothesis_length"], ours["bleu"]["reference_length"]) == (score.sys_len, score.ref_len)
    assert ours["chrf"]["score"] == pytest.approx(chrf.corpus_score(hypotheses, references).score, rel=1e-9, abs=1e-12)
    for name, metric in (("bleu", bleu), ("chrf", chrf)):
        assert ours[name]["signature"].split("|version:")[0] == str(metric.get_signature()).split("|version:")[0]
    return ours


def spoiled(line, generator):
    """The line with some pieces replaced, dropped or put in."""
    pieces = [piece if generator.random() < 0.8 else generator.choice(PIECES) for piece in line if generator.random() < 0.95]
    return "".join(pieces)


@pytest.mark.parametrize("tokenize", ["13a", "none", "char"])
def test_random_text(tmp_path, tokenize):
    generator = random.Random(0)
    for lines in (1, 2, 5, 300):
        references = ["".join(generator.choices(PIECES, k=generator.randrange(60))) for _ in range(lines)]
        hypotheses = [spoiled(line, generator) for line in references]
        compare(tmp_path, hypotheses, references, tokenize=tokenize)
        others = [[spoiled(line, generator) for line in references] for _ in range(2)]
        compare(tmp_path, hypotheses, *others, references, tokenize=tokenize)


@pytest.mark.parametrize("tokenize", ["13a", "none", "char"])
def test_sentences(tmp_path, tokenize):
    references = ["Two young, white males are outside near many bushes.", "Several men in hard hats are operating a giant pulley system."] * 3
    hypotheses = ["Two young white men are outside near bushes.", "Several men in hard hats operate a giant system.", "", "A", "Two", "men operating"]
    assert 0 < compare(tmp_path, hypotheses, references, tokenize=tokenize)["bleu"]["score"] < 60
    for one in ("", "word", "two words", "no match at all, none"):
        compare(tmp_path, [one], ["word"], tokenize=tokenize)
        compare(tmp_path, ["word"], [one], tokenize=tokenize)
