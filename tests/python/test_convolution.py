"""Convolutions as modules: torch's arguments, and torch's results at n = 1."""

import copy

import pytest
import quatrain
import torch
from quatrain import nn, ops
from quatrain.materialise import _dense

PLAIN = [
    ("Conv1d", (3,), dict(stride=2, padding=1)),
    ("Conv2d", (3,), dict(padding="same", padding_mode="replicate")),
    ("Conv2d", ((4, 3),), dict(padding="same", dilation=(2, 1))),
    ("Conv2d", ((3, 2), (2, 1)), dict(padding=(2, 0), bias=False, padding_mode="circular")),
    ("Conv2d", (3,), dict(groups=2)),
    ("Conv1d", (3, 2, 2, 2), dict(groups=2, padding_mode="reflect")),
    ("Conv3d", ((1, 3, 2),), dict(padding="valid")),
]
PADDED = [
    (kind, (3,), dict(padding=padding, padding_mode=mode))
    for kind, padding in (("Conv1d", 2), ("Conv2d", (2, 1)), ("Conv3d", 1), ("Conv2d", "same"))
    for mode in ("zeros", "reflect", "replicate", "circular")
]
TURNED = [
    ("ConvTranspose1d", (3, 2), dict(padding=1, output_padding=1)),
    ("ConvTranspose2d", ((3, 2),), dict(stride=(2, 1), dilation=(1, 2))),
    ("ConvTranspose2d", (3, 2), dict(groups=2)),
    ("ConvTranspose3d", (2,), dict(bias=False)),
]
ALL = PLAIN + PADDED + TURNED


def image(kind, channels=8):
    return torch.randn(2, channels, *(6, 7, 5)[: int(kind[-2])])


def with_torchs(kind, arguments, options, algebra, dtype=None):
    """A layer, torch's layer of the same map, whose groups are zeros between them, and the kernel as a function of the weights."""
    groups = options.get("groups", 1)
    layer = getattr(nn, kind)(8 * groups, 12 * groups, *arguments, algebra=algebra, dtype=dtype, **options)
    torchs = getattr(torch.nn, kind)(8 * groups, 12 * groups, *arguments, dtype=dtype, **options | {"groups": 1})
    kernel = _dense(layer.weight + 0, layer.spec.n, groups)
    with torch.no_grad():
        torchs.weight.copy_(kernel)
        if layer.bias is not None:
            torchs.bias.copy_(layer.bias.normal_())
    return layer, torchs, kernel


