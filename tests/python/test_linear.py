"""The bare operators under everything that PyTorch does to an operator."""

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

linear = torch.ops.quatrain.linear
linear_backward = torch.ops.quatrain.linear_backward
WAYS = ["factored", "mixed", "materialised"]


def quaternion_table():
    A = torch.zeros(4, 4, 4, dtype=torch.float64)
    rows = (((0, 1), (1, 1), (2, 1), (3, 1)), ((1, 1), (0, -1), (3, 1), (2, -1)),
            ((2, 1), (3, -1), (0, -1), (1, 1)), ((3, 1), (2, 1), (1, -1), (0, -1)))
    for i, row in enumerate(rows):
        for b, (a, sign) in enumerate(row):
            A[i, a, b] = sign
    return A


def factors_of(A, way="factored"):
    """Factors of rank n^3, one for each entry: they follow A, as gradcheck moves it."""
    if A is None or way != "factored":
        return []
    n = A.shape[0]
    one = torch.eye(n, dtype=torch.float64)
    U = (one[:, :, None, None] * A.detach().double()).reshape(n, -1)
    V = one[:, None, None, :].expand(n, n, n, n).reshape(n, -1)
    W = one[:, None, :, None].expand(n, n, n, n).reshape(n, -1)
    return [U, V, W]


def arguments(learned, dtype=torch.float64, requires_grad=True):
    x = torch.randn(2, 3, 8, dtype=dtype, requires_grad=requires_grad)
    S = torch.randn(4, 3, 2, dtype=dtype, requires_grad=requires_grad)
    bias = torch.randn(12, dtype=dtype, requires_grad=requires_grad)
    A = quaternion_table().to(dtype).requires_grad_(requires_grad) if learned else None
    return x, S, bias, A


def call(x, S, bias, A, way="auto", dtype=None, constant=False):
    algebra = "quaternion" if A is None else "learned"
    factors = factors_of(A, way)
    return linear(x, S, bias, algebra, A, factors, way, dtype, constant)


def literal(x, S, bias, A):
    A = quaternion_table().to(S.dtype) if A is None else A
    return torch.nn.functional.linear(x, torch.einsum("iab,ipq->apbq", A, S).reshape(12, 8), bias)


@pytest.fixture(params=[False, True], ids=["fixed", "learned"])
def learned(request):
    return request.param


@pytest.mark.parametrize("way", WAYS)
def test_values(learned, way):
    args = arguments(learned)
    torch.testing.assert_close(call(*args, way=way), literal(*args))


@pytest.mark.parametrize("way", WAYS)
def test_opcheck(learned, way):
    x, S, bias, A = arguments(learned)
    algebra = "learned" if learned else "quaternion"
    factors = factors_of(A, way)
    torch.library.opcheck(linear, (x, S, bias, algebra, A, factors, way))
    torch.library.opcheck(linear, (x.detach(), S.detach(), None, algebra, None if A is None else A.detach(), factors, way))
    grad = torch.randn(2, 3, 12, dtype=torch.float64, requires_grad=True)
    masks = [[True, True, learned], [True, False, False], [False, True, False]]
    for mask in masks:
        torch.library.opcheck(linear_backward, (grad, x, S, algebra, A, factors, way, None, mask))


def test_opcheck_component_wise():
    a, b = (torch.randn(3, 8, dtype=torch.float64, requires_grad=True) for _ in range(2))
    torch.library.opcheck(torch.ops.quatrain.hamilton_product, (a, b, "quaternion"))
    torch.library.opcheck(torch.ops.quatrain.hypercomplex_conjugate, (a, "quaternion"))
    torch.library.opcheck(torch.ops.quatrain.hypercomplex_norm, (a, "quaternion"))


@pytest.mark.parametrize("way", WAYS)
def test_gradcheck(learned, way):
    args = [a for a in arguments(learned) if a is not None]

    def f(x, S, bias, A=None):
        return call(x, S, bias, A, way)

    assert gradcheck(f, args)
    assert gradgradcheck(f, args)


