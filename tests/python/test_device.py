"""Operators, layers and a model on a device, beside the CPU. scripts/device_tests runs these where there is one."""

import copy
import os

import pytest
import torch

import quatrain
from quatrain import nn

DEVICE = os.environ.get("QUATRAIN_TEST_DEVICE", "")
pytestmark = [
    pytest.mark.device,
    pytest.mark.skipif(not DEVICE, reason="needs a device: scripts/device_tests runs it where there is one"),
]
ALGEBRAS = ["real", "quaternion", "octonion", "phm(4)", "wkp(4)", "clifford(2,1)"]


@pytest.fixture(autouse=True)
def exact_products():
    """No TF32, whose products have ten bits."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    yield
    torch.set_float32_matmul_precision(before)


def both(module, *inputs, dtype=None):
    """Outputs and gradients of a module, on the CPU and on the device, all on the CPU."""
    results = []
    for device in ("cpu", DEVICE):
        own = copy.deepcopy(module).to(device)
        x = [i.detach().to(device).requires_grad_(i.is_floating_point()) for i in inputs]
        with torch.autocast(torch.device(device).type, dtype=dtype or torch.bfloat16, enabled=dtype is not None):
            y = own(*x)
        assert y.device.type == torch.device(device).type
        y.float().square().sum().backward()
        grads = [i.grad for i in x if i.grad is not None] + [p.grad for p in own.parameters() if p.grad is not None]
        results.append([y.detach().float().cpu()] + [g.float().cpu() for g in grads])
    return results


def assert_near(results, tolerance):
    here, there = results
    assert len(here) == len(there) > 1
    for a, b in zip(here, there):
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
    here = quatrain.ops.linear(x, S, algebra="quaternion", way=way)
    there = quatrain.ops.linear(x.to(DEVICE), S.to(DEVICE), algebra="quaternion", way=way)
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
