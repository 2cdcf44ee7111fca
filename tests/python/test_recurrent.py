"""Recurrent layers: torch's at n = 1, traces, packed sequences, states."""

import copy
import functools
import inspect

import numpy as np
import pytest
import quatrain
import torch
from quatrain import nn
from torch.nn.utils.rnn import pack_padded_sequence

KINDS = ("LSTM", "GRU", "RNN")


PROJECTED = [(kind, {}) for kind in KINDS] + [("LSTM", dict(proj_size=4))]


def real_twin(kind, **options):
    """Ours with torch's weights, and torch's."""
    theirs = getattr(torch.nn, kind)(10, 8, 2, **options)
    ours = getattr(nn, kind)(10, 8, 2, algebra="real", **options)
    weights = {name.replace("weight", "S"): value.view(ours.state_dict()[name.replace("weight", "S")].shape) for name, value in theirs.state_dict().items()}
    ours.load_state_dict(weights)
    return ours, theirs


@pytest.mark.parametrize("kind, projection", PROJECTED)
@pytest.mark.parametrize("options", [dict(), dict(bidirectional=True, batch_first=True), dict(bias=False)])
def test_real_ones_are_torchs(kind, projection, options):
    ours, theirs = real_twin(kind, **projection, **options)
    x = torch.randn(5, 3, 10)
    torch.testing.assert_close(ours(x), theirs(x))
    for layer in (ours, theirs):
        layer(x)[0].square().sum().backward()
    wanted = dict(theirs.named_parameters())
    for name, parameter in ours.named_parameters():
        torch.testing.assert_close(parameter.grad, wanted[name.replace("S", "weight")].grad.view_as(parameter), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(ours(x[0]), theirs(x[0]))
    packed = pack_padded_sequence(x, torch.tensor([2, 5, 3]), enforce_sorted=False)
    mine, state = ours(packed)
    wanted, last = theirs(packed)
    torch.testing.assert_close(mine.data, wanted.data)
    torch.testing.assert_close(state, last)
    again, _ = ours(packed, state)
    torch.testing.assert_close(again.data, theirs(packed, last)[0].data)


@pytest.mark.parametrize("kind, projection", PROJECTED)
@pytest.mark.parametrize("algebra", ["quaternion", "phm(2)"])
def test_copies_train_and_compile(kind, projection, algebra):
    layer = getattr(nn, kind)(8, 8, 2, algebra=algebra, dropout=0.1, recurrent_dropout=0.1, **projection)
    x = torch.randn(6, 2, 8)
    layer(x)[0].sum().backward()
    assert all(p.grad is not None for p in layer.parameters())
    layer.eval()
    twin = copy.deepcopy(layer)
    with torch.no_grad():
        for p in twin.parameters():
            p.add_(0.1)
        assert not torch.equal(twin(x)[0], layer(x)[0])
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x)[0], layer(x)[0])
    found = []
    for each in (compiled, layer):
        layer.zero_grad()
        each(x)[0].square().sum().backward()
        found.append([p.grad for p in layer.parameters()])
    torch.testing.assert_close(*found)


def replica(layer):
    """What DataParallel makes of a layer for another device, with zeros for the parameters."""
    made = layer._replicate_for_data_parallel()
    for name, parameter in layer._parameters.items():
        setattr(made, name, None if parameter is None else torch.zeros_like(parameter))
    return made


@pytest.mark.parametrize("kind", [*KINDS, *(kind + "Cell" for kind in KINDS)])
def test_replicas_and_shallow_copies_have_parameters_of_their_own(kind):
    layer, x = getattr(nn, kind)(8, 8, algebra="quaternion"), torch.randn(3, 2, 8)
    x = x[0] if "Cell" in kind else x
    y = replica(layer)(x)
    assert not (y[0] if isinstance(y, tuple) else y).any()
    other = copy.copy(layer)
    other._parameters = {name: p if p is None else torch.nn.Parameter(torch.zeros_like(p)) for name, p in layer._parameters.items()}
    y = other(x)
    assert not (y[0] if isinstance(y, tuple) else y).any()
    other.reset_parameters()
    assert other.S_ih.any() if "Cell" in kind else other.S_ih_l0.any()