@pytest.mark.parametrize("way", WAYS)
def test_gradcheck_of_backward(learned, way):
    x, S, _, A = arguments(learned)
    g = torch.randn(2, 3, 12, dtype=torch.float64, requires_grad=True)

    def f(g, x, S, A=None):
        algebra = "quaternion" if A is None else "learned"
        factors = factors_of(A, way)
        out = linear_backward(g, x, S, algebra, A, factors, way, None, [True, True, A is not None])
        return tuple(t for t in out if t is not None)

    assert gradcheck(f, [t for t in (g, x, S, A) if t is not None])


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compile(learned, backend, dynamic):
    torch._dynamo.reset()
    compiled = torch.compile(lambda *a: call(*a).tanh(), fullgraph=True, backend=backend, dynamic=dynamic)
    for rows in (2, 5, 7):
        args = arguments(learned, torch.float32)
        args = (torch.randn(rows, 3, 8, requires_grad=True), *args[1:])
        eager = call(*args).tanh()
        wanted = [a for a in args if a is not None]
        expected = torch.autograd.grad(eager.sum(), wanted)
        got = compiled(*args)
        torch.testing.assert_close(got, eager)
        torch.testing.assert_close(torch.autograd.grad(got.sum(), wanted), expected)


def test_export(learned):
    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            _, S, bias, A = arguments(learned)
            self.S, self.bias = torch.nn.Parameter(S.detach()), torch.nn.Parameter(bias.detach())
            self.A = torch.nn.Parameter(A.detach()) if learned else None

        def forward(self, x):
            return call(x, self.S, self.bias, self.A)

    layer, x = Layer(), torch.randn(3, 8, dtype=torch.float64)
    program = torch.export.export(layer, (x,), dynamic_shapes={"x": {0: torch.export.Dim("rows")}})
    torch.testing.assert_close(program.module()(x), layer(x))
    torch.testing.assert_close(program.module()(x[:2]), layer(x[:2]))


def test_func_grad(learned):
    args = arguments(learned, requires_grad=False)
    wanted = tuple(i for i, a in enumerate(args) if a is not None)
    got = torch.func.grad(lambda *a: call(*a).pow(2).sum(), argnums=wanted)(*args)
    expected = torch.func.grad(lambda *a: literal(*a).pow(2).sum(), argnums=wanted)(*args)
    torch.testing.assert_close(got, expected)


def test_func_hessian(learned):
    x, S, bias, A = arguments(learned, requires_grad=False)
    f = lambda F: lambda S: F(x, S, bias, A).pow(3).sum()
    torch.testing.assert_close(torch.func.hessian(f(call))(S), torch.func.hessian(f(literal))(S))


def test_func_vmap(learned):
    x, S, bias, A = arguments(learned, requires_grad=False)
    torch.testing.assert_close(torch.vmap(lambda x: call(x, S, bias, A))(x), call(x, S, bias, A))
    weights = torch.randn(5, *S.shape, dtype=S.dtype)
    got = torch.vmap(lambda S: call(x, S, bias, A))(weights)
    torch.testing.assert_close(got, torch.stack([literal(x, s, bias, A) for s in weights]))
    per_sample = torch.vmap(torch.func.grad(lambda S, x: call(x, S, bias, A).sum()), (None, 0))(S, x)
    assert per_sample.shape == (2, *S.shape)


def test_func_jvp(learned):
    args = tuple(a for a in arguments(learned, requires_grad=False) if a is not None)
    tangents = tuple(torch.randn_like(a) for a in args)
    pad = lambda f: lambda x, S, bias, A=None: f(x, S, bias, A)
    torch.testing.assert_close(torch.func.jvp(pad(call), args, tangents), torch.func.jvp(pad(literal), args, tangents))


