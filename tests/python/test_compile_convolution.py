"""Convolutions compiled and exported, with images of any size, equal to eager."""

import copy

import pytest
import torch
from quatrain import nn
from test_convolution import laid

LAYERS = {
    "Conv1d": lambda: nn.Conv1d(8, 12, 3, padding=2, padding_mode="circular"),
    "Conv2d": lambda: nn.Conv2d(8, 12, 3, padding=1, algebra="phm(4)"),
    "Conv2d-reflect": lambda: nn.Conv2d(8, 12, (3, 2), stride=2, padding=1, padding_mode="reflect"),
    "Conv2d-circular": lambda: nn.Conv2d(8, 12, 3, padding="same", padding_mode="circular", algebra="wkp(2)"),
    "Conv3d": lambda: nn.Conv3d(8, 12, 3, padding=1, stride=(1, 2, 1)),
    "Conv3d-replicate": lambda: nn.Conv3d(8, 12, 3, padding=1, padding_mode="replicate", algebra="phm(2)"),
    "ConvTranspose1d": lambda: nn.ConvTranspose1d(8, 12, 3, stride=2, padding=1, output_padding=1),
    "ConvTranspose2d": lambda: nn.ConvTranspose2d(8, 12, 3, stride=2, algebra="phm(4)"),
    "ConvTranspose3d": lambda: nn.ConvTranspose3d(8, 12, 2, stride=2, bias=False),
    "Conv2d-groups": lambda: nn.Conv2d(8, 16, 3, padding=2, dilation=(2, 1), groups=2, algebra="phm(4)"),
    "Conv2d-winograd": lambda: nn.Conv2d(8, 12, 3, padding=1, way="factored", winograd="4x4"),
    "Conv2d-whitening": lambda: torch.nn.Sequential(nn.Conv2d(8, 12, 3, padding=1), nn.WhiteningNorm(12), torch.nn.ReLU(), nn.Conv2d(12, 8, 3)),
}


def images(name, larger=0):
    sizes = (6, 7, 5)[: int(name.partition("-")[0][-2])]
    return torch.randn(2 + larger, 8, *(size + larger for size in sizes))


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


def run(layer, f, x):
    layer.zero_grad()
    x = x.detach().requires_grad_()
    y = f(x)
    y.square().sum().backward()
    return [y.detach(), x.grad, *(parameter.grad for parameter in layer.parameters())]


@pytest.mark.parametrize("last", [False, True], ids=["channels first", "channels last"])
@pytest.mark.parametrize("name", LAYERS)
def test_compiled_for_every_size(name, last):
    layer = LAYERS[name]()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager", dynamic=True)
    for larger in (0, 3):
        x = laid(images(name, larger), last)
        found, wanted = run(layer, compiled, x), run(layer, layer, x)
        for got, expected in zip(found, wanted, strict=True):
            torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)
        assert found[0].stride() == wanted[0].stride()


@pytest.mark.parametrize("name", LAYERS)
def test_exported_for_every_size(name):
    layer, x = LAYERS[name]().eval(), images(name)
    free = {axis: torch.export.Dim.AUTO for axis in range(x.dim()) if axis != 1}
    with torch.no_grad():
        exported = torch.export.export(layer, (x,), dynamic_shapes=(free,)).module()
        for larger in (0, 3):
            x = images(name, larger)
            torch.testing.assert_close(exported(x), layer(x), rtol=1e-4, atol=1e-5)


def network(axes):
    """With what inductor compiles between the operators."""
    Conv, Norm, Back = getattr(nn, f"Conv{axes}d"), getattr(torch.nn, f"BatchNorm{axes}d"), getattr(nn, f"ConvTranspose{axes}d")
    return torch.nn.Sequential(Conv(8, 12, 3, padding=1), Norm(12), torch.nn.ReLU(), Back(12, 8, 2, stride=2, algebra="phm(4)"), torch.nn.Tanh())


@pytest.mark.parametrize("last", [False, True], ids=["channels first", "channels last"])
@pytest.mark.parametrize("axes", [2, 3])
def test_inference_with_inductor(axes, last):
    model, x = network(axes).eval(), laid(images(f"Conv{axes}d"), last)
    compiled = torch.compile(model, fullgraph=True)
    with torch.no_grad():
        for _ in range(2):
            torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("last", [False, True], ids=["channels first", "channels last"])
def test_training_with_inductor(last):
    model, x = network(2), laid(images("Conv2d"), last)
    same = copy.deepcopy(model)
    for net, forward in ((model, model), (same, torch.compile(same, fullgraph=True))):
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            forward(x).square().sum().backward()
            optimizer.step()
    for (name, one), other in zip(model.state_dict().items(), same.state_dict().values(), strict=True):
        torch.testing.assert_close(other, one, rtol=1e-3, atol=1e-4, msg=lambda text: f"{name}: {text}")