@pytest.mark.parametrize("kind", KINDS)
def test_cells_are_torchs(kind):
    theirs = getattr(torch.nn, kind + "Cell")(10, 8)
    ours = getattr(nn, kind + "Cell")(10, 8, algebra="real")
    ours.load_state_dict({name.replace("weight", "S"): value.unsqueeze(0) if "weight" in name else value for name, value in theirs.state_dict().items()})
    x, h = torch.randn(3, 10), torch.randn(3, 8)
    state = (h, torch.randn(3, 8)) if kind == "LSTM" else h
    torch.testing.assert_close(ours(x, state), theirs(x, state))
    torch.testing.assert_close(ours(x[0]), theirs(x[0]))
    with pytest.raises(ValueError, match="must have the shape"):
        ours(torch.randn(3, 9))


def test_counts_are_phms():
    for algebra, count in (("real", 721200), ("phm(2)", 361264), ("phm(5)", 146200), ("phm(10)", 81200)):
        layer = nn.LSTM(300, 300, algebra=algebra, single_bias=True)
        assert sum(p.numel() for p in layer.parameters()) == count


@pytest.mark.parametrize("algebra", ["real", "quaternion", "phm(2)"])
def test_projections_are_counted(algebra):
    n, structures = {"real": (1, 0), "quaternion": (4, 0), "phm(2)": (2, 9)}[algebra]
    layer = nn.LSTM(32, 64, algebra=algebra, proj_size=16, bidirectional=True)
    numbers = (256 * 32 + 256 * 16 + 16 * 64) // n + structures * n**3 + 2 * 256
    assert sum(p.numel() for p in layer.parameters()) == 2 * numbers
    assert layer.S_hr_l0.shape == layer.S_hr_l0_reverse.shape == (n, 16 // n, 64 // n)
    assert ("A_hr_l0" in layer.state_dict()) == (algebra == "phm(2)")


def test_shared_directions_share_the_projection():
    layer = nn.LSTM(8, 16, proj_size=8, bidirectional=True, share_directions=True)
    one = nn.LSTM(8, 16, proj_size=8)
    one.load_state_dict(layer.state_dict())
    x = torch.randn(5, 2, 8)
    y = layer(x)[0].unflatten(2, (4, 2, 2))
    torch.testing.assert_close(y[:, :, :, 0].flatten(2), one(x)[0])
    torch.testing.assert_close(y[:, :, :, 1].flatten(2), one(x.flip(0))[0].flip(0))


def test_recurrent_dropout_is_of_the_projected_state():
    layer = nn.LSTM(8, 16, proj_size=8, recurrent_dropout=0.999)
    x, h = torch.randn(2, 3, 8), torch.full((1, 3, 8), 10.0)
    torch.manual_seed(1)
    dropped = layer(x, (h, torch.zeros(1, 3, 16)))[0]
    torch.testing.assert_close(dropped[0], layer.eval()(x)[0][0])  # as with no state at all


@pytest.mark.parametrize("kind, projection", PROJECTED)
def test_function_transforms_go_through(kind, projection):
    torch.manual_seed(5)
    layer = getattr(nn, kind)(8, 8, algebra="quaternion", **projection).double()
    x, v = torch.randn(2, 3, 4, 2, 8).double()
    run = lambda x: layer(x)[0]
    total = lambda x: run(x).sum()
    expected = torch.stack([torch.autograd.functional.vjp(total, one)[1] for one in x])
    gradients = torch.func.vmap(torch.func.grad(total))(x)
    torch.testing.assert_close(gradients, expected)
    torch.testing.assert_close(torch.func.vmap(run)(x), torch.stack([run(one) for one in x]))
    tangent = torch.func.jvp(total, (x[0],), (v[0],))[1]
    torch.testing.assert_close(tangent, (expected[0] * v[0]).sum())
    parameters = dict(layer.named_parameters())
    loss = lambda parameters: torch.func.functional_call(layer, parameters, (x[0],))[0].sum()
    for name, gradient in torch.func.grad(loss)(parameters).items():
        torch.testing.assert_close(gradient, torch.autograd.grad(total(x[0]), parameters[name])[0])


@pytest.mark.parametrize("proj_size", [0, 8])
def test_autocast_keeps_states_in_float32(proj_size):
    layer = nn.LSTM(16, 16, proj_size=proj_size)
    x = torch.randn(4, 2, 16)
    with torch.autocast("cpu", torch.bfloat16):
        y, (h, c) = layer(x)
    assert y.dtype is h.dtype is c.dtype is torch.float32
    torch.testing.assert_close(y, layer(x)[0], rtol=0.05, atol=0.05)


def test_bfloat16_and_float64():
    for dtype in (torch.bfloat16, torch.float64):
        layer = nn.GRU(8, 8, dtype=dtype)
        y, h = layer(torch.randn(3, 2, 8, dtype=dtype))
        assert y.dtype is h.dtype is dtype
        y.float().sum().backward()


def test_bad_input_is_one_sentence():
    with pytest.raises(ValueError, match="input_size must be divisible by n = 4, got 9"):
        nn.LSTM(9, 8)
    for projection in (8, 9, -4):
        with pytest.raises(ValueError, match="proj_size must be smaller than hidden_size = 8, or 0 for none, got"):
            nn.LSTM(8, 8, proj_size=projection)
    with pytest.raises(ValueError, match="proj_size must be divisible by n = 4, got 6"):
        nn.LSTM(8, 8, proj_size=6)
    for kind in (nn.GRU, nn.RNN):
        with pytest.raises(ValueError, match="proj_size is an LSTM's, got 4"):
            kind(8, 8, proj_size=4)
    with pytest.raises(ValueError, match=r"h0 must have the shape \(layers \* directions, batch, proj_size\) = \[1, 2, 4\]"):
        nn.LSTM(8, 8, proj_size=4)(torch.randn(3, 2, 8), (torch.randn(1, 2, 8), torch.randn(1, 2, 8)))
    with pytest.raises(ValueError, match="share_directions needs two directions"):
        nn.LSTM(8, 8, share_directions=True)
    packed = torch.nn.utils.rnn.pack_sequence([torch.zeros(3, 9)])
    with pytest.raises(ValueError, match="the frames of a PackedSequence must have 8 values, got 9"):
        nn.LSTM(8, 16)(packed)
    with pytest.raises(ValueError, match=r"input must have the shape \(steps, batch, 8\)"):
        nn.LSTM(8, 8)(torch.randn(3, 2, 12))
    with pytest.raises(ValueError, match="h0 must have the shape"):
        nn.RNN(8, 8)(torch.randn(3, 2, 8), torch.randn(1, 3, 8))
    with pytest.raises(ValueError, match="nonlinearity must be one of tanh, relu"):
        nn.RNN(8, 8, nonlinearity="sin")
    with pytest.raises(RuntimeError, match="c0 goes with an lstm"):
        quatrain.ops.recurrence(torch.randn(2, 8), torch.tensor([2]), torch.randn(2, 2), None, [torch.randn(1, 8, 2)])


@pytest.mark.parametrize("kind", KINDS)
def test_empty_batches_have_gradients(kind):
    x = torch.randn(5, 0, 8, requires_grad=True)
    layer = getattr(nn, kind)(8, 16, 2, bidirectional=True)
    y, _ = layer(x)
    assert y.shape == (5, 0, 32)
    y.sum().backward()
    assert all(p.grad is not None and not p.grad.any() for p in layer.parameters()) and x.grad.shape == x.shape
    cell = getattr(nn, kind + "Cell")(8, 16)
    h = cell(x[0])[0] if kind == "LSTM" else cell(x[0])
    assert h.shape == (0, 16)
    h.sum().backward()
    assert not cell.S_hh.grad.any()


@pytest.mark.parametrize("algebra", ["real", "quaternion", "phm(4)"])
@pytest.mark.parametrize("make, gates", [(nn.LSTM, 4), (nn.GRU, 3), (nn.LSTMCell, 4), (nn.GRUCell, 3)])
def test_chrono_starts_the_gates(make, gates, algebra):
    torch.manual_seed(1)
    layer = make(8, 64, algebra=algebra, chrono=50)
    n = 1 if algebra == "real" else 4
    drawn = []
    for _ in range(2):
        biases = {key: bias.detach().clone() for key, bias in layer.named_parameters() if "bias" in key}
        assert all(not bias.any() for key, bias in biases.items() if "bias_hh" in key)
        (of_gates,) = (bias.view(n, gates, -1) for key, bias in biases.items() if "bias_ih" in key)
        keeps = of_gates[:, 1]
        assert 0 <= keeps.min() and keeps.max() <= torch.tensor(49.0).log()
        assert abs(keeps.exp().mean() - 25) < 8  # u is uniform, not log u
        assert of_gates[:, 0].equal(-keeps) if gates == 4 else not of_gates[:, 0].any()
        assert not of_gates[:, 2:].any()
        drawn.append(keeps)
        layer.reset_parameters()
    assert not drawn[0].equal(drawn[1])


def test_chrono_is_refused_where_it_starts_nothing():
    with pytest.raises(ValueError, match="RNN: chrono is for cells with gates, got 50; leave it 0"):
        nn.RNN(8, 16, chrono=50)
    with pytest.raises(ValueError, match="from 3 to 1000000000, or 0 for none, got 2"):
        nn.GRU(8, 16, chrono=2)
    with pytest.raises(ValueError, match="bias = False leaves none"):
        nn.LSTM(8, 16, bias=False, chrono=50)
    with pytest.raises(ValueError, match="leave forget_bias 0, got 1.0"):
        nn.LSTMCell(8, 16, chrono=50, forget_bias=1.0)
    with pytest.raises(ValueError, match="forget_bias = 1.0 starts biases, and bias = False leaves none"):
        nn.LSTM(8, 16, bias=False, forget_bias=1.0)
    assert nn.LSTM(8, 16, chrono=10**6, dtype=torch.float16).bias_ih_l0.isfinite().all()


def test_chrono_stays_in_copies_over_another_algebra():
    torch.manual_seed(2)
    twin, _ = quatrain.convert(nn.LSTM(8, 16, algebra="real", chrono=50), algebra="quaternion", fresh=True)
    assert twin.chrono == 50
    assert twin.bias_ih_l0.view(4, 4, -1)[:, 1].any()


def test_arguments_are_refused_in_a_sentence():
    layer, x = nn.LSTM(8, 16), torch.randn(5, 2, 8)
    h = torch.zeros(1, 2, 16)
    for state in ((h,), h, (h, None), (h, h, h)):
        with pytest.raises(TypeError, match=r"LSTM: the state must be a pair of tensors \(h0, c0\), got"):
            layer(x, state)
    with pytest.raises(TypeError, match="GRUCell: the state must be a tensor h0, got tuple"):
        nn.GRUCell(8, 16)(x[0], (h[0], h[0]))
    with pytest.raises(TypeError, match="floating-point type, got torch.int64"):
        layer(x.long())
    with pytest.raises(TypeError, match="LSTM: input must have a floating-point type, got torch.int64"):
        layer(torch.nn.utils.rnn.pack_sequence([x[:, 0].long()]))
    with pytest.raises(TypeError, match="input must be a tensor, got NoneType"):
        layer(None)
    with pytest.raises(ValueError, match=r"without a batch must have the shape \(layers \* directions, hidden_size\), got \[1, 2, 16\]"):
        layer(x[:, 0], (h, h))
    nn.LSTM(np.int64(8), np.int64(16), dropout=np.float32(0))
    wrongs = [dict(num_layers=1.5), dict(dropout="x"), dict(bidirectional=3), dict(proj_size="4"), dict(forget_bias="1"), dict(chrono=2.5)]
    for wrong in (*wrongs, dict(dtype=torch.int32), dict(dtype=torch.complex64)):
        with pytest.raises(TypeError, match="LSTM: " + next(iter(wrong)) + " must be"):
            nn.LSTM(8, 16, **wrong)


@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU, nn.RNN, nn.LSTMCell, nn.GRUCell, nn.RNNCell])
def test_help_shows_the_arguments(layer):
    parameters = inspect.signature(layer).parameters
    assert {"input_size", "hidden_size", "bias", "algebra", "gates", "chrono"} <= parameters.keys()
    assert "cell" not in parameters and not {"args", "kwargs"} & parameters.keys()
    assert "Args: those of" not in layer.__doc__ and "algebra" in layer.__doc__


