"""Recurrent layers of real models over an algebra."""

import copy

import pytest
import quatrain
import torch
from quatrain import nn
from quatrain._recurrent_twins import real_state, set_nearest
from torch.nn.utils.rnn import pack_padded_sequence

KINDS = ("LSTM", "GRU", "RNN")
PROJECTED = [(kind, {}) for kind in KINDS] + [("LSTM", dict(proj_size=4))]


def of_algebra(kind, algebra, **options):
    """Torch's layer with the matrices of one over the algebra, and that one."""
    source = getattr(nn, kind)(12, 8, algebra=algebra, **options)
    with torch.no_grad():
        for name, parameter in source.named_parameters():
            if name.startswith("bias"):
                parameter.normal_()
    theirs = getattr(torch.nn, kind)(12, 8, **{name: value for name, value in options.items() if name != "direction_first"})
    theirs.load_state_dict(real_state(source))
    return theirs, source


@pytest.mark.parametrize("kind, projection", PROJECTED)
@pytest.mark.parametrize("options", [dict(num_layers=2), dict(bias=False, batch_first=True), dict(num_layers=2, bidirectional=True)])
def test_real_layers_compute_the_same(kind, projection, options):
    model = torch.nn.ModuleDict({"layer": getattr(torch.nn, kind)(12, 8, **projection, **options)})
    x = torch.randn(5, 3, 12)
    expected = model["layer"](x)
    model, report = quatrain.convert(model, "real")
    assert isinstance(model["layer"], getattr(nn, kind)) and max(line.error for line in report.layers) < 1e-6
    torch.testing.assert_close(model["layer"](x), expected)


