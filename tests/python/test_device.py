"""Operators, layers and a model on a device, beside the CPU. scripts/device_tests runs these where there is one."""

import copy
import os

import pytest
import torch
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

import quatrain
from quatrain import nn, ops
from quatrain.models import ResNet

DEVICE = os.environ.get("QUATRAIN_TEST_DEVICE", "")
pytestmark = [
    pytest.mark.device,
    pytest.mark.skipif(not DEVICE, reason="needs a device: scripts/device_tests runs it where there is one"),
]
ALGEBRAS = ["real", "quaternion", "octonion", "phm(4)", "wkp(4)", "clifford(2,1)"]


@pytest.fixture(autouse=True)
def exact_products():
    """No TF32, whose products have ten bits: torch has it off for matrices and on for convolutions."""
    matrices, convolutions = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    yield
    torch.set_float32_matmul_precision(matrices)
    torch.backends.cudnn.allow_tf32 = convolutions


class Called(torch.nn.Module):
    """What ``function``, perhaps of a module before the inputs, gives: every tensor of a result of several, in one row."""

    def __init__(self, function, *module):
        super().__init__()
        self.function, self.modules_before = function, torch.nn.ModuleList(module)

    def forward(self, *inputs):
        parts = list(_tensors(self.function(*self.modules_before, *inputs)))
        assert all(part.device == inputs[0].device for part in parts)
        return torch.cat([part.reshape(-1) for part in parts])


def _tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, PackedSequence):
        yield value.data
    elif value is not None:
        for part in value:
            yield from _tensors(part)


def both(module, *inputs, dtype=None):
    """Outputs and gradients of a module, on the CPU and on the device, all on the CPU."""
    results = []
    for device in ("cpu", DEVICE):
        own = copy.deepcopy(module).to(device)
        x = [i.detach().to(device).requires_grad_(i.is_floating_point()) for i in inputs]
        with torch.autocast(torch.device(device).type, dtype=dtype or torch.bfloat16, enabled=dtype is not None):
            y = own(*x)
        assert y.device.type == torch.device(device).type
        # Not the sum of squares, which a norm at the end makes constant.
        direction = torch.randn(y.shape, generator=torch.Generator().manual_seed(1)).to(device)
        (y.float() * direction).sum().backward()
        grads = [i.grad for i in x if i.grad is not None] + [p.grad for p in own.parameters() if p.grad is not None]
        results.append([y.detach().float().cpu()] + [g.float().cpu() for g in grads])
    return results


def assert_near(results, tolerance):
    here, there = results
    assert len(here) == len(there) > 1
    rounding = 1e-5 * max(a.norm() for a in here)
    for a, b in zip(here, there):
        if a.norm() <= rounding:  # a gradient that is zero, such as that of a key's bias: all of it is rounding
            assert b.norm() <= rounding
        else:
            assert (a - b).norm() <= tolerance * a.norm() + 1e-6


@pytest.mark.parametrize("way", ["auto", "factored", "mixed", "materialised"])
@pytest.mark.parametrize("algebra", ALGEBRAS)
def test_linear_and_its_gradients(algebra, way):
    if (way, algebra) == ("factored", "wkp(4)") or (way, algebra) == ("factored", "phm(4)"):
        pytest.skip("a learned algebra has no factors before a search")
    assert_near(both(nn.Linear(32, 48, algebra=algebra, way=way), torch.randn(5, 32)), 1e-4)


