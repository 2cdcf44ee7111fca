"""A model written for CTranslate2 computes there what it computes here."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

WRITER = os.environ.get("QUATRAIN_WRITE_CTRANSLATE2")
# A Python that has ctranslate2; it need not be the one that has torch.
PYTHON = os.environ.get("QUATRAIN_CTRANSLATE2_PYTHON", sys.executable)
if not WRITER:
    pytest.skip("QUATRAIN_WRITE_CTRANSLATE2 names no program (make test sets it)", allow_module_level=True)
if subprocess.run([PYTHON, "-c", "import ctranslate2"], capture_output=True).returncode != 0:
    pytest.skip(f"{PYTHON} has no ctranslate2 (pip install ctranslate2, or name one in QUATRAIN_CTRANSLATE2_PYTHON)", allow_module_level=True)

ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
MODELS = [
    "",
    "norm=pre packed=1 output=real",
    "algebra=quaternion",
    "algebra=quaternion norm=pre packed=1 output=algebra embedding_in_algebra=1 share_embeddings=1",
    "algebra=quaternion split=printed packed=1 scope=partial positions=learned activation=gelu",
    "algebra=phm(4) norm=pre output=real source_vocabulary=60 bias=0",
    "algebra=phm(4) split=printed output=algebra activation=silu embedding_scale=0",
    "algebra=wkp(2) packed=1 share_embeddings=1 activation=gelu_tanh",
    "activation=tanh",
    "activation=sigmoid",
]


@pytest.mark.parametrize("settings", MODELS)
def test_computes_the_same(tmp_path, settings):
    written = subprocess.run([WRITER, tmp_path / "model", *settings.split()], capture_output=True, text=True)
    assert written.returncode == 0, written.stderr
    worker = Path(__file__).with_name("ctranslate2_worker.py")
    answered = subprocess.run([PYTHON, worker, tmp_path / "model"], input=written.stdout, capture_output=True, text=True, env=ENVIRONMENT)
    assert answered.returncode == 0, answered.stderr
    answers = json.loads(answered.stdout)
    for i, sentence in enumerate(json.loads(written.stdout)["sentences"]):
        assert answers["tokens"][i] == answers["expected"][i]["target"]
        assert answers["log_probabilities"][i] == pytest.approx(sentence["log_probabilities"], abs=1e-4)
        assert answers["greedy"][i] == answers["expected"][i]["greedy"]


def test_is_timed(tmp_path):
    subprocess.run([WRITER, tmp_path / "model", "algebra=quaternion"], check=True, capture_output=True)
    (tmp_path / "source").write_text("w4 w5 w6\nw7\n")
    script = Path(__file__).parents[2] / "scripts" / "bench_ctranslate2"
    few = ["--batch", "1,3", "--beam", "1,2", "--threads", "1", "--length", "6", "--repeats", "2"]

    def bench(*more):
        return subprocess.run([PYTHON, script, *few, *more], capture_output=True, text=True, env=ENVIRONMENT)

    done = bench(tmp_path / "model", "--source", tmp_path / "source")
    assert done.returncode == 0, done.stderr
    cases = [json.loads(line) for line in done.stdout.splitlines()]
    assert len({(case["type"], case["mkl"], case["beam"], case["batch"]) for case in cases}) == len(cases) == 16
    for case in cases:
        assert case["target_tokens"] == 6 * case["sentences"] and case["tokens_per_second"] * min(case["all_seconds"]) == pytest.approx(case["target_tokens"])
        assert case["source_tokens"] == 10 and any("SGEMM" in line for line in case["said"])
    assert bench(tmp_path / "model", "--types", "float32", "--source-length", "5").returncode == 0
    assert "has no model.bin" in bench(tmp_path).stderr


PROGRAM = os.environ.get("QUATRAIN_PROGRAM")


@pytest.mark.skipif(not PROGRAM, reason="QUATRAIN_PROGRAM names no program")
def test_is_timed_where_scores_are_the_same(tmp_path):
    sizes = "--width 32 --heads 2 --feed-forward 64 --layers 1 --vocabulary 64 --source 5 --target 6 --algebra quaternion --output algebra"
    subprocess.run([PROGRAM, "bench", "decoding", *sizes.split(), "--write", tmp_path / "made"], check=True, capture_output=True)
    script = Path(__file__).parents[2] / "scripts" / "bench_ctranslate2"
    few = ["--batch", "2", "--beam", "1", "--threads", "1", "--length", "6", "--repeats", "1", "--source", tmp_path / "made/sources.txt"]

    def bench(algebra, *more):
        return subprocess.run([PYTHON, script, tmp_path / "made" / algebra, *few, *more], capture_output=True, text=True, env=ENVIRONMENT)

    for algebra in ("real", "quaternion"):
        done = bench(algebra, "--free")
        assert done.returncode == 0, done.stderr
        for line in done.stdout.splitlines():
            case = json.loads(line)
            assert case["checked"] and case["free"] and case["target_tokens"] <= 6 * case["sentences"]
    (tmp_path / "made/real/scores.json").write_text((tmp_path / "made/quaternion/scores.json").read_text())
    done = bench("real")
    assert done.returncode != 0 and not done.stdout and "computes another function" in done.stderr


# Cuts lines as the run does, translates greedily, and puts the translations together. usage: PIECES < lines > answers
TRANSLATE = """
import ctranslate2, json, sys
pieces = sys.argv[1]
if pieces in ("unigram", "bpe"):
    import sentencepiece
    source, target = (sentencepiece.SentencePieceProcessor(model_file=f"made/{side}.spm") for side in ("source", "target"))
    cut, join = (lambda line: source.encode(line, out_type=str)), target.decode
