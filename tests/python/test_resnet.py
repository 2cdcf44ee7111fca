"""ResNets in Python: PHYDI's counts, the C++ model of a run, and every way through a network gives the same."""

import copy
import os
import subprocess

import pytest
import quatrain
import torch
from quatrain import nn
from quatrain.models import ResNet, ResNetBlock
from test_pages import write_png

PROGRAM = os.environ.get("QUATRAIN_PROGRAM")
COUNTS = {
    1: (11_173_962, 23_520_842, 58_156_618),
    2: (5_594_794, 11_797_938, 29_165_794),
    3: (3_635_914, 7_562_149, 17_775_463),
    4: (2_805_962, 5_938_954, 14_678_154),
}


def count(depth, n, kind="phm", **options):
    widths = (60, 120, 240, 516) if n == 3 else (64, 128, 256, 512)
    algebra = "real" if n == 1 else f"{kind}({n})"
    net = ResNet(4 if n in (2, 4) else 3, 10, depth=depth, widths=widths, algebra=algebra, device="meta", **options)
    return sum(parameter.numel() for parameter in net.parameters()), net


@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize("place, depth", [(0, 18), (1, 50), (2, 152)])
def test_counts_are_phydis(n, place, depth):
    total, net = count(depth, n)
    assert total == COUNTS[n][place]
    assert count(depth, n, residual="phydi")[0] == total + (8, 16, 50)[place]
    if n > 1:
        convolutions = sum(isinstance(part, nn.Conv2d) for part in net.modules())
        assert count(depth, n, "wkp")[0] == total + n * convolutions


@pytest.mark.parametrize("depth, total", [(18, 11_689_512), (50, 25_557_032)])
def test_the_large_stem_is_hes(depth, total):
    """With a thousand classes it is the network of He et al., whose counts torchvision prints."""
    net = ResNet(3, 1000, depth=depth, stem="large", algebra="real", device="meta")
    assert sum(parameter.numel() for parameter in net.parameters()) == total
    assert net.stem.kernel_size == (7, 7) and net.stem.stride == (2, 2)
    with pytest.raises(ValueError, match="stem must be one of small, large"):
        ResNet(3, 10, stem="huge", algebra="real")


def drawn(net):
    """With other norms, alphas and scalars than those of the start."""
    with torch.no_grad():
        for tensor in net.parameters():
            if tensor.dim() < 2:
                tensor += 0.3 + torch.rand_like(tensor) / 2
            elif not tensor.any():  # fixup's
                tensor.normal_(std=0.1)
        for part in net.modules():
            if isinstance(part, torch.nn.BatchNorm2d):
                part.running_mean.normal_()
                part.running_var.uniform_(0.5, 2)
    return net.eval()


def assert_near(found, expected):
    """Relative to the largest: numbers grow from block to block."""
    assert (found - expected).abs().max() < 1e-4 * expected.abs().max()


def small(algebra="quaternion", **options):
    return drawn(ResNet(4, 5, widths=options.pop("widths", (8, 8, 16, 16)), algebra=algebra, **options))


@pytest.mark.parametrize("algebra", ["real", "quaternion", "phm(4)", "wkp(4)", "phm(4, trained_rank=6)"])
@pytest.mark.parametrize("depth", [18, 50])
@pytest.mark.parametrize("residual", ["plain", "phydi", "code", "fixup"])
@pytest.mark.parametrize("bias", [False, True])
def test_answers_are_the_same_with_and_without_gradients(residual, depth, algebra, bias):
    """Without gradients norms, sums and activations ride on the convolutions."""
    net, x = small(algebra, residual=residual, depth=depth, bias=bias), torch.randn(2, 4, 8, 8)
    assert any(name.endswith("conv1.bias") for name, _ in net.named_parameters()) == bias
    expected = net(x).detach()
    assert expected.std() > 1e-3
    with torch.no_grad():
        assert_near(net(x), expected)
        assert_near(net.double()(x.double()), expected.double())


@pytest.mark.parametrize("residual", ["plain", "phydi", "code", "fixup"])
def test_answers_of_wide_networks_are_the_same_too(residual):
    """Of so many channels that the factors are used."""
    net, x = small(residual=residual, widths=(48, 48, 96, 96)), torch.randn(2, 4, 8, 8)
    expected = net(x).detach()
    with torch.no_grad():
        assert_near(net(x), expected)