@pytest.mark.parametrize("layer, x", [(nn.LSTM(8, 8), (5, 3, 8)), (nn.GRU(8, 8), (5, 3, 8)), (nn.LSTMCell(8, 8), (3, 8))])
def test_the_default_device_is_no_matter(layer, x):
    x = torch.randn(x)
    with torch.device("meta"):
        there = layer(x)[0]
    assert torch.equal(there, layer(x)[0])
    S, h = [torch.randn(4, 8, 2)], torch.zeros(3, 8)
    with pytest.raises(RuntimeError, match="batch_sizes must be on the CPU, .* got meta for inputs on cpu"):
        quatrain.ops.recurrence(torch.randn(6, 32), torch.tensor([3, 3], device="meta"), h, h, S, "quaternion")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_no_number_stays_none_in_gradients_of_relu(dtype):
    ours, theirs = nn.RNNCell(4, 4, nonlinearity="relu", algebra="real", dtype=dtype), torch.nn.RNNCell(4, 4, nonlinearity="relu", dtype=dtype)
    gradients = []
    for cell in (ours, theirs):
        x = torch.ones(2, 4, dtype=dtype)
        x[1] = float("nan")
        x.requires_grad_()
        cell(x).pow(2).sum().backward()
        gradients.append(x.grad.isnan())
    assert torch.equal(*gradients) and gradients[0][1].all() and not gradients[0][0].any()


