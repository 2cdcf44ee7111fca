"""Norms, sums and activations as part of the convolutions before them: the same answers in fewer calls."""

import copy
import io

import pytest
import quatrain
import torch
from quatrain import nn
from torch.nn import functional

WIDE = torch.float64


class BasicBlock(torch.nn.Module):
    """As torchvision has it."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(outputs)
        self.relu = torch.nn.ReLU(inplace=True)
        self.conv2 = torch.nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = torch.nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = torch.nn.Sequential(torch.nn.Conv2d(inputs, outputs, 1, stride, bias=False), torch.nn.BatchNorm2d(outputs))

    def forward(self, x):
        identity = x
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class PreActivation(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.norm1, self.conv1 = torch.nn.BatchNorm2d(inputs), torch.nn.Conv2d(inputs, outputs, 3, 1, 1)
        self.norm2, self.conv2 = torch.nn.BatchNorm2d(outputs), torch.nn.Conv2d(outputs, outputs, 3, 1, 1)
        self.shortcut = torch.nn.Conv2d(inputs, outputs, 1) if inputs != outputs else torch.nn.Identity()

    def forward(self, x):
        y = self.conv1(functional.relu(self.norm1(x)))
        return torch.add(self.conv2(self.norm2(y).relu_()), self.shortcut(x))


class Dense(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = torch.nn.Conv2d(8, 8, 1), torch.nn.BatchNorm2d(8)
        self.second, self.after = torch.nn.Conv2d(8, 8, 3, padding=1), torch.nn.BatchNorm2d(16)

    def forward(self, x):
        y = self.second(torch.relu(self.norm(self.first(x))))
        return torch.sigmoid(self.after(torch.cat([x, y], 1)))


def resnet():
    stem = torch.nn.Conv2d(4, 8, 3, padding=1, bias=False), torch.nn.BatchNorm2d(8), torch.nn.ReLU()
    head = torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(16, 3)
    return torch.nn.Sequential(*stem, BasicBlock(8, 8, 1), BasicBlock(8, 16, 2), *head)


def generator():
    up = torch.nn.ConvTranspose2d(8, 16, 4, 2, 1), torch.nn.BatchNorm2d(16), torch.nn.ReLU(True)
    return torch.nn.Sequential(*up, torch.nn.ConvTranspose2d(16, 4, 3, 2, output_padding=1), torch.nn.Tanh())


def signals():
    first = torch.nn.Conv1d(8, 12, 3, padding=1), torch.nn.BatchNorm1d(12), nn.Activation("tanh")
    return torch.nn.Sequential(*first, torch.nn.Conv1d(12, 8, 2), torch.nn.Sigmoid())


def volumes():
    return torch.nn.Sequential(torch.nn.Conv3d(8, 8, 2), torch.nn.BatchNorm3d(8), torch.nn.GELU())


# A network, its input, and the calls that remain beside those of convolutions.
NETWORKS = {
    "resnet": (resnet, (2, 4, 8, 7), ["AdaptiveAvgPool2d", "Flatten", "Linear"]),
    "pre-activation": (lambda: PreActivation(8, 16), (2, 8, 5, 6), ["BatchNorm2d", "relu", "Conv2d"]),  # the shortcut's adds its result
    "pre-activation, same": (lambda: PreActivation(8, 8), (2, 8, 5, 6), ["BatchNorm2d", "relu"]),
    "dense": (Dense, (2, 8, 5, 6), ["Conv2d", "cat", "BatchNorm2d", "sigmoid"]),
    "generator": (generator, (2, 8, 4, 3), []),
    "signals": (signals, (2, 8, 9), []),
    "volumes": (volumes, (2, 8, 3, 4, 5), ["GELU"]),
}


def drawn(model, dtype=torch.float32):
    """In eval mode, with other norms than those of the start."""
    with torch.no_grad():
        for part in model.modules():
            if isinstance(part, torch.nn.modules.batchnorm._BatchNorm):
                for values in (part.weight, part.bias, part.running_mean):
                    if values is not None:
                        values.normal_()
                if part.running_var is not None:
                    part.running_var.uniform_(0.5, 2)
    return model.eval().to(dtype)


def hypercomplex(make, algebra="quaternion", dtype=torch.float32):
    convolutions = torch.nn.modules.conv._ConvNd
    return drawn(quatrain.convert(make(), algebra, lambda name, layer: isinstance(layer, convolutions))[0], dtype)


def calls(fused):
    """What is called beside convolutions that something was fused with."""
    found = []
    for node in fused.graph.nodes:
        part = fused.get_submodule(node.target) if node.op == "call_module" else None
        if node.op.startswith("call") and type(part).__name__ != "ConvolutionWithEpilogue":
            found.append(getattr(node.target, "__name__", node.target) if part is None else type(part).__name__)
    return found


@pytest.mark.parametrize("dtype", [torch.float32, WIDE])
@pytest.mark.parametrize("algebra", ["quaternion", "phm(2)", "wkp(4)"])
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_are_the_same(name, algebra, dtype):
    make, sizes, remaining = NETWORKS[name]
    model, x = hypercomplex(make, algebra, dtype), torch.randn(sizes, dtype=dtype)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    fused = quatrain.fuse(model)
    assert calls(fused) == remaining and not any(part.training for part in fused.modules())
    expected = model(x).detach()
    tolerance = {} if dtype == WIDE else {"rtol": 1e-4, "atol": 1e-5}
    torch.testing.assert_close(fused(x).detach(), expected, **tolerance)
    with torch.no_grad():
        torch.testing.assert_close(fused(x), expected, **tolerance)
    # The model is as it was, and shares nothing with the copy.
    assert model.state_dict().keys() == before.keys()
    with torch.no_grad():
        for parameter in fused.parameters():
            parameter.zero_()
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_sums_ride_too():
    model, x, called = quatrain.fuse(hypercomplex(resnet)), torch.randn(2, 4, 8, 8), []

    class Calls(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            called.append(str(func))
            return func(*args, **(kwargs or {}))

    with torch.no_grad(), Calls():
        model(x)
    assert called.count("quatrain.convolution_with_epilogue.default") == 6
    assert not any(word in name for name in called for word in ("add.", "relu", "batch_norm", "activation"))


@pytest.mark.parametrize("name", ["resnet", "generator", "signals"])
def test_gradients_are_the_same(name):
    make, sizes, _ = NETWORKS[name]
    model, x = hypercomplex(make, dtype=WIDE), torch.randn(sizes, dtype=WIDE, requires_grad=True)
    fused = quatrain.fuse(model)
    weights = [[part.F for part in net.modules() if isinstance(getattr(part, "F", None), torch.Tensor)] for net in (model, fused)]
    expected, found = (torch.autograd.grad(net(x).square().sum(), [x, *own]) for net, own in zip((model, fused), weights))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)
    first = next(part for part in fused.modules() if getattr(part, "scale", None) is not None)
    assert all(gradient is not None for gradient in torch.autograd.grad(fused(x).sum(), [first.scale, first.shift]))


class Written(torch.nn.Module):
    """A forward of its own over a convolution, a norm and another convolution."""

    def __init__(self, forward, **norm):
        super().__init__()
        self.conv, self.norm, self.other = nn.Conv2d(8, 8, 3, padding=1), torch.nn.BatchNorm2d(8, **norm), nn.Conv2d(8, 8, 1)
        self.written = forward
        self.place = torch.nn.Parameter(torch.randn(8, 1, 1))

    def forward(self, x):
        return self.written(self, x)


def read_twice(m, x):
    y = m.conv(x)
    return m.norm(y) + y


def overwritten(m, x):
    residual = x * 1
    y = m.conv(x)
    residual.mul_(2)
    return y + residual


def input_overwritten(m, x):
    z = x * 1
    shortcut = m.conv(z)
    return m.other(z.relu_()) + shortcut


@pytest.mark.parametrize("forward, remaining", [
    (read_twice, ["Conv2d", "BatchNorm2d", "add"]),
    (overwritten, ["mul", "Conv2d", "mul_", "add"]),
    (input_overwritten, ["mul", "Conv2d", "relu_"]),
    (lambda m, x: m.norm(m.conv(m.norm(m.conv(x)))), ["Conv2d", "BatchNorm2d", "Conv2d", "BatchNorm2d"]),
    (lambda m, x: m.conv(x) + m.conv.bias[0], ["Conv2d", "getitem", "add"]),
    (lambda m, x: m.conv(x).relu() + x, ["add"]),
    (lambda m, x: m.norm(m.conv(x) + x), ["BatchNorm2d"]),
    (lambda m, x: torch.add(m.conv(x), x, alpha=2), ["Conv2d", "add"]),
    (lambda m, x: (lambda y: y + y)(m.conv(x)), ["Conv2d", "add"]),
    (lambda m, x: m.conv(x) + 1, ["Conv2d", "add"]),
    (lambda m, x: m.conv(x).add_(x), ["Conv2d", "add_"]),
    (lambda m, x: functional.leaky_relu(m.conv(x)), ["Conv2d", "leaky_relu"]),
    (lambda m, x: functional.relu(m.conv(x), inplace=True).tanh(), ["tanh"]),
    (lambda m, x: (lambda size: m.norm(m.conv(x)) + size)(x.size(2)).sigmoid(), ["size"]),
    (lambda m, x: m.norm(m.conv(x)) + m.other(x), []),
])  # fmt: skip
def test_other_forwards(forward, remaining):
    model, x = drawn(Written(forward), WIDE), torch.randn(2, 8, 5, 6, dtype=WIDE)
    fused = quatrain.fuse(model)
    torch.testing.assert_close(fused(x.clone()), model(x.clone()))
    assert sorted(calls(fused)) == sorted(remaining)


class Sum(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(8, 8, 3, padding=1), torch.nn.BatchNorm2d(8)

    def forward(self, x, residual):
        return (residual + self.norm(self.conv(x))).relu()


@pytest.mark.parametrize("residual", [
    torch.randn(8, 1, 1), torch.randn(2, 8, 1, 6), torch.randn(1, 8, 5, 6), torch.randn(3, 2, 8, 5, 6), torch.randn(2, 8, 5, 6).double(), torch.tensor(2.0)
], ids=lambda t: f"{list(t.shape)} {t.dtype}")  # fmt: skip
def test_sums_of_other_shapes_and_types_are_sums(residual):
    model, x = drawn(Sum()), torch.randn(2, 8, 5, 6)
    fused = quatrain.fuse(model)
    assert calls(fused) == []
    for gradients in (True, False):
        with torch.set_grad_enabled(gradients):
            torch.testing.assert_close(fused(x, residual), model(x, residual), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_results_have_their_types_under_autocast(dtype):
    model, x = drawn(Sum()), torch.randn(2, 8, 5, 6)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        y, expected = (net(x, x.to(dtype)) for net in (quatrain.fuse(model), model))
    assert y.dtype == expected.dtype == dtype
    torch.testing.assert_close(y, expected, rtol=0.1, atol=0.1)


def with_hook(part):
    part.register_forward_hook(lambda *given: None)


@pytest.mark.parametrize("change, remaining", [
    (lambda m: m[1].train(), ["Conv2d", "BatchNorm2d", "ReLU"]),
    (lambda m: m[0].train(), ["Conv2d", "BatchNorm2d", "ReLU"]),
    (lambda m: with_hook(m[0]), ["Conv2d", "BatchNorm2d", "ReLU"]),
    (lambda m: with_hook(m[1]), ["Conv2d", "BatchNorm2d", "ReLU"]),
    (lambda m: with_hook(m[2]), ["ReLU"]),
    (lambda m: setattr(m[1], "forward", lambda y: y), ["Conv2d", "BatchNorm2d", "ReLU"]),
    (lambda m: m.__setitem__(1, torch.nn.BatchNorm2d(8, affine=False).eval()), ["Conv2d", "BatchNorm2d", "ReLU"]),
    (lambda m: m.__setitem__(1, torch.nn.BatchNorm2d(8, track_running_stats=False).eval()), ["Conv2d", "BatchNorm2d", "ReLU"]),
    (lambda m: m.__setitem__(1, nn.WhiteningNorm(8).eval()), ["Conv2d", "WhiteningNorm", "ReLU"]),
    (lambda m: m.__setitem__(1, torch.nn.Identity().eval()), []),
    (lambda m: torch.nn.utils.parametrizations.weight_norm(m[0], "F"), ["ParametrizedConv2d", "BatchNorm2d", "ReLU"]),
])  # fmt: skip
def test_layers_that_stay(change, remaining):
    model, x = drawn(torch.nn.Sequential(nn.Conv2d(8, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU()), WIDE), torch.randn(2, 8, 5, 6, dtype=WIDE)
    change(model)
    fused = quatrain.fuse(model.to(WIDE))
    assert calls(fused) == remaining
    torch.testing.assert_close(fused(x), model(x))


def test_a_container_with_hooks_is_called_as_it_stands():
    model, x, seen = hypercomplex(resnet), torch.randn(2, 4, 8, 8), []
    model[4].register_forward_hook(lambda part, given, y: seen.append(y) or 2 * y)
    fused = quatrain.fuse(model)
    assert calls(fused) == ["BasicBlock", *NETWORKS["resnet"][2]]
    torch.testing.assert_close(fused(x), model(x), rtol=1e-4, atol=1e-5)
    assert len(seen) == 2
    # Also where a part of it is called by others.
    block = torch.nn.Sequential(nn.Conv2d(8, 8, 1), torch.nn.Sigmoid())
    with_hook(block)
    model, x = torch.nn.Sequential(block, block[0], torch.nn.ReLU()).eval(), torch.randn(2, 8, 5, 6)
    torch.testing.assert_close(quatrain.fuse(model)(x), model(x))


@pytest.mark.parametrize("name", ["resnet", "generator", "volumes"])
def test_norms_are_folded_into_real_convolutions(name):
    """Into torch's; those of ours over the real numbers are fused as the others are."""
    make, sizes, _ = NETWORKS[name]
    model, x = drawn(make(), WIDE), torch.randn(sizes, dtype=WIDE)
    fused = quatrain.fuse(model)
    assert not any("BatchNorm" in call for call in calls(fused)) and any("Conv" in call for call in calls(fused))
    torch.testing.assert_close(fused(x), model(x))
    groups = drawn(torch.nn.Sequential(torch.nn.ConvTranspose1d(8, 8, 3, groups=2), torch.nn.BatchNorm1d(8)))
    assert calls(quatrain.fuse(groups)) == ["ConvTranspose1d", "BatchNorm1d"]
    ours = hypercomplex(make, "real", WIDE)
    assert calls(quatrain.fuse(ours)) == NETWORKS[name][2]
    torch.testing.assert_close(quatrain.fuse(ours)(x), ours(x))


