"""Lets the package run over the library under test, whose path is in QUATRAIN_LIBRARY (make test sets it)."""

import os
import signal
import sys
from pathlib import Path

import pytest

if not os.environ.get("QUATRAIN_LIBRARY"):
    raise pytest.UsageError("QUATRAIN_LIBRARY must name the library under test, libquatrain.so (make test sets it)")
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "examples" / "python")]

for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):  # programs inherit what nohup or a script's `&` ignores
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)

import torch  # noqa: E402

import quatrain  # noqa: E402, F401


def pytest_configure(config):
    config.addinivalue_line("markers", "device: needs a device beside the CPU (scripts/device_tests)")


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)