def test_batched_grads(learned):
    """The backward operator under vmap."""
    x, S, bias, A = arguments(learned)
    wanted = [a for a in (x, S, A) if a is not None]
    y = call(x, S, bias, A)
    directions = torch.randn(3, *y.shape, dtype=y.dtype)
    algebra = "learned" if learned else "quaternion"
    mask = [True, True, learned]
    mapped = torch.vmap(lambda g: tuple(t for t in linear_backward(g, x, S, algebra, A, [], output_mask=mask) if t is not None))
    vectorised = torch.autograd.grad(y, wanted, directions, is_grads_batched=True, retain_graph=True)
    for got in (mapped(directions), vectorised):
        for i, direction in enumerate(directions):
            expected = torch.autograd.grad(literal(x, S, bias, A), wanted, direction)
            for batched, single in zip(got, expected):
                torch.testing.assert_close(batched[i], single)


def test_forward_mode(learned):
    args = [a for a in arguments(learned) if a is not None]
    assert gradcheck(lambda x, S, b, A=None: call(x, S, b, A), args, check_forward_ad=True, check_backward_ad=False)


def test_autocast(learned):
    x, S, bias, A = arguments(learned, torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = call(x, S, bias, A)
    assert y.dtype == torch.bfloat16
    torch.testing.assert_close(y.float(), literal(x, S, bias, A), atol=0.15, rtol=0.05)
    y.sum().backward()
    for t in (x, S, bias, A):
        assert t is None or t.grad.dtype == torch.float32


def test_autocast_compiles(learned):
    torch._dynamo.reset()
    args = arguments(learned, torch.float32)

    def f(*a):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return call(*a)

    y = torch.compile(f, fullgraph=True, backend="aot_eager")(*args)
    torch.testing.assert_close(y, f(*args))
    y.float().sum().backward()
    assert args[1].grad.dtype == torch.float32


def test_inference_mode(learned):
    args = arguments(learned)
    with torch.inference_mode():
        torch.testing.assert_close(call(*args, constant=True), literal(*args))


def test_dot_data_needs_drop_prepared():
    x, S, bias, A = arguments(False, requires_grad=False)
    call(x, S, bias, A, constant=True)
    S.data.mul_(2)
    torch.ops.quatrain.drop_prepared(S)
    torch.testing.assert_close(call(x, S, bias, A, constant=True), literal(x, S, bias, A))


def test_writes_of_others_who_hold_the_memory_are_seen(learned):
    x, S, bias, A = arguments(learned, requires_grad=False)
    array, vector = S.detach().numpy(), torch.nn.utils.parameters_to_vector([S])
    average = torch.rand_like(S)

    def write_average():
        average.mul_(1.3)
        S.data = average

    for write in (
        lambda: array.__imul__(3),
        lambda: torch.nn.utils.vector_to_parameters(vector, [S]),
        lambda: torch.nn.utils.vector_to_parameters(vector.mul_(2), [S]),
        lambda: vector.mul_(2),
        write_average,
        write_average,
        lambda: average.mul_(2),
        lambda: torch.from_dlpack(S.detach()).mul_(2),  # held no longer when it is called; collectives write like this
    ):
        call(x, S, bias, A, constant=True)
        write()
        torch.testing.assert_close(call(x, S, bias, A, constant=True), literal(x, S, bias, A))


@pytest.mark.parametrize("fused", [False, True])
def test_fused_optimizers_leave_nothing_stale(fused):
    x, S, bias, _ = arguments(False, torch.float32)
    optimizer = torch.optim.AdamW([S, bias], lr=0.1, fused=fused)
    for _ in range(3):
        with torch.no_grad():
            call(x, S, bias, None, constant=True)
        optimizer.zero_grad()
        call(x, S, bias, None, constant=True).pow(2).sum().backward()
        with torch.no_grad():
            call(x, S, bias, None, constant=True)
        optimizer.step()
        with torch.no_grad():
            torch.testing.assert_close(call(x, S, bias, None, constant=True), literal(x, S, bias, None))


def test_errors():
    x, S, bias, _ = arguments(False)
    with pytest.raises(RuntimeError, match="in_features = 8"):
        call(torch.randn(3, 7, dtype=torch.float64), S, bias, None)
    with pytest.raises((RuntimeError, ValueError), match="quaternion"):
        linear(x, S, bias, "quaternoin", None, [])
    with pytest.raises(RuntimeError, match="Float, S Double|c10::Float|float"):
        call(x.float(), S, bias, None)
