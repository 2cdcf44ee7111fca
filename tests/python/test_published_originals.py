"""Weights of other toolkits, beside what their own layers answered (record_published.py)."""

import json

import pytest
import torch
from quatrain.published import SOURCES, convolution, linear, recurrent
from record_published import OPTIONS, RECORD, filled, sizes_of_input
from torch.nn import functional

CASES = json.loads(RECORD.read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['source']}{'-both-ways' * case['bidirectional']}")
def test_layers_answer_as_the_originals_did(case):
    state = {name: torch.zeros(size) if name.endswith("h_init") else filled(name, size) for name, size in case["sizes"].items()}
    source, rest = case["source"], {}
    if source in SOURCES:
        layer, rest = recurrent(state, source, bidirectional=case["bidirectional"])
    elif "Conv" in source:
        layer = convolution(state, transposed="Transpose" in source, **OPTIONS)
    else:
        layer = linear(state)
    with torch.no_grad():
        y = layer(filled("x", sizes_of_input(source)))
        y = y[0] if isinstance(y, tuple) else y
        if rest:  # Orkis's network ends with a real layer of its own
            y = functional.linear(y, rest.pop("fco.weight"), rest.pop("fco.bias"))
    assert not rest
    torch.testing.assert_close(y, torch.tensor(case["output"]), rtol=1e-4, atol=2e-5)
