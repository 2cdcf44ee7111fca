"""A model written for CTranslate2 computes there what it computes here."""

import json
import os
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
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    answered = subprocess.run([PYTHON, worker, tmp_path / "model"], input=written.stdout, capture_output=True, text=True, env=environment)
    assert answered.returncode == 0, answered.stderr
    answers = json.loads(answered.stdout)
    for i, sentence in enumerate(json.loads(written.stdout)["sentences"]):
        assert answers["tokens"][i] == answers["expected"][i]["target"]
        assert answers["log_probabilities"][i] == pytest.approx(sentence["log_probabilities"], abs=1e-4)
        assert answers["greedy"][i] == answers["expected"][i]["greedy"]
