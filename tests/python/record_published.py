"""Writes published_outputs.json: what other toolkits' own layers answer. Run again only where a case is added.

    PYTHONPATH=ORKIS:ORKIS/exp/iclr_2019 python tests/python/record_published.py

ORKIS is a copy of github.com/Orkis-Research/Pytorch-Quaternion-Neural-Networks (28caa7c was recorded), and speechbrain
(1.1.2 was) is installed. Neither is needed to test: weights and inputs are made by `filled`, by name alone.
"""

import json
import zlib
from pathlib import Path

import torch

RECORD = Path(__file__).with_name("published_outputs.json")
STEPS, BATCH, SIZE, HIDDEN = 5, 2, 12, 8
#: of the convolutions
OPTIONS = {"stride": 2, "padding": 1}


def filled(name, shape):
    """A tensor of this name and shape that is the same everywhere."""
    count = torch.Size(shape).numel()
    return (0.5 * torch.sin(torch.arange(count, dtype=torch.float64) * 1.7 + zlib.crc32(name.encode()) % 1000)).float().reshape(shape)


def sizes_of_input(source):
    if "Conv" in source:
        return BATCH, SIZE, STEPS
    return (STEPS, BATCH, SIZE) if source.startswith("orkis") else (BATCH, STEPS, SIZE)


def recorded(source, layer, bidirectional=False):
    """A case: the names and sizes of the layer's tensors, and what it answers."""
    state = {name: filled(name, tensor.shape) for name, tensor in layer.state_dict().items() if not name.endswith("h_init")}
    layer.load_state_dict(state, strict=False)
    with torch.no_grad():
        y = layer.eval()(filled("x", sizes_of_input(source)))
    y = y[0] if isinstance(y, tuple) else y
    sizes = {name: list(tensor.shape) for name, tensor in layer.state_dict().items()}
    return {"source": source, "bidirectional": bidirectional, "sizes": sizes, "output": [[[round(v, 6) for v in row] for row in part] for part in y.tolist()]}


def main():
    import recurrent_models
    from core_qnn.quaternion_layers import QuaternionConv, QuaternionLinear, QuaternionTransposeConv
    from speechbrain.nnet.quaternion_networks import q_linear, q_RNN

    cases = [
        recorded("orkis.QuaternionLinear", QuaternionLinear(SIZE, HIDDEN)),
        recorded("speechbrain.QLinear", q_linear.QLinear(HIDDEN // 4, [BATCH, SIZE])),
        recorded("orkis.QLSTM", recurrent_models.QLSTM(SIZE, HIDDEN, False)),
    ]
    for kind in (QuaternionConv, QuaternionTransposeConv):
        cases.append(recorded(f"orkis.{kind.__name__}", kind(SIZE, HIDDEN, 3, operation="convolution1d", **OPTIONS)))
    for kind in ("QLSTM", "QRNN"):
        for bidirectional in (False, True):
            layer = getattr(q_RNN, kind)(HIDDEN // 4, (BATCH, STEPS, SIZE), num_layers=2, bidirectional=bidirectional)
            cases.append(recorded(f"speechbrain.{kind}", layer, bidirectional))
    lines = ",\n".join(json.dumps(case) for case in cases)
    RECORD.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