@pytest.mark.parametrize("kind, arguments, options", PLAIN + TURNED)
def test_real_ones_are_torchs(kind, arguments, options):
    theirs = getattr(torch.nn, kind)(8, 12, *arguments, **options)
    ours = getattr(nn, kind)(8, 12, *arguments, algebra="real", **options)
    with torch.no_grad():
        ours.F.copy_(theirs.weight.unsqueeze(0))
        if theirs.bias is not None:
            ours.bias.copy_(theirs.bias)
    x = image(kind)
    torch.testing.assert_close(ours(x), theirs(x), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(ours(x[0]), theirs(x[0]), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(ours.weight + 0, theirs.weight + 0)


@pytest.mark.parametrize("algebra", ["quaternion", "phm(4)", "wkp(2)", "phm(2, trained_rank=3)"])
@pytest.mark.parametrize("kind, arguments, options", PLAIN + TURNED)
def test_each_is_torchs_layer_with_its_kernel(kind, arguments, options, algebra):
    layer, torchs, _ = with_torchs(kind, arguments, options, algebra)
    x = image(kind, layer.in_channels)
    torch.testing.assert_close(layer(x), torchs(x), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(layer.eval()(x), torchs(x), rtol=1e-4, atol=1e-5)


# torch's layer has the kernel's gradient, and the kernel is a function of the weights.
@pytest.mark.parametrize("algebra", ["real", "quaternion", "phm(4)", "wkp(2)", "phm(2, trained_rank=3)"])
@pytest.mark.parametrize("kind, arguments, options", ALL)
def test_gradients_are_those_of_torchs_layer(kind, arguments, options, algebra):
    layer, torchs, kernel = with_torchs(kind, arguments, options, algebra, torch.float64)
    x = image(kind, layer.in_channels).double().requires_grad_()
    z = x.detach().clone().requires_grad_()
    y, wanted = layer(x), torchs(z)
    g = torch.randn_like(wanted)
    y.backward(g), wanted.backward(g)
    torch.testing.assert_close(x.grad, z.grad)
    if layer.bias is not None:
        torch.testing.assert_close(layer.bias.grad, torchs.bias.grad)
    weights = [(name, weight) for name, weight in layer.named_parameters() if name != "bias"]
    gradients = torch.autograd.grad(kernel, [weight for _, weight in weights], torchs.weight.grad)
    for (name, weight), gradient in zip(weights, gradients):
        torch.testing.assert_close(weight.grad, gradient, msg=lambda text: f"{name}: {text}")


def laid(x, last):
    """x with its channels last in memory, or first; signals have no memory format for it."""
    return x.movedim(1, -1).contiguous().movedim(-1, 1) if last else x.contiguous()


def lies(x, last):
    return (x.movedim(1, -1) if last else x).is_contiguous()


@pytest.mark.parametrize("mode", ["zeros", "reflect", "replicate", "circular"])
@pytest.mark.parametrize("padding", [1, "same"])
@pytest.mark.parametrize("kind", ["Conv1d", "Conv2d", "Conv3d"])
def test_results_lie_as_x_does(kind, padding, mode):
    options = dict(padding=padding, padding_mode=mode)
    layer, torchs = getattr(nn, kind)(8, 12, 4, algebra="real", **options), getattr(torch.nn, kind)(8, 12, 4, **options)
    with torch.no_grad():
        layer.F[0], layer.bias[:] = torchs.weight, torchs.bias
    for last in False, True:
        x = laid(image(kind), last).requires_grad_()
        y = layer(x)
        assert lies(y, last) and lies(layer(x[0])[None], last)
        torch.testing.assert_close(y, torchs(x), rtol=1e-4, atol=1e-5)
        y.sum().backward()
        assert lies(x.grad, last)
        finished = layer.forward_with_epilogue(x.detach(), activation="relu")
        assert lies(finished, last)
        torch.testing.assert_close(finished, y.detach().relu(), rtol=1e-4, atol=1e-5)
    many = torch.func.vmap(layer)(torch.stack([laid(image(kind), True)] * 2))
    assert many.shape == (2, *y.shape)


@pytest.mark.parametrize("last", [False, True], ids=["channels first", "channels last"])
@pytest.mark.parametrize("axes", [1, 2])
@pytest.mark.parametrize("between", ["one channel", "one pixel"])
def test_a_trace_knows_the_order_of_what_fits_both(between, axes, last):
    """Strides of axes of one value, which a trace does not know, decide over no order."""
    Conv, Back = getattr(nn, f"Conv{axes}d"), getattr(nn, f"ConvTranspose{axes}d")
    if between == "one channel":
        layers = torch.nn.Sequential(Conv(8, 1, 3, padding=1, algebra="real"), Conv(1, 8, 3, algebra="real"))
    else:
        layers = torch.nn.Sequential(Conv(8, 8, 3), Back(8, 8, 4))
    for dtype in torch.float32, torch.float64:
        x = laid(torch.randn(2, 8, *(3,) * axes, dtype=dtype), last)
        y = layers.to(dtype)(x)
        traced = copy.deepcopy(layers).to("meta")(torch.empty_strided(x.shape, x.stride(), dtype=dtype, device="meta"))
        steps = [[stride for size, stride in zip(one.shape, one.stride()) if size > 1] for one in (y, traced)]
        assert steps[0] == steps[1]


COPIED = {
    "plain": lambda: nn.Conv2d(64, 64, 3, padding=1, bias=False),
    "stride": lambda: nn.Conv2d(64, 64, 3, stride=2, padding=1, bias=False),
    "transposed": lambda: nn.ConvTranspose2d(64, 64, 3, stride=2, padding=1, bias=False),
    "groups": lambda: nn.Conv2d(128, 128, 3, padding=1, groups=2, bias=False),
    "three axes": lambda: nn.Conv3d(64, 64, 3, padding=1, bias=False),
    "one axis": lambda: nn.Conv1d(64, 64, 3, padding=1, bias=False),
}


# But for what docs/engine.md lists.
@pytest.mark.parametrize("last", [False, True], ids=["channels first", "channels last"])
@pytest.mark.parametrize("name", COPIED)
def test_images_are_not_copied_whole(name, last):
    layer = COPIED[name]()
    x = laid(torch.randn(2, layer.in_channels, *(8,) * len(layer.kernel_size)), last).requires_grad_()
    y = layer(x)
    g = torch.randn_like(y)  # lies as y
    y.backward(g)
    x.grad = layer.F.grad = None
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        layer(x).backward(g)
    names = {event.name for event in profile.events()}
    assert "quatrain::convolution_backward" in names and not names & {"aten::copy_", "aten::clone"}


@pytest.mark.parametrize("algebra", ["real", "quaternion", "phm(4)"])
@pytest.mark.parametrize("kind, arguments, options", ALL)
def test_batches_may_be_empty(kind, arguments, options, algebra):
    layer, torchs, _ = with_torchs(kind, arguments, options, algebra)
    x = image(kind, layer.in_channels)[:0].requires_grad_()
    y = layer(x)
    assert y.shape == torchs(x).shape and y.shape[0] == 0
    y.sum().backward()
    assert x.grad.shape == x.shape and not any(weight.grad.any() for weight in layer.parameters())
    with torch.no_grad():
        assert layer.eval().forward_with_epilogue(x, activation="relu").shape == y.shape


def test_output_size_is_torchs():
    ours, theirs = nn.ConvTranspose2d(8, 8, 3, 2, 1), torch.nn.ConvTranspose2d(8, 8, 3, 2, 1)
    x = image("ConvTranspose2d")
    assert ours(x, output_size=(12, 14)).shape == theirs(x, output_size=(12, 14)).shape
    with pytest.raises(ValueError, match="output_size must be from 11 to 12 on axis 0, got 13"):
        ours(x, output_size=(13, 14))


# As networks for segmentation set them, which take dilation for stride.
def test_what_is_set_later_counts():
    theirs, ours = torch.nn.Conv2d(8, 12, 3, 2, 1), nn.Conv2d(8, 12, 3, 2, 1, algebra="real")
    with torch.no_grad():
        ours.F[0], ours.bias[:] = theirs.weight, theirs.bias
    x = image("Conv2d")
    for settings in (
        dict(stride=(1, 1), dilation=(2, 2), padding=(2, 2)),
        dict(padding="same"),
        dict(dilation=(2, 1)),
        dict(padding=(1, 0), stride=(2, 1)),
    ):
        for name, value in settings.items():
            setattr(theirs, name, value), setattr(ours, name, value)
        torch.testing.assert_close(ours(x), theirs(x))
    ours.dilation = 1
    assert ours.dilation == (1, 1)
    ours.padding = "same"
    with pytest.raises(ValueError, match="padding can be same only where the stride is 1, got 2"):
        ours(x)


@pytest.mark.parametrize("kind", ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose2d"])
def test_images_of_a_whole_model_are_asked_to_lie_channels_last(kind):
    model = torch.nn.Sequential(getattr(nn, kind)(8, 12, 3), torch.nn.Conv2d(3, 8, 3))
    x = image(kind)
    expected, held = model[0](x), id(model[0].F)
    for order in torch.channels_last, torch.contiguous_format:
        model.to(memory_format=order)
        assert id(model[0].F) == held and model[0].F.is_contiguous()
        torch.testing.assert_close(model[0](x), expected)
    model[0](x).sum().backward()
    expected = expected.detach()
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        for move in model.float, model.cpu, model.share_memory, model.double, model.float:
            assert id(move()[0].F) == held
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)
    torch.nn.utils.parametrize.register_parametrization(model[0], "F", torch.nn.Identity())
    moved = model.double().to(memory_format=torch.channels_last)
    torch.testing.assert_close(moved[0](x.double()).float(), expected)
    with pytest.raises(TypeError, match="input must be a tensor, got list"):
        model[0]([1])


def test_copies_and_compiled_ones_are_equal():
    layer = nn.Conv2d(8, 12, 3, padding=1, algebra="phm(4)")
    x = image("Conv2d")
    torch.testing.assert_close(copy.deepcopy(layer)(x), layer(x))
    torch.testing.assert_close(torch.compile(layer, backend="aot_eager", fullgraph=True)(x), layer(x))
    torch.testing.assert_close(torch.func.vmap(layer)(torch.stack([x, 2 * x]))[1], layer(2 * x))


def test_networks_of_torchs_layers_are_converted():
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3), torch.nn.Conv2d(8, 12, 3, 2, 1, padding_mode="reflect"), torch.nn.ConvTranspose2d(12, 8, 3, 2),
        torch.nn.Conv2d(8, 8, 3, groups=2),
    )  # fmt: skip
    net, report = quatrain.convert(net, "quaternion")
    assert [bool(line.skipped) for line in report.layers] == [True, False, False, True]
    assert "does not divide 3" in report.layers[0].skipped and "groups" in report.layers[3].skipped
    assert isinstance(net[1], nn.Conv2d) and isinstance(net[2], nn.ConvTranspose2d)
    assert net(torch.randn(2, 3, 9, 9)).shape[:2] == (2, 8)
    # What is hypercomplex already is found again.
    exact = torch.nn.Sequential(torch.nn.Conv2d(8, 12, 3), torch.nn.ConvTranspose2d(12, 8, 3))
    layers = [nn.Conv2d(8, 12, 3), nn.ConvTranspose2d(12, 8, 3)]
    with torch.no_grad():
        for real, layer in zip(exact, layers):
            real.weight.copy_(layer.weight)
    x = image("Conv2d")
    expected = exact(x)
    exact, report = quatrain.convert(exact, "quaternion")
    assert max(line.error for line in report.layers) < 1e-6
    torch.testing.assert_close(exact(x), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"])
def test_convert_keeps_what_only_ours_have(kind):
    own = {"initialiser": "he", "way": "factored", "winograd": "4x4"}
    layer, _ = quatrain.convert(getattr(nn, kind)(8, 12, 3, algebra="real", **own), "quaternion")
    assert layer.algebra == "quaternion" and {name: getattr(layer, name) for name in own} == own
    fresh, _ = quatrain.convert(getattr(nn, kind)(8, 12, 3, algebra="real", **own), "quaternion", fresh=True)
    assert fresh.initialiser == "he"


def test_a_transposed_convolution_takes_the_transforms_it_is_asked_for():
    layers = [nn.ConvTranspose2d(64, 64, 3, padding=1, way="factored", winograd=how) for how in ("none", "4x4")]
    layers[1].load_state_dict(layers[0].state_dict())
    with torch.no_grad():
        x = torch.randn(2, 64, 16, 16)
        plain, turned = (layer(x) for layer in layers)
    assert not torch.equal(plain, turned)  # rounded otherwise
    torch.testing.assert_close(plain, turned, rtol=1e-3, atol=1e-4)


def test_the_operator_finishes_values_as_the_layer_does():
    layer, x = nn.Conv2d(8, 12, 3, padding=1, bias=False), torch.randn(2, 8, 5, 5)
    scale, shift = torch.randn(2, 12)
    y = ops.convolution_with_epilogue(x, layer.F, scale, shift, activation="relu", algebra="quaternion", padding=1)
    torch.testing.assert_close(y, layer.forward_with_epilogue(x, scale, shift, activation="relu"))


@pytest.mark.parametrize(
    "make, words",
    [
        (
            lambda: nn.Conv2d(3, 4, 3),
            r'Conv2d: in_channels must be divisible by n = 4, got 3 \(nearest: 4; add channels, or give a first layer the algebra "real"\)$',
        ),
        (lambda: nn.Conv2d(8, 6, 3), r"Conv2d: out_channels must be divisible by n = 4, got 6 \(nearest: 4, 8\)$"),
        (lambda: nn.Conv2d(3, 4, 3, groups=2, algebra="real"), r"in_channels must be divisible by n \* groups = 2, got 3 \(nearest: 2, 4\)$"),
        (lambda: nn.Conv2d(8, 4, 3, groups=2), r"out_channels must be divisible by n \* groups = 8, got 4"),
        (lambda: nn.Conv2d(8, 4, 3, 2, "same"), "padding can be same only where the stride is 1, got 2"),
        (lambda: nn.Conv2d(8, 4, 3, padding="full"), "padding must be one of same, valid; got 'full'"),
        (lambda: nn.Conv2d(8, 4, (3, 3, 3)), "kernel_size must be a number or 2 of them"),
        (lambda: nn.Conv2d(8, 4, 3, padding_mode="mirror"), "padding_mode must be one of zeros"),
        (lambda: nn.ConvTranspose2d(8, 4, 3, winograd="f4"), "winograd must be one of auto, none, 2x2, 4x4; got 'f4'"),
        (lambda: nn.ConvTranspose2d(8, 4, 3, padding_mode="reflect"), "padding_mode must be zeros"),
        (lambda: nn.ConvTranspose2d(8, 4, 3, padding="same"), "padding must be a number of pixels, got 'same'"),
        (lambda: setattr(nn.Conv2d(8, 4, 3), "dilation", (1, 0)), "dilation must be at least 1, got 0"),
        (lambda: setattr(nn.Conv2d(8, 4, 3), "padding", "full"), "padding must be one of same, valid; got 'full'"),
        (lambda: nn.Conv2d(8, 4, 3)(torch.zeros(1, 4, 5, 5)), "8"),
        (lambda: nn.Conv2d(16, 16, 3.0), "Conv2d: kernel_size must be an int, got 3.0"),
        (lambda: nn.Conv2d(16, 16, [3, "a"]), "Conv2d: kernel_size must be an int, got 'a'"),
        (lambda: nn.Conv2d(16, 16, 3, stride="2"), "Conv2d: stride must be an int, got '2'"),
        (lambda: nn.ConvTranspose2d(16, 16, 3, output_padding=0.5), "ConvTranspose2d: output_padding must be an int, got 0.5"),
        (lambda: nn.ConvTranspose2d(8, 4, 3, padding=4)(image("Conv2d")), "the padding of 4 along spatial axis 0 leaves nothing of the result"),
        (lambda: nn.ConvTranspose1d(8, 4, 3)(torch.zeros(2, 8, 0)), r"x must have a pixel or more along each spatial axis, got \[2, 8, 0\]"),
    ],
)
def test_bad_arguments_are_one_sentence(make, words):
    with pytest.raises((ValueError, RuntimeError, TypeError), match=words):
        make()


def reflected(mode, padding):
    return nn.Conv2d(8, 4, 3, padding=padding, padding_mode=mode)


# A mode takes what it pads with from the image; torch's own refusals name neither the layer nor the option.
@pytest.mark.parametrize(
    "layer, sizes, words",
    [
        (reflected("reflect", (1, 5)), (2, 8, 6, 5), "Conv2d: with padding_mode reflect padding must be at most 4 on spatial axis 1 of 5 pixels, got 5"),
        (reflected("reflect", 1), (8, 1, 9), "must be at most 0 on spatial axis 0 of 1 pixels, got 1"),
        (reflected("circular", (1, 5)), (2, 8, 6, 4), "with padding_mode circular padding must be at most 4 on spatial axis 1 of 4 pixels, got 5"),
        (nn.Conv1d(8, 4, 8, padding="same", padding_mode="reflect"), (2, 8, 4), "must be at most 3 on spatial axis 0 of 4 pixels, got 4"),
        (nn.Conv3d(8, 4, 3, padding=(0, 0, 2), padding_mode="reflect"), (2, 8, 3, 3, 2), "at most 1 on spatial axis 2 of 2 pixels, got 2"),
        *(
            (layer, sizes, words)
            for layer in (*(reflected(mode, 1) for mode in ("reflect", "replicate", "circular")), nn.Conv2d(8, 4, 2, padding="same"))
            for sizes, words in (
                ((2, 8, 0, 9), r"x must have a pixel or more along each spatial axis, got \[2, 8, 0, 9\]"),
                ((2, 2, 8, 7, 7), r"x must have the shape \(batch, channels, height, width\)"),
                ((2, 4, 7, 7), "x must have in_channels = 8"),
            )
        ),
    ],
)
def test_impossible_images_are_refused_in_one_sentence(layer, sizes, words):
    for call in (layer, layer.forward_with_epilogue):
        with pytest.raises((ValueError, RuntimeError), match=words):
            call(torch.zeros(sizes))


def test_padding_may_take_all_that_there_is():
    for mode, padding, sizes in (("reflect", (1, 5), (2, 6)), ("circular", (1, 5), (1, 5)), ("replicate", (1, 5), (1, 1))):
        x = torch.randn(2, 8, *sizes)
        assert reflected(mode, padding)(x).shape == torch.nn.Conv2d(8, 4, 3, padding=padding, padding_mode=mode)(x).shape


@pytest.mark.parametrize("algebra", ["real", "quaternion", "wkp(2)"])
@pytest.mark.parametrize("kind, arguments, options", PLAIN + TURNED)
def test_epilogues_are_what_they_say(kind, arguments, options, algebra):
    groups = options.get("groups", 1)
    layer = getattr(nn, kind)(8 * groups, 12 * groups, *arguments, algebra=algebra, **options).eval()
    if layer.bias is not None:
        torch.nn.init.normal_(layer.bias)
    x, scale, shift = image(kind, 8 * groups), torch.randn(12 * groups), torch.randn(12 * groups)
    y = layer(x)
    residual, around = torch.randn_like(y), (12 * groups,) + (1,) * (y.dim() - 2)
    for batch in (x, x[0]):
        plain = layer(batch)
        assert layer._result_sizes(batch) == plain.shape
        added = residual if batch is x else residual[0]
        expected = (scale.view(around) * plain + shift.view(around) + added).relu()
        fused = layer.forward_with_epilogue(batch, scale, shift, added, "relu")
        torch.testing.assert_close(fused, expected, rtol=1e-4, atol=1e-5)
        with torch.no_grad():
            torch.testing.assert_close(layer.forward_with_epilogue(batch, scale, shift, added, "relu"), expected, rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(layer.forward_with_epilogue(batch), plain, rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(layer.forward_with_epilogue(batch, scale), scale.view(around) * plain, rtol=1e-4, atol=1e-5)
            tanh = layer.forward_with_epilogue(batch, shift=shift, activation="tanh")
            torch.testing.assert_close(tanh, (plain + shift.view(around)).tanh(), rtol=1e-4, atol=1e-5)


class WithEpilogue(torch.nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, *arguments):
        return self.layer.forward_with_epilogue(*arguments)


@pytest.mark.parametrize("algebra", ["quaternion", "phm(2)"])
@pytest.mark.parametrize("kind, activation", [("Conv1d", "tanh"), ("Conv2d", "sigmoid"), ("Conv3d", "identity"), ("ConvTranspose2d", "tanh")])
def test_epilogues_have_the_gradients_of_differences(kind, activation, algebra):
    layer = getattr(nn, kind)(4, 8, 2, algebra=algebra).double()
    torch.nn.init.normal_(layer.bias)
    x = image(kind, 4).double()[:1, ..., :3]
    y = layer(x)
    operands = [x, torch.randn(8).double(), torch.randn(8).double(), torch.randn_like(y), *layer.parameters()]
    operands = [operand.detach().requires_grad_() for operand in operands]

    def fused(x, scale, shift, residual, *parameters):
        named = dict(zip((f"layer.{name}" for name, _ in layer.named_parameters()), parameters, strict=True))
        return torch.func.functional_call(WithEpilogue(layer), named, (x, scale, shift, residual, activation))

    assert torch.autograd.gradcheck(fused, operands, fast_mode=True)
    assert torch.autograd.gradgradcheck(fused, operands, fast_mode=True)
    # Those of float32 are of other code.
    wanted = torch.autograd.grad(fused(*operands).square().sum(), operands)
    layer.float()
    floats = [operand.detach().float().requires_grad_() for operand in operands]
    for found, expected in zip(torch.autograd.grad(fused(*floats).square().sum(), floats), wanted, strict=True):
        torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-4)


def test_epilogues_have_gradients_and_compile():
    layer, norm = nn.Conv2d(8, 12, 3, padding=1, algebra="phm(4)"), torch.nn.BatchNorm2d(12).eval()
    x, residual = image("Conv2d"), torch.randn(2, 12, 6, 7)

    def fused(x):
        return layer.forward_with_epilogue(x, norm.weight, norm.bias, residual, "relu")

    def plain(x):
        return (layer(x) * norm.weight.view(-1, 1, 1) + norm.bias.view(-1, 1, 1) + residual).relu()

    parameters = [*layer.parameters(), *norm.parameters()]
    for one, other in zip(*(torch.autograd.grad(f(x).square().sum(), parameters) for f in (fused, plain)), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
    compiled = torch.compile(fused, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), plain(x), rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), plain(x), rtol=1e-4, atol=1e-5)
        with torch.autocast("cpu", torch.bfloat16):
            y = fused(x)
        assert y.dtype == torch.bfloat16
        torch.testing.assert_close(y.float(), plain(x), rtol=0.05, atol=0.05)
    for bias in (False, True):
        for given in ({"scale": torch.ones(8)}, {"shift": torch.ones(1)}):
            name = list(given)[0]
            with pytest.raises((ValueError, RuntimeError), match=f"{name} must have out_channels = 12 values, got"):
                nn.Conv2d(8, 12, 3, bias=bias).forward_with_epilogue(x, **given)
    with pytest.raises((ValueError, RuntimeError), match="relux"):
        layer.forward_with_epilogue(x, activation="relux")
