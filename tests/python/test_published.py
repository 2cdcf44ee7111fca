"""Weights of other toolkits: layers that compute what theirs do, here written from their definition."""

import pytest
import quatrain
import torch
from quatrain.published import SOURCES, convolution, linear, recurrent

try:
    from speechbrain.nnet.quaternion_networks import q_linear, q_RNN
except ImportError:
    q_RNN = None

HIDDEN = 8


def weights_of(name, size, out, bias=True):
    """A quaternion map's tensors as all these toolkits have them."""
    state = {f"{name}.{component}_weight": torch.randn(size // 4, out // 4) / size**0.5 for component in "rijk"}
    return state | ({f"{name}.bias": torch.randn(out)} if bias else {})


def product(state, name, x):
    """W * x + b, component by component."""
    r, i, j, k = (state[f"{name}.{component}_weight"] for component in "rijk")
    a, b, c, d = x.chunk(4, -1)
    y = (a @ r - b @ i - c @ j - d @ k, b @ r + a @ i + d @ j - c @ k, c @ r - d @ i + a @ j + b @ k, d @ r + c @ i - b @ j + a @ k)
    return torch.cat(y, -1) + state.get(f"{name}.bias", 0)


def run(cell, x, directions):
    """A layer over x (steps, batch, size); the second direction has the weights of the first, and stands behind it."""

    def one_way(x):
        state, outputs = (torch.zeros(x.size(1), HIDDEN),) * 2, []
        for step in x:
            state = cell(step, state)
            outputs.append(state[0])
        return torch.stack(outputs)

    there = one_way(x)
    return there if directions == 1 else torch.cat([there, one_way(x.flip(0)).flip(0)], -1)


def lstm(i, f, g, o, c):
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def gate_by_gate(state, number):
    def cell(x, hc):
        gates = {g: product(state, f"w{g}x{number}", x) + product(state, f"u{g}h{number}", hc[0]) for g in "ifco"}
        return lstm(gates["i"], gates["f"], gates["c"], gates["o"], hc[1])

    return cell


def gates_are_components(state, number):
    def cell(x, hc):
        i, f, o, g = (product(state, f"rnn.{number}.w", x) + product(state, f"rnn.{number}.u", hc[0])).chunk(4, -1)
        return lstm(i, f, g, o, hc[1])

    return cell


def plain(state, number):
    def cell(x, hc):
        return (product(state, f"rnn.{number}.w", x) + product(state, f"rnn.{number}.u", hc[0])).tanh(), hc[1]

    return cell


def made(source, layers, directions, size=12):
    """A state dict, and what its layers compute of x (steps, batch, size)."""
    state, cells = {}, []
    for number in range(layers):
        width = directions * HIDDEN if number else size
        if source.startswith("speechbrain"):
            out = (4 if source.endswith("QLSTM") else 1) * HIDDEN
            state |= weights_of(f"rnn.{number}.w", width, out) | weights_of(f"rnn.{number}.u", HIDDEN, out)
            state[f"rnn.{number}.h_init"] = torch.zeros(1, HIDDEN)
            cells.append((gates_are_components if source.endswith("QLSTM") else plain)(state, number))
        else:
            place = "" if source.startswith("orkis") else f".{number}"
            for gate in "ifco":
                state |= weights_of(f"w{gate}x{place}", width, HIDDEN) | weights_of(f"u{gate}h{place}", HIDDEN, HIDDEN, bias=False)
            cells.append(gate_by_gate(state, place))

    def forward(x):
        for cell in cells:
            x = run(cell, x, directions)
        return x

    return state, forward


@pytest.mark.parametrize("source, layers, directions, algebra", [
    ("orkis.QLSTM", 1, 1, "quaternion"),
    ("pytorch-kaldi.QLSTM", 2, 1, "quaternion"),
    ("pytorch-kaldi.QLSTM", 1, 2, "quaternion"),
    ("pytorch-kaldi.QLSTM", 3, 2, "real"),
    ("speechbrain.QLSTM", 1, 1, "real"),
    ("speechbrain.QLSTM", 2, 1, "real"),
    ("speechbrain.QLSTM", 2, 2, "real"),
    ("speechbrain.QRNN", 2, 1, "quaternion"),
    ("speechbrain.QRNN", 1, 2, "quaternion"),
    ("speechbrain.QRNN", 2, 2, "real"),
])  # fmt: skip
def test_layers_compute_what_theirs_do(source, layers, directions, algebra):
    torch.manual_seed(1)
    state, forward = made(source, layers, directions)
    beside = {"model.fco.weight": torch.zeros(3, HIDDEN), "other": torch.zeros(1)}
    whole = {f"model.rnn0.{name}": tensor for name, tensor in state.items()} | beside
    layer, rest = recurrent(whole, source, "model.rnn0", bidirectional=directions == 2)
    assert layer.algebra == algebra and not rest
    assert layer.batch_first == source.startswith("speechbrain")
    x = torch.randn(7, 3, 12)
    y, _ = layer(x.transpose(0, 1) if layer.batch_first else x)
    torch.testing.assert_close(y.transpose(0, 1) if layer.batch_first else y, forward(x), rtol=1e-4, atol=1e-5)
    if algebra == "quaternion":  # no number more, and none is rounded
        count = sum(tensor.numel() for name, tensor in state.items() if not name.endswith("h_init"))
        assert sum(p.numel() for p in layer.parameters()) == count
        name = "rnn.0.w" if source == "speechbrain.QRNN" else "wix" if source == "orkis.QLSTM" else "wix.0"
        assert torch.equal(layer.S_ih_l0[2, : HIDDEN // 4], state[f"{name}.j_weight"].T)


def test_what_does_not_belong_is_returned():
    state, _ = made("orkis.QLSTM", 1, 1)
    _, rest = recurrent(state | {"fco.bias": torch.ones(3)}, "orkis.QLSTM")
    assert list(rest) == ["fco.bias"]


def test_linear_layers():
    state = weights_of("fc1", 12, 8)
    x = torch.randn(5, 12)
    torch.testing.assert_close(linear(state, "fc1")(x), product(state, "fc1", x))
    assert linear(weights_of("fc", 8, 8, bias=False), "fc").bias is None
    with pytest.raises(ValueError, match="'fc1.scale_param' is of a map that rotates"):
        linear(state | {"fc1.scale_param": torch.zeros(3, 2)}, "fc1")


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_linear_layers_of_a_and_s(n):
    """y = x H^T + b with H = sum_i a_i (x) s_i, where each number of a_i is multiplied with the whole of s_i."""
    a, s, bias = torch.randn(n, n, n), torch.randn(n, 4, 3), torch.randn(4 * n)
    H = torch.zeros(4 * n, 3 * n)
    for i in range(n):
        for row in range(n):
            for column in range(n):
                H[4 * row : 4 * row + 4, 3 * column : 3 * column + 3] += a[i, row, column] * s[i]
    x, state = torch.randn(5, 3 * n), {"fc.a": a, "fc.s": s, "fc.bias": bias}
    layer = linear(state, "fc")
    assert layer.algebra == (f"phm({n})" if n > 1 else "real")
    torch.testing.assert_close(layer(x), x @ H.T + bias, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(linear({"a": a, "s": s})(x), x @ H.T, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match=r"'fc.a' and 's' must have the shapes \(n, n, n\) and \(n, out/n, in/n\), got"):
        linear(state | {"fc.s": s.unsqueeze(3)}, "fc")
    with pytest.raises(ValueError, match="published.linear: there is no 'fc.s'"):
        linear({"fc.a": a}, "fc")


@pytest.mark.parametrize("values", [1, 5])
def test_biases_have_a_value_for_each_output(values):
    wrong = {"fc.bias": torch.zeros(values)}
    with pytest.raises(ValueError, match=r"'fc.bias' must have the shape \(8,\)"):
        linear(weights_of("fc", 12, 8, bias=False) | wrong, "fc")
    with pytest.raises(ValueError, match=r"'fc.bias' must have the shape \(8,\)"):
        linear({"fc.a": torch.randn(2, 2, 2), "fc.s": torch.randn(2, 4, 3)} | wrong, "fc")
    gates = {name: t for gate in "ifoc" for map, size in ((f"w{gate}x", 12), (f"u{gate}h", 8)) for name, t in weights_of(map, size, 8, False).items()}
    with pytest.raises(ValueError, match="must have the shape"):
        recurrent(gates | {"wix.bias": torch.zeros(values)}, "orkis.QLSTM")
    with pytest.raises(ValueError, match="biases of 1 of its 4 gates"):
        recurrent(gates | {"wix.bias": torch.zeros(8)}, "orkis.QLSTM")
    with pytest.raises(ValueError, match="nonlinearity must be one of"):
        recurrent(gates, "orkis.QLSTM", nonlinearity="nope")


def test_wrong_states_are_one_sentence():
    state, _ = made("speechbrain.QLSTM", 2, 2)
    with pytest.raises(ValueError, match="source must be one of orkis.QLSTM"):
        recurrent(state, "orkis")
    with pytest.raises(ValueError, match="there is no 'encoder.rnn.0.w.r_weight'"):
        recurrent(state, "speechbrain.QLSTM", "encoder")
    with pytest.raises(ValueError, match="layer 1 has a map of .* with bidirectional = False"):
        recurrent(state, "speechbrain.QLSTM")
    with pytest.raises(ValueError, match="is right for speechbrain.QRNN"):
        recurrent(state, "speechbrain.QRNN", bidirectional=True)
    with pytest.raises(ValueError, match="must have one shape"):
        recurrent(state | {"rnn.0.w.i_weight": torch.zeros(1, 1)}, "speechbrain.QLSTM")
    with pytest.raises(ValueError, match="the states of layer 1 do not begin with zero"):
        recurrent(state | {"rnn.1.h_init": torch.ones(1, HIDDEN)}, "speechbrain.QLSTM", bidirectional=True)
    assert sorted(SOURCES) == ["orkis.QLSTM", "pytorch-kaldi.QLSTM", "speechbrain.QLSTM", "speechbrain.QRNN"]


def published_convolution(n, kernel):
    return {"conv.A": torch.randn(n, n, n), "conv.F": torch.randn(n, 4, 3, *kernel) / 3}


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("kernel", [(3,), (3, 2), (2, 1, 2)])
def test_convolutions_of_a_and_f(n, kernel):
    state = published_convolution(n, kernel)
    H = torch.einsum("iab,ipq...->apbq...", state["conv.A"], state["conv.F"]).reshape(n * 4, n * 3, *kernel)
    x, run = torch.randn(2, n * 3, *(6,) * len(kernel)), getattr(torch.nn.functional, f"conv{len(kernel)}d")
    expected = run(x, H, stride=2, padding=1)
    layer = convolution(state, "conv", stride=2, padding=1)
    torch.testing.assert_close(layer(x), expected, rtol=1e-4, atol=1e-4)
    assert layer.algebra == (f"phm({n})" if n > 1 else "real") and layer.bias is None
    small = {"conv.a": state["conv.A"], "conv.s": state["conv.F"]}
    assert torch.equal(convolution(small, "conv", stride=2, padding=1)(x), layer(x))
    with pytest.warns(UserWarning, match="'conv.bias' is dropped: the published layer never adds it"):
        layer = convolution(state | {"conv.bias": torch.ones(n * 4)}, "conv", stride=2, padding=1)
    torch.testing.assert_close(layer(x), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n", [1, 4])
def test_weighted_convolutions_of_one_place(n):
    state = published_convolution(n, (1, 1)) | {"conv.kron_weights": torch.randn(n)}
    H = sum(w * torch.kron(A, F[..., 0, 0]) for w, A, F in zip(state["conv.kron_weights"], state["conv.A"], state["conv.F"]))
    x, layer = torch.randn(2, 3 * n, 5, 5), convolution(state, "conv")
    torch.testing.assert_close(layer(x), torch.einsum("oc,bchw->bohw", H, x), rtol=1e-4, atol=1e-4)
    assert layer.algebra == ("wkp(4)" if n > 1 else "real")


def test_convolutions_that_are_not_the_same():
    state = published_convolution(4, (3, 3))
    for more, reason in {
        "kron_weights": "'conv.kron_weights' is of a product that scatters A over the kernel, .* got \\[3, 3\\]",
        "A2": "'conv.A2' is of a second sum",
        "A": "'conv.A' and 'F' must have the shapes .*, got \\[4\\] and",
    }.items():
        with pytest.raises(ValueError, match=reason):
            convolution(state | {f"conv.{more}": torch.ones(4)}, "conv")
    with pytest.raises(ValueError, match="'conv.kron_weights' must have n = 4 values"):
        convolution(state | {"conv.kron_weights": torch.ones(3)}, "conv")
    with pytest.raises(ValueError, match="there is no 'A'"):
        convolution(state)


@pytest.mark.skipif(q_RNN is None, reason="speechbrain is not installed (pip install speechbrain)")
@pytest.mark.parametrize("kind", ["QLSTM", "QRNN"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_speechbrains_own_layers(kind, bidirectional):
    torch.manual_seed(2)
    x = torch.randn(3, 7, 12)
    theirs = getattr(q_RNN, kind)(2, x.shape, num_layers=2, bidirectional=bidirectional).eval()
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            if name.endswith("bias"):
                parameter.normal_()
    layer, rest = recurrent(theirs.state_dict(), f"speechbrain.{kind}", bidirectional=bidirectional)
    torch.testing.assert_close(layer(x)[0], theirs(x)[0], rtol=1e-4, atol=1e-5)
    assert not rest
    theirs = q_linear.QLinear(2, [1, 12])
    torch.testing.assert_close(linear(theirs.state_dict())(x), theirs(x))