@pytest.mark.parametrize("kind, projection", PROJECTED)
@pytest.mark.parametrize("algebra", ["quaternion", "phm(4)", "wkp(2)"])
@pytest.mark.parametrize("directions", [1, 2])
def test_weights_of_an_algebra_are_found(kind, projection, algebra, directions):
    torch.manual_seed(1)
    options = dict(num_layers=2, **projection)
    if directions == 2:
        options.update(bidirectional=True, direction_first=True)
    theirs, source = of_algebra(kind, algebra, **options)
    x = torch.randn(5, 3, 12)
    expected = source(x)
    torch.testing.assert_close(theirs(x), expected)
    found, report = quatrain.convert(theirs, algebra)
    assert type(found) is type(source) and found.algebra == source.algebra and report.converted == len(source.weights())
    assert max(line.error for line in report.layers) < 1e-5
    assert report.after == sum(p.numel() for p in source.parameters())
    assert sum(line.before for line in report.layers) == report.before and sum(line.after for line in report.layers) == report.after
    torch.testing.assert_close(found(x), expected, rtol=1e-4, atol=1e-5)
    real, _ = quatrain.convert(getattr(nn, kind)(12, 8, algebra="real", **options), "real")
    set_nearest(real, real_state(source))  # ours of n = 1 in between
    torch.testing.assert_close(quatrain.convert(real, algebra)[0](x), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_cells_are_converted(kind):
    source = getattr(nn, kind + "Cell")(12, 8)
    theirs = getattr(torch.nn, kind + "Cell")(12, 8)
    theirs.load_state_dict(real_state(source))
    x = torch.randn(3, 12)
    expected = theirs(x)
    found, report = quatrain.convert(theirs, "quaternion")
    assert report.converted == 2
    torch.testing.assert_close(found(x), expected)


class Tagger(torch.nn.Module):
    """As people write it: it takes the last state of each direction by the place where torch has it."""

    def __init__(self, bidirectional):
        super().__init__()
        self.rnn = torch.nn.LSTM(12, 8, 2, batch_first=True, dropout=0.5, bidirectional=bidirectional)
        self.wide = torch.nn.Linear(16 if bidirectional else 8, 8)
        self.head = torch.nn.Linear(8, 3)

    def forward(self, x, state=None):
        self.rnn.flatten_parameters()
        y, (h, _) = self.rnn(x, hx=state)
        last = torch.cat([y[:, -1, :8], y[:, 0, 8:]], 1)
        return self.head(self.wide(last).relu()), h


@pytest.mark.parametrize("bidirectional", [False, True])
def test_a_whole_model(bidirectional):
    torch.manual_seed(2)
    model = Tagger(bidirectional).eval()
    options = dict(num_layers=2, bidirectional=True, direction_first=True) if bidirectional else dict(num_layers=2)
    with torch.no_grad():
        model.rnn.load_state_dict(of_algebra("LSTM", "quaternion", **options)[0].state_dict())
        model.wide.weight.copy_(nn.Linear(model.wide.in_features, 8, algebra="quaternion").weight)
    model.rnn.weight_hh_l1.requires_grad_(False)
    x = torch.randn(4, 5, 12)
    expected = model(x)
    again = copy.deepcopy(model)
    model, report = quatrain.convert(model, "quaternion")
    assert [line.name for line in report.layers if line.skipped] == ["head"] and report.layers[0].name == "rnn.S_ih_l0"
    assert (model.rnn.num_layers, model.rnn.dropout, model.rnn.batch_first, model.rnn.training) == (2, 0.5, True, False)
    assert not model.rnn.S_hh_l1.requires_grad and model.rnn.S_ih_l1.requires_grad and model.rnn.bias_hh_l1.requires_grad
    torch.testing.assert_close(model(x), expected, rtol=1e-4, atol=1e-5)
    state = (torch.randn(4 if bidirectional else 2, 4, 8),) * 2
    torch.testing.assert_close(model(x, state), again(x, state), rtol=1e-4, atol=1e-5)
    model.train()(x)[0].sum().backward()
    assert model.rnn.S_ih_l0.grad.abs().sum() > 0
    fresh, report = quatrain.convert(again, "phm(4)", fresh=True)
    assert len(fresh.rnn.weights()) == (32 if bidirectional else 16) and report.layers[0].error is None and not fresh.rnn.bias_ih_l0.any()
    again = quatrain.convert(Tagger(bidirectional), "quaternion", fresh=True)[0]
    again.load_state_dict(model.state_dict())
    torch.testing.assert_close(again.eval()(x), model.eval()(x))


def test_packed_sequences_go_through():
    theirs, _ = of_algebra("GRU", "quaternion")
    packed = pack_padded_sequence(torch.randn(5, 3, 12), torch.tensor([2, 5, 3]), enforce_sorted=False)
    expected, last = theirs(packed)
    found, _ = quatrain.convert(theirs, "quaternion")
    y, h = found(packed)
    torch.testing.assert_close(y.data, expected.data)
    torch.testing.assert_close(h, last)


def test_layers_that_stay_say_why():
    class Own(torch.nn.LSTM):
        pass

    tied = torch.nn.LSTM(8, 8, 2)
    tied.weight_hh_l1 = tied.weight_hh_l0
    pruned = torch.nn.GRU(8, 8)
    del pruned._parameters["weight_hh_l0"]
    pruned.weight_hh_l0 = torch.zeros(24, 8)
    model = torch.nn.ModuleDict({
        "own": Own(8, 8), "projected": torch.nn.LSTM(8, 8, proj_size=6), "odd": torch.nn.RNN(8, 6), "tied": tied,
        "pruned": pruned, "done": nn.LSTM(8, 8), "kept": torch.nn.LSTM(8, 8), "cell": torch.nn.LSTMCell(8, 10),
    })  # fmt: skip
    _, report = quatrain.convert(model, "quaternion", where=lambda name, layer: name != "kept")
    skipped = {line.name: line.skipped for line in report.layers}
    assert report.converted == 0 and skipped == {
        "own": "is a Own, which may do more than a recurrent layer",
        "projected": "n = 4 does not divide 6",
        "odd": "n = 4 does not divide 6",
        "tied": "its weights are tied to each other",
        "pruned": "its weights are computed from others (weight_norm, pruning): make them parameters first",
        "done": "is hypercomplex already (quaternion)",
        "kept": "excluded by where",
        "cell": "n = 4 does not divide 10",
    }
    twice = torch.nn.ModuleDict({"one": torch.nn.LSTM(8, 8), "two": torch.nn.LSTM(8, 8)})
    twice["two"].weight_hh_l0 = twice["one"].weight_hh_l0
    assert [line.skipped for line in quatrain.convert(twice, "quaternion")[1].layers] == [
        "its weight is tied to two.weight_hh_l0", "its weight is tied to one.weight_hh_l0"]  # fmt: skip


def test_directions_may_come_first():
    torch.manual_seed(3)
    inside = nn.GRU(8, 8, 2, bidirectional=True)
    first = nn.GRU(8, 8, 2, bidirectional=True, direction_first=True)
    first.load_state_dict(inside.state_dict())
    x = torch.randn(5, 2, 8)
    y, _ = inside(x)
    torch.testing.assert_close(first(x)[0], y.unflatten(2, (4, 2, 2)).transpose(2, 3).flatten(2))
    with pytest.raises(ValueError, match="direction_first needs two directions"):
        nn.GRU(8, 8, direction_first=True)
