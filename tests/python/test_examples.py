"""The examples run, as a user would run them."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "python"


def run(example, *arguments, without=None, cwd):
    """Runs an example over the package under test; ``without`` names a module that it must not find."""
    folders = [str(ROOT / "python"), *sys.path]
    if without:
        (cwd / f"{without}.py").write_text(f"raise ModuleNotFoundError('hidden by the test', name='{without}')\n")
        folders.insert(0, str(cwd))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders)), "MPLCONFIGDIR": str(cwd)}
    command = [sys.executable, str(EXAMPLES / example), *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120)


def rows_of(done):
    """n, width, parameters of each row of the table."""
    found = re.findall(r"^ +(\d+) +(\d+) +([\d,]+) +\d+\.\d \+- \d+\.\d %$", done.stdout, re.MULTILINE)
    return [(int(n), int(width), int(parameters.replace(",", ""))) for n, width, parameters in found]


def real_parameters(width):
    return (8 * width + width) + (width * width + width) + (12 * width + 12)


def test_accuracy_against_parameters_without_matplotlib(tmp_path):
    done = run("accuracy_against_parameters.py", "--quick", without="matplotlib", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = rows_of(done)
    assert [(n, width) for n, width, _ in rows] == [(n, width) for n in (1, 2, 4, 8) for width in (16, 32)]
    for n, width, parameters in rows:
        saved = (8 * width + width * width) * (n - 1) // n
        assert parameters == real_parameters(width) - saved + (2 * n**3 if n > 1 else 0)
    assert done.stderr.strip() == "no picture was drawn: matplotlib is not installed (pip install matplotlib)"
    assert not list(tmp_path.glob("*.svg"))


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="matplotlib is not installed")
def test_accuracy_against_parameters_draws(tmp_path):
    done = run("accuracy_against_parameters.py", "--quick", "--out", "picture.svg", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    picture = (tmp_path / "picture.svg").read_text()
    for text in ("n = 1 (real)", "n = 8", "parameters of the classifier (log scale)", "right answers on new data (%)"):
        assert text in picture


def test_accuracy_against_parameters_refuses_wrong_widths(tmp_path):
    done = run("accuracy_against_parameters.py", "--widths", "12", cwd=tmp_path)
    assert done.returncode == 2
    assert "--widths multiples of 8" in done.stderr
