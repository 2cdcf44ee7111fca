"""Dropout: the values that the way back drops are those of the way there, also compiled, batched and under torch.func."""

import contextlib

import pytest
import torch
from quatrain import nn, ops
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

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


def drawn(x, seed=1, p=0.25, components=1, order=torch.contiguous_format):
    return torch.ops.quatrain.hypercomplex_dropout_drawn(x, p, components, torch.tensor([seed]), order)


def test_function_transforms_of_what_is_drawn():
    x = torch.randn(16, 32)
    kept = drawn(torch.ones(16, 32))
    torch.testing.assert_close(torch.func.grad(lambda x: drawn(x).sum())(x), kept)
    torch.testing.assert_close(torch.func.jvp(drawn, (x,), (torch.ones_like(x),))[1], kept)
    second = torch.func.grad(lambda x: torch.func.grad(lambda x: drawn(x).pow(3).sum())(x).sum())(x)
    torch.testing.assert_close(second, 6 * x * kept**3)
    rows = torch.func.vmap(torch.func.grad(lambda x: drawn(x).sum()))(x)
    torch.testing.assert_close(rows, drawn(torch.ones(32)).expand(16, 32))

    given = torch.randn(16, 32, requires_grad=True)
    y = ops.hypercomplex_dropout(given, 0.25, True)
    back = lambda g: torch.autograd.grad(y, given, g, create_graph=True)[0]
    kept = back(torch.ones_like(y))
    torch.testing.assert_close(torch.func.grad(lambda g: back(g).sum())(x), kept)
    torch.testing.assert_close(torch.func.jvp(back, (x,), (torch.ones_like(x),))[1], kept)


@pytest.mark.parametrize("counted", ["first", "again", "neither"])
@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("attention", [False, True])
def test_a_checkpoint_draws_the_same_again(attention, reentrant, counted):
    """Also where a mode watches one of the passes."""

    def f(x):
        if attention:
            heads = ops.cut_heads(x.view(2, 8, 32), 1, 4)[0]
            x = x + ops.hypercomplex_attention(heads, heads, heads, "quaternion", dropout=0.5).view(16, 32)
        return ops.hypercomplex_dropout(x, 0.25, True).square()

    def gradient(f, first, again):
        torch.manual_seed(0)
        with FlopCounterMode(display=False) if first else contextlib.nullcontext():
            y = f(x)
        x.grad = None
        with FlopCounterMode(display=False) if again else contextlib.nullcontext():
            y.sum().backward()
        return x.grad

    x = torch.randn(16, 32, requires_grad=True)
    expected = gradient(f, False, False)
    watched = gradient(
        lambda x: checkpoint(f, x, use_reentrant=reentrant), counted == "first", counted == "again"
    )
    torch.testing.assert_close(watched, expected)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_checkpoint_is_compiled(backend):
    torch._dynamo.reset()
    dropout, attention = nn.Dropout(0.25), nn.MultiheadAttention(32, 2, algebra="quaternion", dropout=0.5)

    def f(x):
        return dropout(attention(x.view(2, 8, 32), x.view(2, 8, 32), x.view(2, 8, 32))[0])

    compiled = torch.compile(lambda x: checkpoint(f, x, use_reentrant=False), backend=backend)
    x = torch.randn(16, 32, requires_grad=True)
    y = compiled(x)
    (g,) = torch.autograd.grad(y.sum(), x)
    assert g.shape == x.shape and 0.1 < (y == 0).float().mean() < 0.4


def test_a_sparse_gradient():
    table = torch.randn(50, 16, requires_grad=True)
    words = torch.tensor([1, 4, 4])
    y = torch.nn.functional.embedding(words, ops.hypercomplex_dropout(table, 0.25, True), sparse=True)
    (g,) = torch.autograd.grad(y.sum(), table)
    torch.testing.assert_close(g[words] * table[words], y * torch.tensor([1.0, 2.0, 2.0])[:, None])
    assert g[0].eq(0).all()


def test_what_an_operator_is_asked_must_be_drawable():
    x = torch.randn(2, 4, 4, 8)
    for arguments, message in [
        ((x, 0.5, 4, torch.tensor([1]), torch.channels_last), "order must be"),
        ((x, 0.5, 1, torch.tensor([1]), torch.preserve_format), "order must be"),
        ((x, 0.5, 1, torch.tensor([1], device="meta"), torch.contiguous_format), "seed must be"),
    ]:
        with pytest.raises(RuntimeError, match=message):
            torch.ops.quatrain.hypercomplex_dropout_drawn(*arguments)
    heads = torch.randn(2, 3, 4, 1, 8)
    with pytest.raises(RuntimeError, match="seed must be"):
        torch.ops.quatrain.attention_dropout_mask(heads, heads, 4, 0.5, torch.tensor([1], device="meta"))


@pytest.mark.parametrize("dtype", [torch.float, torch.double])
def test_all_that_is_dropped_leaves_no_trace(dtype):
    x = torch.full((300, 300), torch.nan, dtype=dtype)
    assert ops.hypercomplex_dropout(x.float(), 1.0, True).eq(0).all()
    assert drawn(x, p=1.0).eq(0).all()
    assert 0.2 < drawn(x).eq(0).float().mean() < 0.3


def test_export():
    module = nn.Dropout(0.25)
    program = torch.export.export(module, (torch.randn(64, 128),))
    assert "hypercomplex_dropout" in program.graph_module.code
    y = program.module()(torch.ones(64, 128))
    assert 0.2 < (y == 0).float().mean() < 0.3
