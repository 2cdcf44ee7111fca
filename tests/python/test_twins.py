"""Layers of Python and of C++: the same weights from one seed, the same results, files that travel both ways."""

import os
import subprocess

import pytest
import torch
from quatrain import algebra as algebras
from quatrain import load_model, models, nn, save_model
from safetensors.torch import load_file, save_file
from quatrain.models import TextClassifier

TWIN = os.environ.get("QUATRAIN_TWIN")
if not TWIN:
    pytest.skip("QUATRAIN_TWIN does not name the program", allow_module_level=True)


def encoder(norm, packed=False, per_component=False):
    return lambda algebra: nn.TransformerEncoder(
        16, 2, 2, feed_forward=32, algebra=algebra, norm=norm, packed=packed, norm_per_component=per_component, activation="gelu"
    )


KINDS = {
    "linear": lambda algebra: nn.Linear(16, 24, algebra=algebra),
    "polar": lambda algebra: nn.Linear(16, 24, algebra=algebra, bias=False, initialiser="polar_paper_he"),
    "feed_forward": lambda algebra: nn.FeedForward(16, 32, algebra=algebra),
    "attention": lambda algebra: nn.MultiheadAttention(16, 2, algebra=algebra, split="printed", attention="real"),
    "pre": encoder("pre", per_component=True),
    "post": encoder("post", packed=True),
    "phydi": encoder("phydi"),
    "decoder": lambda algebra: nn.TransformerDecoder(16, 2, 2, feed_forward=32, algebra=algebra, norm="pre", packed=True),
    "lstm": lambda algebra: nn.LSTM(16, 24, 2, batch_first=True, bidirectional=True, algebra=algebra, forget_bias=1.0),
    "gru": lambda algebra: nn.GRU(16, 24, algebra=algebra, gates="separate", batch_first=True, chrono=50),
    "rnn": lambda algebra: nn.RNN(16, 24, algebra=algebra, gates="packed", single_bias=True, batch_first=True, nonlinearity="relu"),
    "convolution": lambda algebra: nn.Conv2d(8, 12, 3, 2, 1, padding_mode="reflect", algebra=algebra),
    "convolution_transposed": lambda algebra: nn.ConvTranspose1d(8, 12, 3, 2, groups=1, algebra=algebra, initialiser="he"),
    "whitening": lambda algebra: nn.WhiteningNorm(8),
    "resnet": lambda algebra: models.ResNet(4, 5, widths=(8, 16, 16, 32), algebra=algebra),
    "fixup": lambda algebra: models.ResNet(4, 5, depth=50, widths=(8, 8, 16, 16), residual="fixup", bias=True, algebra=algebra),
    "embedding": lambda algebra: nn.Embedding(56, 16, algebra=algebra),
    "classifier": lambda algebra: TextClassifier(50, 3, width=16, heads=2, feed_forward=32, algebra=algebra),
}
CASES = [("linear", algebra) for algebra in ("real", "complex", "octonion", "phm(2)", "phm(quaternion)", "wkp(4)", "wkp(dual)", "phm(4, trained_rank=6)", "phm(quaternion, trained_rank=10)")]
CASES += [("embedding", algebra) for algebra in ("real", "wkp(dual)", "phm(4, trained_rank=6)")]
CASES += [("whitening", "quaternion")]
CASES += [(kind, algebra) for kind in KINDS if kind != "whitening" for algebra in ("quaternion", "phm(4)")]


def inputs(kind):
    if kind in ("classifier", "embedding"):
        tokens = torch.randint(1, 50, (3, 7))
        tokens[1, 4:] = 0
        return {"x": tokens}
    if kind in ("resnet", "fixup"):
        return {"x": torch.randn(2, 4, 8, 8)}
    if kind.startswith(("convolution", "whitening")):
        return {"x": torch.randn(2, 8, 6, 5) if kind != "convolution_transposed" else torch.randn(2, 8, 6)}
    padding = torch.zeros(3, 7, dtype=torch.bool)
    padding[1, 4:] = True
    padding[2] = True
    return {"x": torch.randn(3, 7, 16), "padding": padding}


def apply(module, inputs):
    takes_padding = isinstance(module, (nn.TransformerEncoder, nn.MultiheadAttention))
    module.eval()
    with torch.no_grad():
        if isinstance(module, nn.MultiheadAttention):
            return module.self_attention(inputs["x"], inputs["padding"])
        if isinstance(module, nn.TransformerDecoder):
            return module(inputs["x"], inputs["x"].flip(1), inputs["padding"], inputs["padding"].flip(1))
        if isinstance(module, nn.Embedding):
            return module.scores(module(inputs["x"]))
        if isinstance(module, (nn.LSTM, nn.GRU, nn.RNN)):
            return module(inputs["x"])[0]
        return module(inputs["x"], inputs["padding"]) if takes_padding else module(inputs["x"])


def assert_same(module, mine, theirs, inputs):
    """What an encoder gives at padding is left open."""
    if isinstance(module, nn.TransformerEncoder):
        mine, theirs = mine[~inputs["padding"]], theirs[~inputs["padding"]]
        assert len(mine) > 0
    torch.testing.assert_close(mine, theirs, rtol=1e-6, atol=1e-6)