@pytest.mark.parametrize("two_ways", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_dropout_is_between_the_layers(kind, two_ways):
    """At a rate of 1 the second layer reads zeros, and what it answers is not dropped."""
    make = functools.partial(getattr(nn, kind), bidirectional=two_ways)
    both = make(8, 16, 2, dropout=1.0)
    for parameter in both.parameters():
        torch.nn.init.normal_(parameter, 0, 0.4)
    with pytest.warns(UserWarning, match="does nothing with num_layers = 1"):
        first, second = make(8, 16, dropout=1.0), make(32 if two_ways else 16, 16, dropout=1.0)
    for number, layer in enumerate((first, second)):
        layer.load_state_dict({name.replace(f"_l{number}", "_l0"): value for name, value in both.state_dict().items() if f"_l{number}" in name})
    x = torch.randn(5, 3, 8)
    read = first(x)[0]  # of one layer nothing is dropped
    of_zeros, of_read = second(torch.zeros_like(read))[0], second(read)[0]
    assert not torch.allclose(of_zeros, of_read, atol=0.01)
    torch.testing.assert_close(both(x)[0], of_zeros)
    packed = lambda rows: pack_padded_sequence(rows, torch.tensor([5, 4, 2]))
    torch.testing.assert_close(both(packed(x))[0].data, second(packed(torch.zeros_like(read)))[0].data)
    torch.testing.assert_close(both.eval()(x)[0], of_read)
    torch.testing.assert_close(first.eval()(x)[0], read)


def test_dropout_between_the_layers_has_its_rate():
    layer = nn.RNN(8, 64, 2, bias=False, nonlinearity="relu", dropout=0.25)
    with torch.no_grad():  # the second layer hands on what it reads
        layer.S_hh_l1.zero_()
        layer.S_ih_l1.zero_()[0].copy_(torch.eye(16))
        x = torch.randn(20, 10, 8)
        dropped = layer(x)[0]
        read = layer.eval()(x)[0]
    shares = (dropped / read)[read > 0.1]
    kept = shares > 0.5
    assert kept.numel() > 4000 and abs(kept.float().mean() - 0.75) < 0.03
    torch.testing.assert_close(shares, kept / 0.75, rtol=0, atol=1e-3)


CELL_OPTIONS = [
    *((kind, dict(gates=gates, single_bias=single)) for kind in ("LSTM", "GRU") for gates in ("automatic", "separate", "packed") for single in (False, True)),
    ("LSTM", dict(printed=True)),
    ("LSTM", dict(printed=True, gates="separate", single_bias=True)),
    ("RNN", dict()),
    ("RNN", dict(nonlinearity="relu", single_bias=True)),
]


@pytest.mark.parametrize("algebra", ["quaternion", "phm(4)", "phm(2)"])
@pytest.mark.parametrize("kind, options", CELL_OPTIONS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_steps_of_cells_are_those_of_a_layer(kind, options, algebra, dtype):
    layer, cell = (getattr(nn, name)(8, 16, algebra=algebra, dtype=dtype, **options) for name in (kind, kind + "Cell"))
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, 0, 0.4)
    cell.load_state_dict({name.removesuffix("_l0"): value for name, value in layer.state_dict().items()})
    x = torch.randn(5, 3, 8, dtype=dtype)
    given = [x, *torch.randn(2 if kind == "LSTM" else 1, 3, 16, dtype=dtype)]
    found = []
    for module in (layer, cell):
        inputs = [each.clone().requires_grad_() for each in given]
        x, *state = inputs
        if module is layer:
            y, last = layer(x, tuple(each[None] for each in state) if kind == "LSTM" else state[0][None])
            states = [*y, *(last[1] if kind == "LSTM" else ())]
        else:
            states, last = [], tuple(state) if kind == "LSTM" else state[0]
            for step in x:
                last = cell(step, last)
                states.append(last[0] if kind == "LSTM" else last)
            states += [last[1]] if kind == "LSTM" else []
        states = torch.stack(states)
        weights = torch.linspace(-1, 1, states.numel(), dtype=dtype).view_as(states)
        names = [name.removesuffix("_l0") for name, _ in module.named_parameters()]
        gradients = torch.autograd.grad((weights * states).sum(), [*module.parameters(), *inputs])
        found.append((states.detach(), dict(zip([*names, "x", "h", "c"], gradients))))
    torch.testing.assert_close(*found, **(dict(rtol=1e-9, atol=1e-9) if dtype is torch.float64 else dict(rtol=1e-3, atol=1e-4)))
