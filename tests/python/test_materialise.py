"""Networks written out in torch's layers: the same outputs, without the package."""

import copy
import subprocess
import sys

import pytest
import quatrain
import torch
from quatrain import models, nn

WIDE = torch.float64
CONVOLUTIONS = {
    "1d": (lambda o: nn.Conv1d(8, 16, 3, 2, 1, **o), (8, 9)),
    "2d": (lambda o: nn.Conv2d(8, 16, (3, 2), padding="same", dilation=2, padding_mode="circular", **o), (8, 7, 6)),
    "3d": (lambda o: nn.Conv3d(8, 16, 2, bias=False, **o), (8, 4, 3, 5)),
    "groups": (lambda o: nn.Conv2d(16, 32, 3, padding=1, groups=2, **o), (16, 5, 6)),
    "transposed": (lambda o: nn.ConvTranspose2d(8, 16, 3, 2, 1, 1, dilation=2, **o), (8, 4, 5)),
    "transposed groups": (lambda o: nn.ConvTranspose1d(16, 32, 3, groups=4, **o), (16, 5)),
}
RECURRENT = {
    "lstm": lambda o: nn.LSTM(8, 16, 2, batch_first=True, proj_size=8, **o),
    "both ways": lambda o: nn.GRU(8, 16, 2, bidirectional=True, direction_first=True, **o),
    "shared": lambda o: nn.RNN(8, 16, 2, bidirectional=True, direction_first=True, share_directions=True, nonlinearity="relu", **o),
    "one bias": lambda o: nn.GRU(8, 16, single_bias=True, **o),
}


def drawn(model):
    """With other biases and norms than those of the start."""
    with torch.no_grad():
        for name, tensor in (*model.named_parameters(), *model.named_buffers()):
            if "bias" in name or "mean" in name:
                tensor.normal_()
            elif "running_var" in name:
                tensor.uniform_(0.5, 2)
    return model.eval()


def is_torchs(model):
    return all(type(part).__module__.startswith("torch.") for part in model.modules())


def flat(result):
    return [result] if isinstance(result, torch.Tensor) else [tensor for part in result for tensor in flat(part)]


@pytest.mark.parametrize("algebra", ["quaternion", "phm(2)", "wkp(4)", "real"])
@pytest.mark.parametrize("kind", CONVOLUTIONS)
def test_convolutions(kind, algebra):
    make, sizes = CONVOLUTIONS[kind]
    layer = drawn(make({"algebra": algebra, "dtype": WIDE}))
    x, written = torch.randn(2, *sizes, dtype=WIDE), quatrain.materialise(layer)
    assert is_torchs(written) and type(written).__name__ == type(layer).__name__
    torch.testing.assert_close(written(x), layer(x))


@pytest.mark.parametrize("algebra", ["quaternion", "phm(2)", "phm(4, trained_rank=6)"])
@pytest.mark.parametrize("kind", RECURRENT)
def test_recurrent_layers(kind, algebra):
    layer = drawn(RECURRENT[kind]({"algebra": algebra, "dtype": WIDE}))
    x, written = torch.randn(4, 3, 8, dtype=WIDE, requires_grad=True), quatrain.materialise(layer)
    assert is_torchs(written)
    for one, other in zip(flat(written(x)), flat(layer(x)), strict=True):
        torch.testing.assert_close(one, other)
        torch.testing.assert_close(*(torch.autograd.grad(result.square().sum(), x, retain_graph=True)[0] for result in (one, other)))


@pytest.mark.parametrize("cell", [nn.LSTMCell, nn.GRUCell, nn.RNNCell])
def test_cells(cell):
    layer = drawn(cell(8, 16, algebra="quaternion", dtype=WIDE))
    x, written = torch.randn(3, 8, dtype=WIDE), quatrain.materialise(layer)
    for one, other in zip(flat(written(x)), flat(layer(x)), strict=True):
        torch.testing.assert_close(one, other)


def network():
    same = nn.Linear(16, 16, maps=2)
    body = torch.nn.Sequential(
        nn.Conv2d(4, 8, 3, bias=False), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), nn.ConvTranspose2d(8, 16, 2), torch.nn.BatchNorm2d(16)
    )  # fmt: skip
    pooled = torch.nn.Sequential(body, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())
    return drawn(torch.nn.Sequential(*pooled, same, torch.nn.Tanh(), same, nn.Linear(16, 4, algebra="phm(4)")))