def test_each_layer_is_one_operator_in_eval_mode():
    net, called = small(), []

    class Calls(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            called.append(str(func))
            return func(*args, **(kwargs or {}))

    with torch.no_grad(), Calls():
        net(torch.randn(1, 4, 8, 8))
    convolutions = sum(isinstance(part, nn.Conv2d) for part in net.modules())
    assert called.count("quatrain.convolution_with_epilogue.default") == convolutions
    assert not any("batch_norm" in name or "relu" in name for name in called)


@pytest.mark.parametrize("residual", ["plain", "fixup"])
def test_hooks_get_what_a_part_made(residual):
    net, x = small(residual=residual), torch.randn(2, 4, 8, 8)
    part = net.blocks[0].conv1 if residual == "fixup" else net.blocks[0].norm1
    stem = net.stem if residual == "fixup" else net.stem_norm
    kept = []
    for one in (part, stem):
        one.register_forward_hook(lambda layer, given, y: kept.append(y))
    with torch.no_grad():
        net(x)
    assert all(y.min() < 0 for y in kept)  # before the activation
    for one in (part, stem):
        one.register_full_backward_hook(lambda layer, *grads: kept.append(grads[1][0]))
    net(x).sum().backward()
    assert len(kept) == 6


def test_what_was_hooked_or_replaced_is_called():
    net, x = small(), torch.randn(1, 4, 8, 8)
    with torch.no_grad():
        before, seen = net(x), []
        handle = net.blocks[0].norm1.register_forward_hook(lambda layer, given, y: seen.append(y.shape))
        torch.testing.assert_close(net(x), before, rtol=1e-4, atol=1e-5)
        assert seen == [torch.Size([1, 8, 8, 8])]
        handle.remove()
        handle = torch.nn.modules.module.register_module_forward_hook(lambda layer, given, y: seen.append(type(layer)))
        net(x)
        handle.remove()
        assert seen.count(nn.Conv2d) == sum(isinstance(part, nn.Conv2d) for part in net.modules())
        net.blocks[1].conv1.forward = lambda x: 0 * x  # as adapters and profilers do
        assert not torch.allclose(net(x), before, rtol=1e-3, atol=1e-3)
        del net.blocks[1].conv1.forward
        net.blocks[0].norm1 = torch.nn.Identity()
        assert not torch.allclose(net(x), before, rtol=1e-3, atol=1e-3)
        net.stem_norm.train()  # takes the batch's statistics, and keeps them
        means = net.stem_norm.running_mean.clone()
        net(x)
        assert not torch.equal(net.stem_norm.running_mean, means)


@pytest.mark.parametrize("residual", ["plain", "fixup"])
def test_mapped_and_traced_without_gradients(residual):
    net, x = small(residual=residual), torch.randn(3, 4, 8, 8)
    with torch.no_grad():
        expected = net(x)
        assert_near(torch.func.vmap(lambda one: net(one[None])[0])(x), expected)
        assert_near(torch.jit.trace(net, x, check_tolerance=1e-3)(x), expected)
    with torch.enable_grad():
        traced = torch.jit.trace(net, x, check_tolerance=1e-3)
    assert_near(traced(x), expected)


def test_norms_that_cannot_ride_are_called():
    """A norm without a weight, or one that takes the batch's statistics in eval mode too; and a shortcut without a norm."""
    block, x = drawn(ResNetBlock(8, 8, 2)), torch.randn(2, 8, 6, 6)
    norms = [torch.nn.BatchNorm2d(8, affine=False), torch.nn.BatchNorm2d(8, track_running_stats=False), torch.nn.Identity()]
    for place in ("norm1", "norm2", "shortcut_norm"):
        for norm in norms:
            setattr(block, place, norm.eval())
            expected = block(x).detach()
            with torch.no_grad():
                assert_near(block(x), expected)
    block = drawn(ResNetBlock(8, 8, 2))
    block.shortcut_norm = None
    expected = block(x).detach()
    with torch.no_grad():
        assert_near(block(x), expected)


@pytest.mark.parametrize("residual", ["plain", "phydi", "code", "fixup"])
def test_networks_leave_the_meta_device(residual):
    options = dict(widths=(8, 8, 16, 16), residual=residual, algebra="phm(4)")
    net = ResNet(4, 5, **options, device="meta").to_empty(device="cpu")
    for tensor in net.state_dict().values():
        tensor.fill_(9)
    net.apply(lambda part: part.reset_parameters() if hasattr(part, "reset_parameters") else None)
    for name, wanted in ResNet(4, 5, **options).state_dict().items():
        found = net.state_dict()[name]
        if wanted.dim() < 2 and name != "head.bias":  # what is not drawn
            assert torch.equal(found, wanted), name
        elif wanted.numel() > 500:
            assert found.std().item() == pytest.approx(wanted.std().item(), rel=0.2), name


@pytest.mark.parametrize("residual", ["phydi", "code"])
def test_each_block_is_its_shortcut_at_the_start(residual):
    x = torch.randn(2, 8, 6, 6)
    block = ResNetBlock(8, 8, residual=residual)
    assert torch.equal(block(x), x)
    block = ResNetBlock(8, 8, 2, depth=50, residual=residual)
    assert torch.equal(block(x), block.shortcut_norm(block.shortcut(x)))
    assert torch.equal(ResNetBlock(8, 8, residual="fixup")(x), x.relu())


@pytest.mark.parametrize("options", [{}, {"residual": "phydi", "norm": "whitening"}, {"residual": "fixup"}, {"residual": "code"}])
def test_networks_learn(options):
    net = ResNet(4, 5, widths=(8, 8, 16, 16), algebra="phm(4)", **options)
    x, labels, losses = torch.randn(20, 4, 8, 8), torch.arange(20) % 5, []
    optimizer = torch.optim.Adam(net.parameters(), 3e-3)
    for _ in range(15):
        loss = torch.nn.functional.cross_entropy(net(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]
    assert all(parameter.grad is not None for parameter in net.parameters())


@pytest.mark.parametrize("residual", ["plain", "fixup"])
@pytest.mark.parametrize("gradients", [False, True])
def test_compiled_exported_and_cast(residual, gradients):
    torch._dynamo.reset()
    net, x = small("phm(4)", residual=residual), torch.randn(2, 4, 8, 8)
    with torch.set_grad_enabled(gradients):
        y = net(x)
        compiled = torch.compile(net, backend="aot_eager", fullgraph=True)
        torch.testing.assert_close(compiled(x), y, rtol=1e-4, atol=1e-5)
        exported = torch.export.export(net, (x,))
        torch.testing.assert_close(exported.module()(x), y, rtol=1e-4, atol=1e-5)
        rides = any("convolution_with_epilogue" in str(node.target) for node in exported.graph.nodes)
        assert rides != gradients
        with torch.autocast("cpu", torch.bfloat16):
            cast = net(x)
        assert cast.dtype == torch.bfloat16
        torch.testing.assert_close(cast.float(), y, rtol=0.1, atol=0.1 * y.abs().max().item())
    assert net(x.to(memory_format=torch.channels_last)).equal(net(x))
    torch.testing.assert_close(copy.deepcopy(net)(x), net(x))
    assert_near(torch.func.vmap(net)(torch.stack([x, 2 * x]))[1], net(2 * x))
    dynamic = torch.export.export(net, (x,), dynamic_shapes=({0: torch.export.Dim("batch", min=1, max=64)},))
    larger = torch.randn(7, 4, 8, 8)
    assert_near(dynamic.module()(larger), net(larger))


def test_real_networks_are_converted():
    net = ResNet(4, 5, widths=(8, 8, 16, 16), algebra="real")
    net, report = quatrain.convert(net, "quaternion", where=lambda name, layer: name != "head")
    assert report.converted == 20 and net.blocks[2].shortcut.algebra == "quaternion"
    x = torch.randn(2, 4, 8, 8)
    expected = net.eval()(x).detach()
    with torch.no_grad():
        torch.testing.assert_close(net(x), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: ResNet(4, 5, depth=20), "ResNet: depth must be one of 18, 34, 50, 101, 152, got 20"),
        (lambda: ResNet(3, 5, algebra="phm(3)"), r"ResNet: widths must be divisible by n = 3, got 64 \(nearest: 63, 66\)"),
        (lambda: ResNet(3, 5), r"ResNet: in_channels must be divisible by n = 4, got 3 \(nearest: 4; add channels, or take real_stem\)$"),
        (lambda: ResNet(4, 5, widths=(8, 8)), "widths must have 4 numbers, one for each stage, got 2"),
        (lambda: ResNet(4, 0), "classes must be at least 1, got 0"),
        (lambda: ResNet(4, 5, residual="plane"), "residual must be one of plain, phydi, code, fixup; got 'plane'"),
        (lambda: ResNet(4, 5, norm="layer"), "norm must be one of batch, whitening; got 'layer'"),
        (lambda: small()(torch.zeros(1, 3, 8, 8)), r"x must have the shape \(images, 4, height, width\), got \[1, 3, 8, 8\]"),
    ],
)
def test_bad_arguments_are_one_sentence(make, words):
    with pytest.raises(ValueError, match=words):
        make()