@pytest.mark.parametrize("way", ["factored", "mixed", "materialised"])
def test_the_operator_in_each_way(way):
    S, x = torch.randn(4, 6, 5), torch.randn(7, 20)
    here = ops.linear(x, S, algebra="quaternion", way=way)
    there = ops.linear(x.to(DEVICE), S.to(DEVICE), algebra="quaternion", way=way)
    torch.testing.assert_close(there.cpu(), here, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("algebra", ALGEBRAS)
def test_linear_under_autocast(algebra):
    layer = nn.Linear(32, 48, algebra=algebra)
    assert layer.to(DEVICE)(torch.randn(2, 32, device=DEVICE)).dtype == torch.float32
    with torch.autocast(torch.device(DEVICE).type, dtype=torch.bfloat16):
        assert layer(torch.randn(2, 32, device=DEVICE)).dtype == torch.bfloat16
    assert_near(both(nn.Linear(32, 48, algebra=algebra), torch.randn(5, 32), dtype=torch.bfloat16), 3e-2)


@pytest.mark.parametrize("attention", ["componentwise", "real"])
@pytest.mark.parametrize("algebra", ["real", "quaternion", "octonion"])
def test_encoder_layer_with_padding(algebra, attention):
    layer = nn.TransformerEncoderLayer(32, 2, feed_forward=64, algebra=algebra, attention=attention, dropout=0.0)
    x, padding = torch.randn(3, 7, 32), torch.zeros(3, 7, dtype=torch.bool)
    padding[1, 4:] = True
    assert_near(both(layer, x, padding), 1e-3)


def test_dropout_on_the_device_drops_its_share():
    x = torch.ones(64, 512, device=DEVICE)
    layer = nn.Dropout(0.25, n=4)
    kept = (layer(x) != 0).float().mean().item()
    assert abs(kept - 0.75) < 0.02


def words_of(texts, length, *lengths):
    padding = torch.zeros(texts, length, dtype=torch.bool)
    for text, words in enumerate(lengths):
        padding[text, words:] = True
    return padding


PADDING, SHORT = words_of(3, 7, 7, 2, 1), words_of(3, 5, 3, 5, 1)
A, B = torch.randn(3, 7, 4, 2, 3), torch.randn(3, 5, 4, 2, 3)
# Operators that stand alone, by name: what is called, and with what.
OPERATORS = {
    "hamilton_product": (lambda a, b: ops.hamilton_product(a, b, "quaternion"), torch.randn(5, 12), torch.randn(5, 12)),
    "conjugate": (lambda a: ops.hypercomplex_conjugate(a, "octonion"), torch.randn(5, 16)),
    "norm": (lambda a: ops.hypercomplex_norm(a, "quaternion"), torch.randn(5, 12)),
    "matching": (lambda a, b: ops.hypercomplex_matching(a, b, "quaternion", 4), torch.randn(5, 12), torch.randn(5, 12)),
    "matching of real numbers": (lambda a, b: ops.hypercomplex_matching(a, b, "real", 4), torch.randn(5, 12), torch.randn(5, 12)),
    "alignment": (lambda *x: ops.hypercomplex_alignment(*x, "quaternion"), A, B, PADDING, SHORT),
    "attention": (lambda q, k, v, p: ops.hypercomplex_attention(q, k, v, "quaternion", p), A, B, B + 1, SHORT),
    "attention of keys and queries": (
        lambda q, k, v: ops.hypercomplex_attention(q, k, v, "quaternion", scale=1.0, order="key_query"), A, B, B + 1
    ),
    "causal attention": (lambda x: ops.hypercomplex_attention(x, x, x, "quaternion", causal=True), A),
    "real attention": (lambda q, k, v, p: ops.hypercomplex_attention(q, k, v, "real", p), A, B, B + 1, SHORT),
    "attention under a mask": (
        lambda q, k, v, m: ops.hypercomplex_attention(q, k, v, "quaternion", mask=m), A, B, B + 1, torch.randn(7, 5)
    ),
    "attention with weights": (
        lambda q, k, v, p: ops.hypercomplex_attention_with_weights(q, k, v, "quaternion", p), A, B, B + 1, SHORT
    ),
    "activation": (lambda x: ops.split_activation(x, "gelu"), torch.randn(5, 12)),
    "layer norm": (lambda x, w, b: ops.hypercomplex_layer_norm(x, w, b, 4), torch.randn(5, 12), torch.randn(12), torch.randn(12)),
    "masked mean": (ops.masked_mean, torch.randn(3, 7, 12), PADDING),
    "heads": (lambda x: ops.cut_heads(x, 2, 4, 3), torch.randn(3, 7, 72)),
    "materialise": (lambda S: ops.materialise(S, "quaternion"), torch.randn(4, 3, 2)),
    "rows of words": (ops.rows_of_words, torch.randn(2, 4, 6), torch.tensor([0, 2, 5])),
    "places of words": (lambda x, i: ops.places_of_words(x, i, 2, 4), torch.randn(1, 3, 6), torch.tensor([0, 2, 5])),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_that_stand_alone(name):
    function, *inputs = OPERATORS[name]
    assert_near(both(Called(function), *inputs), 1e-4)


@pytest.mark.parametrize("attention", ["componentwise", "real"])
@pytest.mark.parametrize("norm", ["post", "pre", "phydi"])
def test_decoder_layer_with_padding(attention, norm):
    layer = nn.TransformerDecoderLayer(32, 2, feed_forward=64, attention=attention, norm=norm, dropout=0.0)
    assert_near(both(layer, torch.randn(3, 5, 32), torch.randn(3, 7, 32), SHORT, PADDING), 1e-3)


@pytest.mark.parametrize("algebra", ALGEBRAS)
def test_embedding_and_its_scores(algebra):
    layer = nn.Embedding(16, 32, algebra=algebra)
    tokens = torch.randint(16, (3, 5))
    assert_near(both(Called(lambda e, t: (e(t), e.scores(e(t))), layer), tokens), 1e-4)


@pytest.mark.parametrize("algebra", ["real", "quaternion", "phm(4)", "wkp(4)"])
@pytest.mark.parametrize("cell", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers(cell, algebra):
    layer = getattr(nn, cell)(16, 24, 2, algebra=algebra, bidirectional=True, batch_first=True)
    assert_near(both(Called(layer), torch.randn(3, 6, 16)), 1e-4)


def run_packed(layer, x):
    return layer(pack_padded_sequence(x, torch.tensor([2, 6, 4]), batch_first=True, enforce_sorted=False))


@pytest.mark.parametrize("options", [{"printed": True}, {"proj_size": 8}, {"gates": "separate"}, {"share_directions": True}], ids=str)
def test_packed_sequences(options):
    layer = nn.LSTM(16, 24, bidirectional=True, batch_first=True, **options)
    assert_near(both(Called(run_packed, layer), torch.randn(3, 6, 16)), 1e-4)


@pytest.mark.parametrize("cell", ["LSTMCell", "GRUCell", "RNNCell"])
def test_recurrent_cells(cell):
    assert_near(both(Called(getattr(nn, cell)(16, 24)), torch.randn(3, 16)), 1e-4)


def test_recurrence_under_autocast():
    assert_near(both(Called(nn.LSTM(16, 24)), torch.randn(6, 3, 16), dtype=torch.bfloat16), 3e-2)


@pytest.mark.parametrize("algebra", ALGEBRAS)
@pytest.mark.parametrize("options", [{"padding": 1}, {"stride": 2, "padding_mode": "reflect", "padding": 1}, {"groups": 2}], ids=str)
def test_convolutions(algebra, options):
    assert_near(both(nn.Conv2d(16, 32, 3, algebra=algebra, **options), torch.randn(2, 16, 9, 9)), 1e-4)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_convolutions_of_each_dimension_and_transposed(axes):
    x = torch.randn(2, 16, *[6] * axes)
    assert_near(both(getattr(nn, f"Conv{axes}d")(16, 32, 3), x), 1e-4)
    assert_near(both(getattr(nn, f"ConvTranspose{axes}d")(16, 32, 3, stride=2), x), 1e-4)


def test_whitening_norm():
    assert_near(both(nn.WhiteningNorm(16), torch.randn(8, 16, 3, 3)), 1e-3)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("options", [{}, {"algebra": "phm(4)", "residual": "phydi"}], ids=str)
def test_resnet(training, options):
    model = ResNet(4, 10, widths=[16, 16, 32, 32], **options).train(training)
    assert_near(both(model, torch.randn(4, 4, 16, 16)), 1e-2)