def test_a_network_and_its_norms():
    model, x = network(), torch.randn(5, 4, 6, 6)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    model[6].requires_grad_(False)
    written, folded = quatrain.materialise(model), quatrain.materialise(model, fold_norms=True)
    assert is_torchs(written) and is_torchs(folded) and not written.training
    assert written[3] is written[5] and not written[6].weight.requires_grad and written[3].weight.requires_grad
    torch.testing.assert_close(written(x), model(x), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(folded(x), model(x), rtol=1e-5, atol=1e-5)
    assert sum(isinstance(part, torch.nn.BatchNorm2d) for part in written.modules()) == 2
    assert [type(part).__name__ for part in folded[0]] == ["Conv2d", "Identity", "ReLU", "ConvTranspose2d", "Identity"]
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    # The statistics of a norm in training mode are of each batch.
    assert isinstance(quatrain.materialise(model.train(), fold_norms=True)[0][1], torch.nn.BatchNorm2d)


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.Conv2d(8, 8, 3, algebra="phm(4)"),
        lambda: nn.Linear(8, 8),
        lambda: nn.LSTM(8, 8),
        lambda: nn.LSTM(8, 8, single_bias=True, bidirectional=True, direction_first=True),
        lambda: quatrain.convert(torch.nn.MultiheadAttention(8, 2), "quaternion")[0],
    ],
)
def test_what_is_frozen_stays_so(make):
    layer = make()
    for name, parameter in layer.named_parameters():
        parameter.requires_grad_("bias" in name)
    with torch.no_grad():
        written = quatrain.materialise(layer)
    for name, parameter in written.named_parameters():
        assert parameter.requires_grad == ("bias" in name) and parameter.is_leaf, name


def test_what_is_written_needs_no_package(tmp_path):
    model, x = network(), torch.randn(5, 4, 6, 6)
    written = quatrain.materialise(model, fold_norms=True)
    run_without_the_package(tmp_path, written, x, model(x))


def run_without_the_package(folder, written, x, y):
    torch.save([written, x, y.detach()], folder / "model.pt")
    code = (
        "import sys, torch; sys.modules['quatrain'] = None\n"
        "model, x, y = torch.load(sys.argv[1], weights_only=False)\n"
        "torch.testing.assert_close(model(x), y, rtol=1e-4, atol=1e-4)"
    )
    subprocess.run([sys.executable, "-c", code, folder / "model.pt"], check=True)


def test_norms_behind_linear_layers():
    model = torch.nn.Sequential(
        nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU(), nn.Linear(16, 8, bias=False, algebra="phm(2)"),
        torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 4), torch.nn.BatchNorm1d(4),
    )  # fmt: skip
    model, x = drawn(model), torch.randn(5, 8)
    with torch.no_grad():
        model[1].weight.uniform_(0.5, 2)
    folded = quatrain.materialise(model, fold_norms=True)
    torch.testing.assert_close(folded(x), model(x), rtol=1e-4, atol=1e-5)
    assert [type(part).__name__ for part in folded] == ["Linear", "Identity", "ReLU", "Linear", "Identity", "Linear", "Identity"]
    # Behind rows of several positions the norm of 3 is of the positions, not of the features.
    model = drawn(torch.nn.Sequential(nn.Linear(8, 16), torch.nn.BatchNorm1d(3)))
    folded, x = quatrain.materialise(model, fold_norms=True), torch.randn(2, 3, 8)
    assert isinstance(folded[1], torch.nn.BatchNorm1d)
    torch.testing.assert_close(folded(x), model(x), rtol=1e-4, atol=1e-5)
    model.train()
    assert isinstance(quatrain.materialise(model, fold_norms=True)[1], torch.nn.BatchNorm1d)