def twin(command, kind, algebra, folder):
    done = subprocess.run([TWIN, command, kind, algebra, folder], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return load_file(folder / "output")["y"]


@pytest.mark.parametrize("kind, algebra", CASES)
def test_same_seed_same_layer(tmp_path, kind, algebra):
    x = inputs(kind)
    save_file(x, tmp_path / "input")
    y = twin("make", kind, algebra, tmp_path)
    theirs = load_file(tmp_path / "weights")
    torch.manual_seed(7)
    module = KINDS[kind](algebra)
    mine = module.state_dict()
    assert mine.keys() == theirs.keys()
    for name in mine:
        assert torch.equal(mine[name], theirs[name]), name
    assert_same(module, apply(module, x), y, x)


@pytest.mark.parametrize("kind, algebra", [("linear", "wkp(4)"), ("pre", "quaternion"), ("post", "phm(4)"), ("fixup", "quaternion"), ("classifier", "quaternion")])
def test_weights_travel_both_ways(tmp_path, kind, algebra):
    x = inputs(kind)
    save_file(x, tmp_path / "input")
    module = KINDS[kind](algebra)
    with torch.no_grad():
        for parameter in module.parameters():
            if not parameter.any():  # it would hide what it multiplies
                parameter.normal_(0, 0.1)
    save_model(module, tmp_path / "weights")
    assert_same(module, apply(module, x), twin("read", kind, algebra, tmp_path), x)
    y = twin("make", kind, algebra, tmp_path)
    load_model(module, tmp_path / "weights")
    assert_same(module, apply(module, x), y, x)


def test_files_are_the_same(tmp_path):
    """Names, metadata and tables: Python writes the bytes that C++ writes."""
    save_file(inputs("pre"), tmp_path / "input")
    twin("make", "pre", "quaternion", tmp_path)
    torch.manual_seed(7)
    save_model(KINDS["pre"]("quaternion"), tmp_path / "mine")
    assert (tmp_path / "mine").read_bytes() == (tmp_path / "weights").read_bytes()


def test_what_does_not_fit_is_refused(tmp_path):
    path = tmp_path / "weights"
    save_model(nn.Linear(8, 8, algebra="quaternion"), path)
    other = nn.Linear(8, 8, algebra="split_quaternion")
    before = other.S.clone()
    with pytest.raises(RuntimeError, match="was trained with the algebra quaternion .*, the model has split_quaternion"):
        load_model(other, path)
    with pytest.raises(RuntimeError, match=r"'S' has shape \[4, 2, 2\], the model's \[4, 2, 4\] \(and"):
        load_model(nn.Linear(16, 8, algebra="quaternion", bias=False), path)
    with pytest.raises(RuntimeError, match="missing"):
        load_model(other, tmp_path / "missing")
    assert torch.equal(other.S, before)


def test_parts_may_keep_their_values(tmp_path):
    def model(algebra, classes):
        return torch.nn.ModuleDict({"body": nn.Linear(8, 8), "head": nn.Linear(8, classes, algebra=algebra)})

    one, other = model("quaternion", 4), model("complex", 6)
    save_model(one, tmp_path / "weights")
    head = other["head"].S.clone()
    load_model(other, tmp_path / "weights", without=["head"])
    assert torch.equal(other["body"].S, one["body"].S) and torch.equal(other["head"].S, head)
    with pytest.raises(RuntimeError, match="neither has a part 'haed' that could be left out"):
        load_model(one, tmp_path / "weights", without=["haed"])
    with pytest.raises(RuntimeError, match="layer 'head' was trained with the algebra quaternion"):
        load_model(other, tmp_path / "weights", without=["body"])
    with pytest.raises(TypeError, match="without must be a list of names, got 'head'"):
        load_model(other, tmp_path / "weights", without="head")
    save_model(torch.nn.ModuleDict({"body": one["body"]}), tmp_path / "body")
    with pytest.raises(RuntimeError, match="the model's 'head.S' .* is not in the file"):
        load_model(one, tmp_path / "body")


def test_algebras_of_a_file_are_added(tmp_path):
    algebras.add("of_weights", -algebras.get("quaternion").table)
    save_model(nn.Linear(8, 8, algebra="of_weights"), tmp_path / "weights")
    bytes_ = (tmp_path / "weights").read_bytes().replace(b"of_weights", b"of_another")
    (tmp_path / "other").write_bytes(bytes_)
    algebras.add_from_weights(tmp_path / "other")
    assert torch.equal(algebras.get("of_another").table, algebras.get("of_weights").table)
    with pytest.raises(RuntimeError, match="missing"):
        algebras.add_from_weights(tmp_path / "missing")


def test_a_file_of_another_type_is_converted(tmp_path):
    module = nn.Linear(8, 8, algebra="quaternion", dtype=torch.float64)
    save_model(module, tmp_path / "weights")
    other = nn.Linear(8, 8, algebra="quaternion")
    load_model(other, tmp_path / "weights")
    torch.testing.assert_close(other.S, module.S.float())


def test_tied_and_strided_weights_are_written(tmp_path):
    one, two = nn.Linear(8, 8, algebra="phm(2)"), nn.Linear(8, 8, algebra="phm(2)")
    two.A = one.A
    one.S = torch.nn.Parameter(one.S.detach().permute(0, 2, 1).contiguous().permute(0, 2, 1))
    model = torch.nn.Sequential(one, two)
    save_model(model, tmp_path / "weights")
    stored = load_file(tmp_path / "weights")
    assert torch.equal(stored["0.A"], stored["1.A"]) and torch.equal(stored["0.S"], one.S)