def test_copies_files_and_state_dicts():
    fused, x = quatrain.fuse(hypercomplex(resnet)), torch.randn(2, 4, 8, 8)
    file = io.BytesIO()
    torch.save(fused, file)
    file.seek(0)
    other = quatrain.fuse(hypercomplex(resnet))
    other.load_state_dict(fused.state_dict())
    for same in (copy.deepcopy(fused), torch.load(file, weights_only=False), quatrain.fuse(fused), other):
        torch.testing.assert_close(same(x), fused(x))
    names = fused.state_dict().keys()
    assert {"0.scale", "0.shift", "0.convolution.F", "3.conv1.scale", "4.downsample.0.convolution.F"} <= names
    assert not any("bn" in name for name in names)


def test_fused_networks_compile_and_are_exported():
    torch._dynamo.reset()
    fused = quatrain.fuse(hypercomplex(resnet))
    compiled = torch.compile(fused, backend="aot_eager", fullgraph=True, dynamic=True)
    free = {0: torch.export.Dim.AUTO, 2: torch.export.Dim.AUTO}
    with torch.no_grad():
        exported = torch.export.export(fused, (torch.randn(2, 4, 8, 8),), dynamic_shapes=(free,)).module()
        for size in (8, 12):
            x = torch.randn(3, 4, size, 8)
            torch.testing.assert_close(compiled(x), fused(x), rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(exported(x), fused(x), rtol=1e-4, atol=1e-5)


def test_networks_of_ours_do_it_themselves():
    net = drawn(quatrain.models.ResNet(4, 3, widths=(8, 8, 8, 8)))
    x, model = torch.randn(2, 4, 8, 8), torch.nn.Sequential(net, torch.nn.Softmax(1)).eval()
    copied = quatrain.fuse(net)
    assert type(copied) is quatrain.models.ResNet and copied is not net
    assert calls(quatrain.fuse(model)) == ["ResNet", "Softmax"]
    torch.testing.assert_close(quatrain.fuse(model)(x), model(x))


class InPlace(torch.nn.Module):
    """Sums in place of values that other names stand for."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.norm = nn.Conv2d(8, 8, 3, padding=1), nn.Conv2d(8, 8, 1), torch.nn.BatchNorm2d(8)

    def forward(self, x):
        taps = []
        y = self.norm(self.first(x))
        taps.append(y)
        y += x
        z = self.second(y)
        k = z
        z -= 1
        z *= 2
        return torch.relu(y), taps[0], z + k


def test_what_is_written_in_place_is_seen():
    model, x = drawn(InPlace()), torch.randn(2, 8, 6, 6)
    for found, expected in zip(quatrain.fuse(model)(x), model(x)):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


class Optional(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Conv2d(8, 8, 3, padding=1)

    def forward(self, x, skip=None):
        return self.layer(x) + skip


def test_nothing_is_no_residual():
    model, x = quatrain.fuse(Optional().eval()), torch.randn(2, 8, 4, 4)
    assert calls(model) == []
    model(x, x)
    with pytest.raises(TypeError):
        model(x)


def test_dropout_is_nothing():
    parts = nn.Conv2d(8, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.Dropout2d(), torch.nn.ReLU()
    assert calls(quatrain.fuse(torch.nn.Sequential(*parts).eval())) == []


class BatchNormAct2d(torch.nn.BatchNorm2d):
    """As timm has it."""

    def __init__(self, width):
        super().__init__(width)
        self.drop, self.act = torch.nn.Identity(), torch.nn.ReLU(inplace=True)

    def forward(self, x):
        torch._assert(x.ndim == 4, "images in a batch")
        return self.act(self.drop(functional.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, self.training, 0.1, self.eps)))


class FrozenBatchNorm2d(torch.nn.Module):
    """As torchvision has it."""

    def __init__(self, width):
        super().__init__()
        self.eps = 1e-3
        for name in ("weight", "bias", "running_mean", "running_var"):
            self.register_buffer(name, torch.rand(width) + 0.5)

    def forward(self, x):
        scale = self.weight * (self.running_var + self.eps).rsqrt()
        return x * scale.view(1, -1, 1, 1) + (self.bias - self.running_mean * scale).view(1, -1, 1, 1)


def test_norms_of_others_are_fused(monkeypatch):
    monkeypatch.setattr(BatchNormAct2d, "__module__", "timm.layers.norm_act")
    monkeypatch.setattr(FrozenBatchNorm2d, "__module__", "torchvision.ops.misc")
    parts = nn.Conv2d(8, 8, 3), BatchNormAct2d(8), torch.nn.Conv2d(8, 8, 1), BatchNormAct2d(8), nn.Conv2d(8, 8, 1), FrozenBatchNorm2d(8)
    model, x = drawn(torch.nn.Sequential(*parts), WIDE), torch.randn(2, 8, 5, 6, dtype=WIDE)
    fused = quatrain.fuse(model)
    assert calls(fused) == ["Conv2d", "ReLU"] and type(model[1]) is BatchNormAct2d
    torch.testing.assert_close(fused(x), model(x))
    assert not any(p.requires_grad for p in (fused.get_submodule("4").scale, fused.get_submodule("4").shift))
    with_hook(model[1])
    assert "BatchNormAct2d" in calls(quatrain.fuse(model))


def test_norms_of_others_that_stay_can_be_moved(monkeypatch):
    monkeypatch.setattr(BatchNormAct2d, "__module__", "timm.layers.norm_act")
    model, x = drawn(torch.nn.Sequential(BatchNormAct2d(8), nn.Conv2d(8, 8, 3)), WIDE), torch.randn(2, 8, 5, 6, dtype=WIDE)
    fused = quatrain.fuse(model).to("cpu")
    assert not any(value.is_meta for value in fused.state_dict().values())
    torch.testing.assert_close(fused(x), model(x))


def test_devices_without_autocast():
    fused = quatrain.fuse(Optional().eval()).to("meta")
    x = torch.empty(2, 8, 4, 4, device="meta")
    assert fused(x, x).shape == (2, 8, 4, 4)


class Branching(torch.nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else -x


def test_what_cannot_be_fused_is_told():
    with pytest.raises(ValueError, match=r"^fuse: the model must be in eval mode.*call model.eval\(\) first"):
        quatrain.fuse(torch.nn.Sequential(nn.Conv2d(8, 8, 3)))
    with pytest.raises(ValueError, match=r"^fuse: torch.fx cannot trace Branching: .*control flow.*model.part = quatrain.fuse"):
        quatrain.fuse(Branching().eval())
    with pytest.raises(ValueError, match="^fuse: the model is a DataParallel, which hides its network .fuse model.module"):
        quatrain.fuse(torch.nn.DataParallel(hypercomplex(resnet)).eval())
    normed = quatrain.fuse(torch.nn.Sequential(nn.Conv1d(8, 8, 3, padding=1), torch.nn.BatchNorm1d(8)).eval())
    with pytest.raises(ValueError, match=r"^fuse: behind a fused norm images come in a batch, got one of shape \[8, 8\]"):
        normed(torch.randn(8, 8))
    model = hypercomplex(resnet)
    with_hook(model)
    with pytest.raises(ValueError, match="^fuse: the model has hooks, which its copy would lose"):
        quatrain.fuse(model)
