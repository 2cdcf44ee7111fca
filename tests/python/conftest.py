"""Loads the operators of the library under test into torch. Its path is in QUATRAIN_LIBRARY."""

import os

import pytest
import torch

LIBRARY = os.environ.get("QUATRAIN_LIBRARY")
if not LIBRARY:
    raise pytest.UsageError("QUATRAIN_LIBRARY must name the library under test, libquatrain.so (make test sets it)")
torch.ops.load_library(LIBRARY)


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)