SMALL = ["shapes.train=60", "shapes.dev=20", "shapes.test=20", "train.steps=2", "train.batch=10", "train.threads=1", "augmentation.flip=false"]


def run_of(folder, **settings):
    done = subprocess.run(
        [PROGRAM, "train", "shapes", "--out", folder, *(part for one in SMALL for part in ("--set", one))]
        + [part for key, value in settings.items() for part in ("--set", f"model.{key}={value}")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return quatrain.load(folder)


RUNS = [
    {"algebra": "real"},
    {"algebra": "quaternion", "residual": "phydi", "depth": 50},
    {"algebra": "phm(4)", "residual": "code"},
    {"algebra": "phm(4)", "depth": 50, "norm": "whitening"},
    {"algebra": "quaternion", "norm": "whitening", "residual": "phydi", "real_stem": "true"},
    {"algebra": "quaternion", "residual": "fixup", "real_stem": "true", "winograd": "none"},
    {"algebra": "quaternion", "stem": "large", "residual": "phydi"},
    {"algebra": "wkp(2)", "residual": "fixup", "depth": 50, "initialiser": "glorot"},
]


@pytest.mark.skipif(not PROGRAM, reason="QUATRAIN_PROGRAM names no program")
@pytest.mark.parametrize("settings", RUNS, ids=lambda settings: "-".join(map(str, settings.values())))
def test_the_model_of_a_run(tmp_path, settings):
    run = run_of(tmp_path / "run", widths="8 8 16 16", **settings)
    assert run.kind == "images" and len(run.labels) == 10 and run.labels[0]
    net = ResNet.from_run(run)
    assert not net.training and {n: t.shape for n, t in net.named_parameters()} == {n: t.shape for n, t in run.model.named_parameters()}
    assert net.state_dict().keys() == run.model.state_dict().keys()
    x = torch.randn(3, net.in_channels, 32, 32)
    torch.testing.assert_close(net(x), run.model(x), rtol=1e-5, atol=1e-5)
    with torch.no_grad():
        torch.testing.assert_close(net(x), run.model(x), rtol=1e-5, atol=1e-5)
    # Another network's weights, by their file, which names the algebras.
    other = ResNet.from_run(run)
    with torch.no_grad():
        other.head.bias.add_(1)
    quatrain.load_model(other, tmp_path / "run/best/model.safetensors")
    assert all(torch.equal(one, two) for one, two in zip(other.state_dict().values(), net.state_dict().values()))


@pytest.mark.skipif(not PROGRAM, reason="QUATRAIN_PROGRAM names no program")
def test_the_program_reads_what_python_trained(tmp_path):
    run = run_of(tmp_path / "run", widths="8 8 8 8")
    net = ResNet.from_run(run)
    with torch.no_grad():
        net.head.bias[3] = 1e3  # always the fourth class
    quatrain.save_model(net, tmp_path / "run/best/model.safetensors")
    subprocess.run([PROGRAM, "check", tmp_path / "run", "--accept"], check=True, capture_output=True)
    again = quatrain.load(tmp_path / "run")
    assert again.model(torch.randn(2, 4, 32, 32)).argmax(1).tolist() == [3, 3]
    assert not torch.equal(run.model.head.bias, net.head.bias)  # it is a copy


@pytest.mark.skipif(not PROGRAM, reason="QUATRAIN_PROGRAM names no program")
def test_answers_are_the_programs(tmp_path):
    """A pixel is given as (pixel - mean) / deviation, behind a zero."""
    run = run_of(tmp_path / "run", widths="8 8 8 8")
    net, colour = ResNet.from_run(run), (200, 40, 90)
    write_png(tmp_path / "one.png", 32, colour)
    pixels = (torch.tensor(colour) / 255 - net.pixel_mean) / net.pixel_deviation
    x = torch.cat([torch.zeros(1), pixels.float()]).view(1, 4, 1, 1).expand(1, 4, 32, 32)
    with torch.no_grad():
        share, best = net(x).softmax(1).max(1)
    name, probability = run.predict([str(tmp_path / "one.png")])[0].split("\t")
    assert name == run.labels[best] and abs(float(probability) - share.item()) < 1e-4


@pytest.mark.skipif(not PROGRAM, reason="QUATRAIN_PROGRAM names no program")
def test_converted_runs_are_loaded(tmp_path):
    run_of(tmp_path / "run", algebra="real", widths="8 8 8 8")
    done = subprocess.run([PROGRAM, "convert", tmp_path / "run", tmp_path / "out", "--algebra", "quaternion"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    run = quatrain.load(tmp_path / "out")
    net, x = ResNet.from_run(run), torch.randn(2, 3, 32, 32)
    assert net.stem.algebra == "real" and net.blocks[0].conv1.algebra == "quaternion"
    torch.testing.assert_close(net(x), run.model(x), rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(not PROGRAM, reason="QUATRAIN_PROGRAM names no program")
def test_runs_of_other_kinds_are_refused(tmp_path):
    with pytest.raises(TypeError, match="run must be what quatrain.load gives, got str"):
        ResNet.from_run("run")
    subprocess.run([PROGRAM, "train", "hamilton", "--out", tmp_path / "run", "--set", "train.steps=2"], check=True, capture_output=True)
    with pytest.raises(ValueError, match="ResNet.from_run: the run must be of the kind images, got regression"):
        ResNet.from_run(quatrain.load(tmp_path / "run"))