@pytest.mark.parametrize(
    "options", [{}, {"batch_first": True, "bias": False}, {"kdim": 8, "vdim": 12}, {"add_bias_kv": True, "add_zero_attn": True}]
)
def test_torchs_attention_is_torchs_again(options):
    real = torch.nn.MultiheadAttention(16, 4, **options)
    with torch.no_grad():
        for parameter in real.parameters():
            parameter.normal_(std=0.3)
    opened, _ = quatrain.convert(copy.deepcopy(real), "quaternion", where=lambda name, layer: name != "k_proj")
    opened.requires_grad_(False)
    written = quatrain.materialise(opened)
    assert type(written) is torch.nn.MultiheadAttention and written.state_dict().keys() == real.state_dict().keys()
    assert not any(parameter.requires_grad for parameter in written.parameters())
    x = [torch.randn(3, 5, width) for width in (16, real.kdim, real.vdim)]
    for one, other in zip(written(*x), opened(*x), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    same, _ = quatrain.convert(copy.deepcopy(real), "real")
    for name, tensor in quatrain.materialise(same).state_dict().items():
        torch.testing.assert_close(tensor, real.state_dict()[name], msg=name)


def test_torchs_transformers_are_torchs_again():
    model = torch.nn.Transformer(16, 4, 1, 1, 32, batch_first=True, dropout=0.0)
    model, _ = quatrain.convert(model, "quaternion")
    written = quatrain.materialise(model.eval())
    x, y = torch.randn(2, 5, 16), torch.randn(2, 3, 16)
    assert is_torchs(written)
    torch.testing.assert_close(written(x, y), model(x, y), rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        torch.testing.assert_close(written(x, y), model(x, y), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("fold", [False, True])
@pytest.mark.parametrize("options", [{}, {"residual": "phydi", "depth": 50}, {"residual": "code"}, {"residual": "fixup"}])
def test_resnets(tmp_path, options, fold):
    net = drawn(models.ResNet(4, 5, widths=(8, 8, 16, 16), algebra="phm(4)", **options))
    with torch.no_grad():
        for parameter in net.parameters():
            if parameter.dim() == 0:
                parameter.uniform_(0.3, 1)
            elif not parameter.any():  # fixup's
                parameter.normal_(std=0.1)
    net.register_buffer("pixel_mean", torch.rand(3))
    x, written = torch.randn(2, 4, 8, 8), quatrain.materialise(net, fold_norms=fold)
    assert not any(type(part).__module__.startswith("quatrain") or part.training for part in written.modules())
    assert isinstance(written.blocks.get_submodule("0.conv1"), torch.nn.Conv2d) and torch.equal(written.pixel_mean, net.pixel_mean)
    assert any(isinstance(part, torch.nn.BatchNorm2d) for part in written.modules()) == (not fold and options != {"residual": "fixup"})
    for gradients in (True, False):
        with torch.set_grad_enabled(gradients):
            torch.testing.assert_close(written(x), net(x), rtol=1e-4, atol=1e-4)
    if fold:
        run_without_the_package(tmp_path, written, x, net(x))
    # In training mode it is the network that trains.
    whole = torch.nn.Sequential(net.train(), torch.nn.ReLU())
    torch.testing.assert_close(quatrain.materialise(whole)(x), whole(x), rtol=1e-4, atol=1e-4)


def test_layers_that_torch_has_not():
    hooked = nn.Linear(8, 8)
    hooked.register_forward_hook(lambda *given: None)
    for layer, reason in {
        nn.MultiheadAttention(8, 2): "is a MultiheadAttention, which torch.nn does not have",
        nn.WhiteningNorm(8): "is a WhiteningNorm, which torch.nn does not have",
        nn.LSTM(8, 8, bidirectional=True): "joins its directions inside each component",
        nn.LSTM(8, 8, recurrent_dropout=0.1): "has recurrent_dropout",
        nn.LSTMCell(8, 8, printed=True): "has the cell of printed = True",
        hooked: "has hooks",
    }.items():
        with pytest.raises(ValueError, match=f"^materialise: '0' {reason}"):
            quatrain.materialise(torch.nn.Sequential(layer))


def test_a_block_in_two_places_stays_one():
    block = drawn(models.ResNetBlock(8, 8, residual="code"))
    torch.nn.init.constant_(block.alpha, 0.5)
    model, x = torch.nn.Sequential(block, torch.nn.Sequential(block)), torch.randn(2, 8, 5, 5)
    written = quatrain.materialise(model)
    assert written[0] is written[1][0] and isinstance(written[0].conv2, torch.nn.Conv2d)
    torch.testing.assert_close(written(x), model(x), rtol=1e-4, atol=1e-5)
    block.register_forward_hook(lambda *given: None)
    with pytest.raises(ValueError, match="^materialise: '0' has hooks"):
        quatrain.materialise(model)