else:
    cut, join = (str.split, " ".join) if pieces == "words" else (list, "".join)
translator = ctranslate2.Translator("made", compute_type="float32", intra_threads=1)
sources = [cut(line) for line in json.load(sys.stdin)]
targets = [one.hypotheses[0] for one in translator.translate_batch(sources, beam_size=1, max_decoding_length=20)]
if pieces in ("unigram", "bpe"):
    assert all(target.id_to_piece(target.piece_to_id(piece)) == piece for made in targets for piece in made), "target.spm lacks pieces"
json.dump({"sources": sources, "targets": targets, "answers": [join(target) for target in targets]}, sys.stdout)
"""


def converted_run(folder, pieces, settings):
    """A run that is trained and written for CTranslate2 as `made`; how lines are translated by the one and by the other."""

    def quatrain(*words, text=None):
        done = subprocess.run([PROGRAM, *words], input=text, capture_output=True, text=True, cwd=folder)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def here(lines):
        limits = ["--set=decode.beam=1", "--set=decode.longest=20", "--set=decode.longest_offset=20"]
        return quatrain("predict", "run", *limits, text="\n".join(lines) + "\n").splitlines()

    def there(lines):
        done = subprocess.run([PYTHON, "-c", TRANSLATE, pieces], input=json.dumps(lines), capture_output=True, text=True, cwd=folder, env=ENVIRONMENT)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    training = {"train.threads": 1, "train.evaluate_every": 60, "train.rate": 5e-3, "model.attention": "real", "model.width": 32, "model.heads": 2}
    every = training | {"vocabulary.pieces": pieces} | settings
    quatrain("train", "reverse", "--out", "run", *(f"--set={key}={value}" for key, value in every.items()))
    quatrain("convert", "run", "made", "--to", "ctranslate2")
    return here, there


@pytest.mark.skipif(not PROGRAM, reason="QUATRAIN_PROGRAM names no program")
@pytest.mark.parametrize("pieces", ["words", "characters"])
def test_a_run_translates_the_same(tmp_path, pieces):
    """What `quatrain convert --to ctranslate2` wrote of a trained run answers as `quatrain predict` does, greedily."""
    sizes = {"reverse.train": 2000, "reverse.dev": 20, "reverse.test": 20, "reverse.longest": 5, "reverse.symbols": 9, "train.steps": 120}
    here, there = converted_run(tmp_path, pieces, sizes)
    lines = ["a b c", "d", "i h g f e", "a a b b", "c a"]
    answers = here(lines)
    assert len({tuple(answer.split()) for answer in answers}) > 1
    assert there(lines)["answers"] == answers


@pytest.mark.skipif(not PROGRAM, reason="QUATRAIN_PROGRAM names no program")
@pytest.mark.parametrize("pieces, joint", [("unigram", False), ("bpe", True)])
def test_a_run_of_sentencepieces_translates_the_same(tmp_path, pieces, joint):
    """SentencePiece cuts lines by source.spm as the run did, and puts its answers together by target.spm."""
    if subprocess.run([PYTHON, "-c", "import sentencepiece"], capture_output=True, env=ENVIRONMENT).returncode != 0:
        pytest.skip(f"{PYTHON} has no sentencepiece (pip install sentencepiece)")
    words = ["kato", "katoru", "minaru", "minato", "selo", "seloka", "toruka", "rukami"]
    draw = random.Random(5)
    for split, count in {"train": 400, "dev": 5, "test": 5}.items():
        sources = [" ".join(draw.choices(words, k=draw.randint(1, 4))) for _ in range(count)]
        (tmp_path / f"{split}.low").write_text("".join(f"{line}\n" for line in sources))
        (tmp_path / f"{split}.up").write_text("".join(f"{line.upper()}\n" for line in sources))
    data = {"task.data": "parallel", "task.folder": tmp_path, "task.source": "low", "task.target": "up"}
    vocabularies = {"vocabulary.size": 44 if joint else 26, "vocabulary.joint": str(joint).lower(), "model.share_embeddings": str(joint).lower()}
    here, there = converted_run(tmp_path, pieces, data | vocabularies | {"train.steps": 120, "train.batch": 32, "model.feed_forward": 64})
    # Spaces that SentencePiece takes for one, and a letter that the pieces do not have.
    lines = ["kato minaru", "selo", "rukami toruka  seloka", " minato kato ", "katoru", "qatoru selo"]
    answers, made = here(lines), there(lines)
    assert len(set(answers)) > 3
    assert any(len(piece) > 2 for source in made["sources"] for piece in source) and any(len(piece) > 2 for target in made["targets"] for piece in target)
    assert made["answers"] == answers
