"""Dropout: the values that the way back drops are those of the way there, also compiled, batched and under torch.func."""

import pytest
import torch
from quatrain import nn, ops
from torch.utils.checkpoint import checkpoint

BACKENDS = ["aot_eager", "inductor"]
SHARING = [(1, False), (4, True)]


def kept_and_gradient(f, x):
    x = x.clone().requires_grad_()
    y = f(x)
    (g,) = torch.autograd.grad(y, x, torch.ones_like(y))
    return y.detach(), g


def check(y, x, g, n, per_unit):
    torch.testing.assert_close(y, x * g)
    kept = g != 0
    torch.testing.assert_close(g, kept.to(g.dtype) / 0.75)
    assert 0.2 < 1 - kept.float().mean() < 0.3
    if per_unit:
        units = kept.view(-1, n, kept.size(-1) // n)
        assert torch.equal(units, units[:, :1].expand_as(units))


@pytest.mark.parametrize("dtype", [torch.float, torch.double])
@pytest.mark.parametrize("n, per_unit", SHARING)
def test_the_gradient_drops_the_same(n, per_unit, dtype):
    x = torch.randn(64, 128, dtype=dtype)
    y, g = kept_and_gradient(nn.Dropout(0.25, n=n, per_unit=per_unit), x)
    check(y, x, g, n, per_unit)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("n, per_unit", SHARING)
def test_a_compiled_program_drops_other_values_in_each_run(n, per_unit, backend):
    torch._dynamo.reset()
    f = torch.compile(nn.Dropout(0.25, n=n, per_unit=per_unit), fullgraph=True, backend=backend)
    x = torch.randn(64, 128)
    runs = [kept_and_gradient(f, x) for _ in range(2)]
    for y, g in runs:
        check(y, x, g, n, per_unit)
    assert not torch.equal(runs[0][1], runs[1][1])


def test_a_compiled_program_calls_the_kernel():
    torch._dynamo.reset()
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph

    from torch._dynamo.backends.common import aot_autograd

    compiled = torch.compile(nn.Dropout(0.25), fullgraph=True, backend=aot_autograd(fw_compiler=backend))
    compiled(torch.randn(4, 8, requires_grad=True)).sum().backward()
    called = [str(node.target) for graph in graphs for node in graph.graph.nodes if node.op == "call_function"]
    assert sum("hypercomplex_dropout_drawn" in name for name in called) == 2, called


@pytest.mark.parametrize("n, per_unit", SHARING)
def test_gradients_in_a_batch(n, per_unit):
    x = torch.randn(16, 32, requires_grad=True)
    y = ops.hypercomplex_dropout(x, 0.25, True, n, per_unit)
    g = torch.randn(5, 16, 32)
    (batched,) = torch.autograd.grad(y, x, g, retain_graph=True, is_grads_batched=True)
    each = torch.stack([torch.autograd.grad(y, x, one, retain_graph=True)[0] for one in g])
    torch.testing.assert_close(batched, each)


def test_function_transforms():
    x = torch.randn(64, 128)
    g = torch.func.grad(lambda x: ops.hypercomplex_dropout(x, 0.25, True).sum())(x)
    torch.testing.assert_close(g, (g != 0) / 0.75)
    y, tangent = torch.func.jvp(lambda x: ops.hypercomplex_dropout(x, 0.25, True), (x,), (torch.ones_like(x),))
    torch.testing.assert_close(y, x * tangent)
    z = torch.func.vmap(lambda x: ops.hypercomplex_dropout(x, 0.25, True), randomness="different")(x)
    torch.testing.assert_close(z, torch.where(z == 0, 0.0, x / 0.75))
    with torch.autograd.forward_ad.dual_level():
        dual = ops.hypercomplex_dropout(torch.autograd.forward_ad.make_dual(x, torch.ones_like(x)), 0.25, True)
        y, tangent = torch.autograd.forward_ad.unpack_dual(dual)
        torch.testing.assert_close(y, x * tangent)


def test_a_checkpoint_draws_the_same_again():
    x = torch.randn(16, 32, requires_grad=True)
    y = checkpoint(lambda x: ops.hypercomplex_dropout(x, 0.25, True).square(), x, use_reentrant=False)
    (g,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(g, 2 * y.detach() / x.detach())


def test_export():
    module = nn.Dropout(0.25)
    program = torch.export.export(module, (torch.randn(64, 128),))
    assert "hypercomplex_dropout" in program.graph_module.code
    y = program.module()(torch.ones(64, 128))
    assert 0.2 < (y == 0).float().mean() < 0.3
