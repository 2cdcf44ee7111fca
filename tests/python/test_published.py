"""Weights of other toolkits: layers that compute what theirs do, here written from their definition."""

import pytest
import quatrain
import torch
from quatrain.published import SOURCES, linear, recurrent, resnet
from torch import nn
from torch.nn import functional

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


class TheirConvolution(nn.Module):
    """H = sum_i A_i (x) F_i, and a bias that is drawn and never added."""

    def __init__(self, n, inputs, outputs, size, stride, names=("A", "F")):
        super().__init__()
        self.stride, self.names = stride, names
        self.register_parameter(names[0], nn.Parameter(torch.randn(n, n, n) / n**0.5))
        self.register_parameter(names[1], nn.Parameter(torch.randn(n, outputs // n, inputs // n, size, size) / (size * inputs**0.5)))
        self.bias = nn.Parameter(torch.randn(outputs))

    def forward(self, x):
        A, F = (getattr(self, name) for name in self.names)
        H = torch.einsum("iab,ipqhw->apbqhw", A, F)
        return functional.conv2d(x, H.reshape(self.bias.numel(), x.size(1), *F.shape[3:]), None, self.stride, F.size(3) // 2)


class TheirBlock(nn.Module):
    def __init__(self, n, inputs, width, stride, bottleneck, residual, **more):
        super().__init__()
        self.residual = residual
        outputs = 4 * width if bottleneck else width
        sizes = [(inputs, width, 1, 1), (width, width, 3, stride), (width, outputs, 1, 1)] if bottleneck else [(inputs, width, 3, stride), (width, width, 3, 1)]
        self.count = len(sizes)
        for number, size in enumerate(sizes, 1):
            setattr(self, f"conv{number}", TheirConvolution(n, *size, **more))
            if residual != "fixup":
                setattr(self, f"bn{number}", nn.BatchNorm2d(size[1]))
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut.append(TheirConvolution(n, inputs, outputs, 1, stride, **more))
            if residual != "fixup":
                self.shortcut.append(nn.BatchNorm2d(outputs))
        scalars = {"code": ["res_weight"], "fixup": [f"bias{number + 1}{side}" for number in range(self.count) for side in "ab"] + ["scale"]}
        for name in scalars.get(residual, []):
            setattr(self, name, nn.Parameter(torch.randn(1)))

    def forward(self, x):
        if self.residual == "fixup":
            y = x
            for number in range(1, self.count + 1):
                y = getattr(self, f"conv{number}")(y + getattr(self, f"bias{number}a"))
                y = y * self.scale if number == self.count else y
                y = y + getattr(self, f"bias{number}b")
                y = y.relu() if number < self.count else y
            return (y + self.shortcut(x + self.bias1a if len(self.shortcut) else x)).relu()
        y = x
        for number in range(1, self.count + 1):
            y = getattr(self, f"bn{number}")(getattr(self, f"conv{number}")(y))
            y = y.relu() if number < self.count else y
        if self.residual == "code":
            return self.shortcut(x) + self.res_weight * y.relu()
        return (y + self.shortcut(x)).relu()


class TheirResNet(nn.Module):
    def __init__(self, n, blocks, bottleneck, residual, channels, widths=(12, 24, 24, 36), **more):
        super().__init__()
        self.conv1 = TheirConvolution(n, channels, widths[0], 3, 1, **more)
        if residual == "fixup":
            self.bias1, self.bias2 = nn.Parameter(torch.randn(1)), nn.Parameter(torch.randn(1))
        else:
            self.bn1 = nn.BatchNorm2d(widths[0])
        inputs = widths[0]
        for stage, (count, width) in enumerate(zip(blocks, widths), 1):
            layer = nn.Sequential()
            for number in range(count):
                layer.append(TheirBlock(n, inputs, width, 2 if stage > 1 and number == 0 else 1, bottleneck, residual, **more))
                inputs = 4 * width if bottleneck else width
            setattr(self, f"layer{stage}", layer)
        self.linear = nn.Linear(inputs, 7)
        for part in self.modules():
            if isinstance(part, nn.BatchNorm2d):
                for values in (part.weight, part.bias, part.running_mean):
                    nn.init.normal_(values, 0.5, 0.2)
                nn.init.uniform_(part.running_var, 0.5, 2)

    def forward(self, x):
        fixup = hasattr(self, "bias1")
        x = (self.conv1(x) + self.bias1 if fixup else self.bn1(self.conv1(x))).relu()
        for stage in range(1, 5):
            x = getattr(self, f"layer{stage}")(x)
        x = functional.avg_pool2d(x, 4).flatten(1)
        return self.linear(x + self.bias2 if fixup else x)


@pytest.mark.parametrize("n, channels", [(1, 3), (2, 4), (3, 3), (4, 4)])
@pytest.mark.parametrize("depth, blocks, bottleneck", [(18, (2, 2, 2, 2), False), (34, (3, 4, 6, 3), False), (50, (3, 4, 6, 3), True)])
@pytest.mark.parametrize("residual, more", [("plain", {}), ("code", {"names": ("a", "s")}), ("fixup", {})])
def test_whole_networks(n, channels, depth, blocks, bottleneck, residual, more):
    torch.manual_seed(3)
    theirs = TheirResNet(n, blocks, bottleneck, residual, channels, **more).eval()
    with pytest.warns(UserWarning, match="the biases of .* convolutions, the first 'module.conv1', are dropped") as warned:
        net = resnet({f"module.{name}": tensor for name, tensor in theirs.state_dict().items()}, "module")
    assert len(warned) == 1 and not net.training
    assert (net.depth, net.classes, net.residual) == (depth, 7, residual)
    assert net.blocks[0].conv1.algebra == (f"phm({n})" if n > 1 else "real")
    x = torch.randn(2, channels, 32, 32)
    with torch.no_grad():
        expected = theirs(x)
        torch.testing.assert_close(net(x), expected, rtol=1e-3, atol=1e-4 * float(expected.abs().max()))
    if residual == "fixup":
        assert net.after_stem == theirs.bias1 and net.before_head == theirs.bias2 and net.stem_norm is None
    else:
        assert torch.equal(net.stem_norm.running_var, theirs.bn1.running_var)


def test_networks_that_ours_is_not():
    def state(**more):
        return TheirResNet(2, (2, 2, 2, 2), False, "plain", 4).state_dict() | more

    names = list(state())
    quiet = {name: tensor if not name.endswith("bias") or "bn" in name or "linear" in name else 0 * tensor for name, tensor in state().items()}
    resnet(quiet)  # without a warning
    resnet({name: tensor for name, tensor in quiet.items() if not name.endswith("num_batches_tracked")})
    for change, reason in (
        ({"bias1": torch.ones(1)}, "there is no 'bias2'"),
        ({"bias2": torch.ones(1)}, "'bias2' is of a network that ours is not"),
        ({"layer1.0.scale": torch.ones(1)}, "'layer1.0.scale' is of a network that ours is not"),
        ({"layer4.2.conv1.A": torch.ones(1)}, r"must have as many blocks as a ResNet of depth 18, 34, .*, got \[2, 2, 2, 3\] of 2 conv"),
        ({"conv1.kron_weights": torch.ones(2)}, "'conv1.kron_weights' is of a product that scatters A over the kernel"),
        ({"layer2.0.conv1.A2": torch.ones(2, 2, 2)}, "'layer2.0.conv1.A2' is of a second sum"),
        ({"layer2.0.shortcut.1.weight": torch.ones(3)}, r"'layer2.0.shortcut.1.weight' must have the shape \[24\], got \[3\]"),
        ({"layer3.1.conv2.F": torch.ones(2, 12, 6, 3, 3)}, r"'layer3.1.conv2.F' must have the shape \[2, 12, 12, 3, 3\], got"),
        ({"layer1.1.shortcut.0.A": torch.ones(2, 2, 2), "layer1.1.shortcut.0.F": torch.ones(2, 6, 6, 1, 1)}, "'layer1.1.shortcut.0.F' is of a network"),
        ({"layer1.1.extra": torch.ones(1)}, "'layer1.1.extra' is of a network that ours is not"),
        ({"layer1.1.res_weight": torch.ones(1)}, "there is no 'layer1.0.res_weight'"),
    ):
        with pytest.raises(ValueError, match=f"published.resnet: .*{reason}"):
            resnet(quiet | change)
    for missing in ("conv1.A", "layer4.1.bn2.running_var", "layer2.0.shortcut.0.F", "linear.bias", "linear.weight"):
        assert missing in names
        with pytest.raises(ValueError, match=f"there is no '{missing}'"):
            resnet({name: tensor for name, tensor in quiet.items() if name != missing})
    with pytest.raises(ValueError, match=r"must have as many blocks .*, got \[0, 0, 0, 0\]"):
        resnet(quiet, "module")
