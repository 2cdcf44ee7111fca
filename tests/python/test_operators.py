"""Every registered operator under torch.library.opcheck; derivatives of those that this folder's other files leave."""

import functools
import warnings

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.nn.attention import SDPBackend, sdpa_kernel

ops = torch.ops.quatrain


def doubles(*shape, requires_grad=True):
    return torch.randn(shape, dtype=torch.float64, requires_grad=requires_grad)


def heads(n=4):
    return tuple(doubles(2, length, n, 2, 3) for length in (3, 5, 5))


def floats(n=4):
    return tuple(t.detach().float() for t in heads(n))


def seen():
    """All that says which keys a query sees."""
    return [dict(mask=torch.rand(2, 1, 3, 5) < 0.7), dict(mask=torch.randn(2, 3, 5), causal=True, offset=1, scale=0.3, order="key_query", padding=padding())]


def padding():
    mask = torch.zeros(2, 5, dtype=torch.bool)
    mask[0, 3:] = True
    return mask


def words():
    return torch.randint(12, (2, 3))


S, A = functools.partial(doubles, 4, 3, 2), functools.partial(doubles, 4, 4, 4)

def steps(dtype, cell="lstm", maps=1, learned=False, projected=0):
    gates = {"lstm": 4, "lstm_printed": 4, "gru": 3}.get(cell, 1)
    draw = functools.partial(torch.randn, dtype=dtype)
    c0 = draw(3, 8) if gates == 4 else None
    state = projected or 2  # units of a component
    weights = [draw(4, gates // maps * 2, state) for _ in range(maps)] + ([draw(4, projected, 2)] if projected else [])
    structures = [draw(4, 4, 4) for _ in weights] if learned else []
    return draw(6, gates * 8), torch.tensor([3, 2, 1]), draw(3, 4 * state), c0, weights, "learned" if learned else "quaternion", structures, []


def steps_back(dtype, cell, projected=0):
    z, sizes, h0, c0, S, *algebra = steps(dtype, cell, projected=projected)
    y, h, c, kept = ops.recurrence(z, sizes, h0, c0, S, *algebra, cell=cell, keep=True)
    return torch.randn_like(y), torch.randn_like(h), None if c0 is None else torch.randn_like(c), y, kept, sizes, h0, c0, S, *algebra, dict(cell=cell)


def kernels():
    """Images, kernels and their algebra."""
    quaternion, learned = ("quaternion", None, []), ("learned", A(), [])
    return [(doubles(2, 8, 5, 4), doubles(4, 3, 2, 3, 3), quaternion, dict(padding=[1])), (doubles(2, 8, 5, 4), doubles(4, 3, 2, 2, 3), learned, dict(stride=[2, 1])),
            (doubles(2, 8, 5, 4).contiguous(memory_format=torch.channels_last).detach(), doubles(4, 3, 2, 3, 3), quaternion, dict(padding=[1], winograd="2x2")),
            (doubles(2, 16, 5), doubles(4, 4, 3, 3), quaternion, dict(stride=[2], groups=2, transposed=True, output_padding=[1])),
            (torch.randn(2, 8, 5, 4), torch.randn(4, 3, 2, 3, 3), quaternion, dict(padding=[1], way="factored")),
            (doubles(2, 7, 8).movedim(1, -1).detach().requires_grad_(), doubles(4, 3, 2, 3), quaternion, dict(padding=[2], dilation=[2])),
            (doubles(1, 8, 3, 4, 3), doubles(4, 3, 2, 3, 3, 3), quaternion, dict(padding=[1], winograd="4x4"))]


def layer(dtype, cell="lstm", maps=1, learned=False, projected=0):
    z, sizes, h0, c0, S, algebra, A, _ = steps(dtype, cell, maps, learned, projected)
    S_x = [torch.randn(4, z.size(1) // 4 // maps, 3, dtype=dtype) for _ in range(maps)]
    A_x = [torch.randn(4, 4, 4, dtype=dtype) for _ in S_x] if learned else []
    return torch.randn(6, 12, dtype=dtype), sizes, h0, c0, S_x, S, algebra, A_x, A, [], [], torch.randn(z.size(1), dtype=dtype)


# Operators on tensors, with arguments: all that a compiler may meet.
CASES = {
    "weighted_summands": lambda: [(S(), doubles(4), False), (doubles(4, 3, 2, 3, 3), doubles(4), True), (torch.randn(4, 3, 2), torch.randn(4), True)],
    "linear": lambda: [(doubles(5, 8), S(), doubles(12), "quaternion", None, []), (doubles(5, 8), S(), None, "learned", A(), [])],
    "linear_backward": lambda: [(doubles(5, 12), doubles(5, 8), S(), "quaternion", None, [], "auto", None, [True, True, False])],
    "materialise": lambda: [(S(), "quaternion"), (S(), "learned", A())],
    "hamilton_product": lambda: [(doubles(3, 8), doubles(8), "quaternion")],
    "hypercomplex_matching": lambda: [(doubles(3, 8), doubles(3, 8), "quaternion", 4), (torch.randn(3, 8), torch.randn(3, 8), "real", 2)],
    "hypercomplex_alignment": lambda: [
        (*texts, torch.rand(2, 3) < 0.3, padding(), algebra)
        for texts in (heads()[:2], [t.detach().float().requires_grad_() for t in heads()[:2]]) for algebra in ("real", "quaternion")],
    "hypercomplex_conjugate": lambda: [(doubles(3, 8), "quaternion")],
    "hypercomplex_norm": lambda: [(doubles(3, 8), "quaternion")],
    "split_activation": lambda: [(doubles(3, 8), name) for name in ("identity", "relu", "gelu_tanh")],
    "hypercomplex_dropout": lambda: [(doubles(3, 8), 0.0, True), (doubles(3, 8), 0.5, False, 4, True)],
    "hypercomplex_layer_norm": lambda: [(doubles(3, 8), doubles(8), doubles(8), n) for n in (1, 4)],
    "whitening_norm": lambda: [
        (doubles(5, 8, *pixels), doubles(10, 2), doubles(8), torch.zeros(8).double(), torch.eye(4).double()[..., None].repeat(1, 1, 2), 4, training)
        for pixels in ((), (3,), (3, 2)) for training in (True, False)] + [(torch.randn(2, 3, 2, 2).bfloat16(), torch.randn(1, 3), torch.randn(3), None, None, 1, True)],
    "embedding": lambda: [(words(), S(), A()), (words(), doubles(1, 12, 8)), (words(), S(), doubles(3, 4, 5), True)],
    "masked_mean": lambda: [(doubles(2, 5, 8), padding())],
    "rows_of_words": lambda: [(x, torch.tensor([0, 2, 5])) for x in (doubles(2, 3, 4), torch.randn(2, 3, 4, 2))],
    "places_of_words": lambda: [(x, torch.tensor([0, 2, 5]), 2, 3) for x in (doubles(1, 3, 4), torch.randn(1, 3, 4, 2))],
    "cut_heads": lambda: [(doubles(2, 5, 24), 2, 4, 3)],
    "hypercomplex_attention": lambda: [
        (*heads(), "real"), (*heads(), "quaternion"), (*heads(), "quaternion", padding()), (*heads(1), "real", padding()),
        *((*heads(), "quaternion", options) for options in seen())],
    "hypercomplex_attention_forward": lambda: [
        tuple(t.detach() for t in heads()) + ("quaternion",), tuple(t.detach().float() for t in heads()) + ("quaternion", padding()),
        tuple(t.detach().float() for t in heads()) + ("quaternion", None, 0.5, dict(seed=torch.tensor([7]))),
        *((*floats(), "quaternion", dict(options, dropout=0.5, seed=torch.tensor([7]))) for options in seen()),
        tuple(torch.randn(2, length, 4, 1, 1) for length in (3, 5, 5)) + ("quaternion",)],
    "cached_attention": lambda: [
        (torch.randn(3, 4, 2, 3, dtype=dtype), *(torch.randn(5, 6, 4, 2, 3, dtype=dtype) for _ in range(2)),
         torch.randint(5, (3, 6), dtype=torch.int32), torch.tensor([1, 4, 6], dtype=torch.int32), algebra)
        for dtype in (torch.float, torch.double) for algebra in ("real", "quaternion")],
    "attention_dropout_mask": lambda: [(heads()[0].detach(), heads()[1].detach(), maps, 0.5, torch.tensor([7])) for maps in (1, 4)],
    "hypercomplex_dropout_drawn": lambda: [
        (x, 0.5, components, torch.tensor([7]), torch.contiguous_format)
        for components in (1, 4) for x in (doubles(3, 8), doubles(3, 8).detach(), torch.randn(3, 8, requires_grad=True), torch.randn(3, 8).bfloat16(), torch.randn(8, 3).t() if components == 1 else torch.randn(8, 8).t(), doubles(8, 8).detach().t())]
    + [(x, 0.5, 1, torch.tensor([7]), order) for x in (doubles(2, 3, 4, 5).detach(), torch.randn(2, 3, 4, 5)) for order in (torch.contiguous_format, torch.channels_last)],
    "hypercomplex_attention_backward": lambda: [
        (torch.randn(2, 3, 24, dtype=dtype), *(t.detach().to(dtype) for t in heads()), algebra, padding(), dropout, dict(seed=torch.tensor([7]), mask=torch.randn(3, 5), causal=True, offset=1))
        for dtype in (torch.double, torch.float) for algebra in ("real", "quaternion") for dropout in (0.0, 0.5)],
    "hypercomplex_attention_with_weights": lambda: [
        (*heads(), "real"), (*heads(), "quaternion", padding()), (*heads(), "quaternion", seen()[1])],
    "recurrent_layer": lambda: [
        (*layer(dtype, cell, maps, learned, projected), dict(cell=cell, reverse=learned))
        for dtype in (torch.float, torch.double) for cell, maps, learned, projected in (
            ("lstm", 1, False, 0), ("gru", 3, True, 0), ("rnn_relu", 1, True, 0), ("lstm", 1, False, 1), ("lstm_printed", 4, True, 3))]
    + [(*(t.requires_grad_() if i in (0, 2, 3) else t for i, t in enumerate(layer(torch.double))), dict(cell="lstm"))],
    "recurrence": lambda: [
        (*steps(dtype, cell, maps, learned, projected), dict(cell=cell, reverse=learned))
        for dtype in (torch.float, torch.double) for cell, maps, learned, projected in (
            ("lstm", 1, False, 0), ("gru", 3, True, 0), ("rnn_relu", 1, True, 0), ("lstm", 1, False, 1), ("lstm_printed", 4, True, 3))],
    "recurrence_backward": lambda: [
        steps_back(dtype, cell, projected) for dtype in (torch.float, torch.double)
        for cell, projected in (("lstm", 0), ("gru", 0), ("rnn_tanh", 0), ("lstm", 3), ("lstm_printed", 1))],
    "convolution": lambda: [(x, F, None, *algebra, options) for x, F, algebra, options in kernels()],
    "convolution_with_epilogue": lambda: [
        (x, F, scale and doubles(12).to(x.dtype), shift and doubles(12).to(x.dtype), None if residual is None else residual(ops.convolution(x, F, None, *algebra, **options)), activation, *algebra, options)
        for (x, F, algebra, options), (scale, shift, residual, activation) in zip(kernels()[:3] + kernels()[4:], [(True, True, torch.randn_like, "relu"), (None, True, None, "gelu"), (True, None, torch.randn_like, "tanh"), (None, None, torch.randn_like, "relu")])],
    "convolution_backward": lambda: [
        (torch.randn_like(ops.convolution(x, F, None, *algebra, **options)), x, F, *algebra, dict(options, output_mask=[True, True, algebra[1] is not None]))
        for x, F, algebra, options in kernels()],
    "initialise_weight_": lambda: [(S(requires_grad=False), "glorot")],
    "initialise_structure_": lambda: [(A(requires_grad=False), "phm(4)")],
    "initialise_layer_": lambda: [(S(requires_grad=False), A(requires_grad=False), "phm(4)")],
    "initialise_gate_biases_": lambda: [(torch.ones(4 * gates * 3), 4, cell, forget, chrono) for cell, gates, forget, chrono in (("lstm", 4, 1.0, 0), ("lstm", 4, 0.0, 20), ("gru", 3, 0.0, 20), ("rnn_tanh", 1, 0.0, 0))],
}

# Operators that no compiled program holds: on names, numbers and files, or on what stands beside a tensor.
OUTSIDE = {
    "activation_names", "algebra_add", "algebra_add_from_file", "algebra_conjugation", "algebra_describe",
    "algebra_factors", "algebra_names", "algebra_parse", "algebra_power", "algebra_properties", "algebra_table",
    "add_algebras", "index_of_words", "read_safetensors", "write_safetensors", "decompose", "nearest", "drop_prepared",
    "instruction_sets", "version", "linear_with_products", "planned_way", "prepared_size", "rank", "real_fans", "score_multiplications",
    "set_structure_state", "sinusoidal_positions", "structure_power", "structure_report",
    "structure_state",
}  # fmt: skip


def registered():
    return {name.split("::")[1].split(".")[0] for name in torch._C._dispatch_get_all_op_names() if name.startswith("quatrain::")}


def test_every_operator_has_its_check():
    assert registered() - set(CASES) - OUTSIDE == set()


# Draws have no derivative and no two equal results: their schema and their Meta kernel are what there is to check.
DRAWN = {"initialise_weight_", "initialise_structure_", "initialise_layer_", "initialise_gate_biases_"}


@pytest.mark.parametrize("name", CASES)
def test_opcheck(name):
    utilities = ("test_schema", "test_faketensor") if name in DRAWN else torch.library._OPCHECK_DEFAULT_UTILS
    for arguments in CASES[name]():
        *positional, last = arguments
        named = last if isinstance(last, dict) else {}
        torch.library.opcheck(getattr(ops, name), tuple(positional) if named else arguments, named, test_utils=utilities)


def differentiable(function, tensors):
    with sdpa_kernel(SDPBackend.MATH):
        assert gradcheck(function, tensors)
        assert gradgradcheck(function, tensors)


@pytest.mark.parametrize("algebra", ["real", "quaternion"])
def test_attention_has_derivatives(algebra):
    def f(Q, K, V):
        return ops.hypercomplex_attention(Q, K, V, algebra, padding()[:, 1:4])

    Q, K, V = (doubles(2, length, 4, 1, 2) for length in (2, 3, 3))
    differentiable(f, (Q, K, V))
    assert gradcheck(lambda *t: ops.hypercomplex_attention(*t, algebra), (Q, K, V))  # the fused kernel's
    with sdpa_kernel(SDPBackend.MATH):  # second derivatives with a mask: tests/ops
        assert gradcheck(lambda Q, K, V, mask: ops.hypercomplex_attention(Q, K, V, algebra, mask=mask, causal=True, offset=1), (Q, K, V, doubles(2, 1, 2, 3)))


@pytest.mark.parametrize("n", [1, 4])
def test_layer_norm_has_derivatives(n):
    differentiable(lambda *t: ops.hypercomplex_layer_norm(*t, n), (doubles(3, 8), doubles(8), doubles(8)))


@pytest.mark.parametrize("n", [1, 3, 4])
@pytest.mark.parametrize("training", [True, False])
def test_whitening_norm_has_derivatives(n, training):
    mixed = torch.randn(n, n, 2, dtype=torch.float64)
    covariance = torch.einsum("ikc,jkc->ijc", mixed, mixed) + torch.eye(n).double()[..., None]

    def f(x, weight, bias):  # the statistics are moved in place
        return ops.whitening_norm(x, weight, bias, torch.ones(2 * n).double(), covariance.clone(), n, training)

    differentiable(f, (doubles(5, 2 * n, 2), doubles(n * (n + 1) // 2, 2), doubles(2 * n)))


def test_other_operators_have_derivatives():
    differentiable(lambda x: ops.masked_mean(x, padding()), (doubles(2, 5, 8),))
    differentiable(lambda s, a: ops.materialise(s, "learned", a), (S(), A()))
    differentiable(lambda s: ops.materialise(s, "quaternion"), (S(),))
    rows = words()
    differentiable(lambda s, a: ops.embedding(rows, s, a), (S(), A()))
    differentiable(lambda x: ops.split_activation(x, "gelu"), (doubles(3, 8),))


@pytest.mark.parametrize("case", [0, 1, 3, 5, 6])
def test_convolutions_have_derivatives(case):
    x, F, (algebra, A, _), options = kernels()[case]
    units = F.shape[2] * options.get("groups", 1) if options.get("transposed") else F.shape[1]
    tensors = [x, F, doubles(4 * units)] + ([A] if A is not None else [])

    def f(x, F, bias, A=None):
        return ops.convolution(x, F, bias, algebra, A, [], **options)

    assert gradcheck(f, tensors, fast_mode=True, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(f, tensors, fast_mode=True)


@pytest.mark.parametrize("cell", ["lstm", "lstm_printed"])
@pytest.mark.parametrize("maps", [1, 4])
def test_projected_recurrences_have_derivatives(cell, maps):
    z, sizes, h0, c0, S, algebra, A, _ = steps(torch.float64, cell, maps, True, 1)
    mask, tensors = (torch.rand(3, 4) < 0.7).double(), [z, h0, c0, *S, *A]

    def f(z, h0, c0, *maps_of):
        return ops.recurrence(z, sizes, h0, c0, maps_of[: len(S)], algebra, maps_of[len(S) :], [], None, mask, cell, True)[:3]

    for t in tensors:
        t.mul_(0.3).requires_grad_()
    assert gradcheck(f, tensors, fast_mode=True)
    assert gradgradcheck(f, tensors, fast_mode=True)


def test_traced_attention_is_the_eager_one():
    """Traces take the table by its numbers, eager calls as a tensor."""
    Q, K, V = heads()
    for algebra in ("quaternion", "dual_quaternion"):
        n = 8 if algebra == "dual_quaternion" else 4
        Q, K, V = heads(n)
        for options in (dict(), *seen()):
            options = {name: t.double() if name == "mask" and t.is_floating_point() else t for name, t in options.items()}
            traced = torch.fx.experimental.proxy_tensor.make_fx(lambda *t: ops.hypercomplex_attention(*t, algebra, **options))(Q, K, V)
            torch.testing.assert_close(traced(Q, K, V), ops.hypercomplex_attention(Q, K, V, algebra, **options))


def test_attention_by_its_definition():
    Q, K, V = heads()
    A = ops.algebra_table("quaternion")
    scores = torch.einsum("icj,blihm,bsjhm->bhcls", A, Q, K) / (4 * 3) ** 0.5
    scores = scores.masked_fill(padding()[:, None, None, None], float("-inf"))
    weights = scores.softmax(-1)
    expected = torch.einsum("bhcls,bschm->blchm", weights, V).flatten(2)
    y, w = ops.hypercomplex_attention_with_weights(Q, K, V, "quaternion", padding())
    torch.testing.assert_close(y, expected)
    torch.testing.assert_close(w, weights)
    torch.testing.assert_close(ops.hypercomplex_attention(Q, K, V, "quaternion", padding()), expected)


def test_first_use_of_an_algebra_in_a_transform():
    """The constants that a transform asks for first serve calls after it."""
    Q, K, V = (t.detach() for t in heads(8))

    def f(Q):
        return ops.hypercomplex_attention_with_weights(Q, K, V, "clifford(1,2)")[0].square().sum()

    each = torch.vmap(torch.func.grad(f))(torch.stack([Q, 2 * Q]))
    for scale, got in zip((1, 2), each, strict=True):
        leaf = (scale * Q).requires_grad_()
        f(leaf).backward()
        torch.testing.assert_close(got, leaf.grad)


@pytest.mark.filterwarnings("error:There is a performance drop")
def test_composed_operators_under_vmap():
    """vmap sees what they are composed of; its loop over samples would warn."""
    Q, K, V = (torch.stack([t.detach(), 2 * t.detach()]) for t in heads())
    x, mask, rows = torch.randn(2, 3, 5, 24), padding()[:1].expand(3, 5), words()
    table = A(requires_grad=False)
    for function, inputs in [
        (lambda x: ops.cut_heads(x, 2, 4, 3)[1], (x,)),
        (lambda *t: ops.hypercomplex_attention_with_weights(*t, "quaternion")[0], (Q, K, V)),
        (lambda x: ops.split_activation(x, "tanh"), (x,)),
        (lambda x: ops.hypercomplex_layer_norm(x, torch.ones(24), torch.zeros(24), 4), (x,)),
        (lambda x: ops.hypercomplex_dropout(x, 0.0, True), (x,)),
        (lambda x: ops.whitening_norm(x, torch.arange(60.0).view(10, 6), torch.zeros(24), None, None, 4, True), (x.transpose(2, 3),)),
        (lambda x: ops.masked_mean(x, mask), (x,)),
        (lambda s: ops.embedding(rows, s, table), (doubles(2, 4, 3, 2, requires_grad=False),)),
        (lambda x: ops.hamilton_product(x, x, "quaternion"), (x,)),
        (lambda x: ops.hypercomplex_matching(x, x, "quaternion", 4), (x,)),
        (lambda A, B: torch.cat(ops.hypercomplex_alignment(A, B, torch.zeros(2, 3, dtype=torch.bool), padding(), "quaternion"), 1), (Q, K)),
        (lambda x: ops.hypercomplex_conjugate(x, "quaternion"), (x,)),
        (lambda x: ops.hypercomplex_norm(x, "quaternion"), (x,)),
    ]:
        expected = torch.stack([function(*sample) for sample in zip(*inputs, strict=True)])
        torch.testing.assert_close(torch.vmap(function)(*inputs), expected)
    for algebra in ("real", "quaternion"):  # torch's fused attention has no rule, its plain one has
        with sdpa_kernel(SDPBackend.MATH):
            got = torch.vmap(lambda *t: ops.hypercomplex_attention(*t, algebra))(Q, K, V)
            expected = torch.stack([ops.hypercomplex_attention(*t, algebra) for t in zip(Q, K, V, strict=True)])
            torch.testing.assert_close(got, expected)
            for each in (torch.randn(2, 3, 5).double(), torch.rand(2, 2, 1, 1, 5) < 0.7):  # masks of their own
                got = torch.vmap(lambda Q, K, V, mask: ops.hypercomplex_attention(Q, K, V, algebra, mask=mask, causal=True, offset=1))(Q, K, V, each)
                expected = [ops.hypercomplex_attention(*t, algebra, mask=mask, causal=True, offset=1) for *t, mask in zip(Q, K, V, each, strict=True)]
                torch.testing.assert_close(got, torch.stack(expected))


def test_batched_gradients_of_an_alignment():
    A, B, _ = (t.detach().float().requires_grad_() for t in heads())
    both = torch.cat(ops.hypercomplex_alignment(A, B, torch.zeros(2, 3, dtype=torch.bool), padding(), "quaternion"), 1)
    many = torch.randn(3, *both.shape)
    got = torch.autograd.grad(both, (A, B), many, is_grads_batched=True, retain_graph=True)
    for i, each in enumerate(zip(*got, strict=True)):
        torch.testing.assert_close(each, torch.autograd.grad(both, (A, B), many[i], retain_graph=True))


def test_gradient_of_a_mask_in_a_transform():
    Q, K, V = floats()
    mask = torch.randn(3, 5)
    for algebra in ("real", "quaternion"):

        def f(mask):
            return ops.hypercomplex_attention(Q, K, V, algebra, mask=mask).square().sum()

        got = torch.func.grad(f)(mask)
        leaf = mask.clone().requires_grad_()
        f(leaf).backward()
        torch.testing.assert_close(got, leaf.grad)
        assert got.abs().max() > 0.01


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_attention_keeps_the_kernel(dynamic):
    """In float32 on a CPU a compiled program calls the kernel, forward and backward."""
    nodes = []

    def keep(graph, inputs):
        nodes.extend(str(node.target) for node in graph.graph.nodes)
        return graph.forward

    backend = torch._dynamo.backends.common.aot_autograd(fw_compiler=keep, bw_compiler=keep)

    def f(Q, K, V, dropout, **options):
        return ops.hypercomplex_attention(Q, K, V, "quaternion", None, dropout, **options)

    compiled = torch.compile(f, fullgraph=True, backend=backend, dynamic=dynamic)
    for length in (5, 9):
        inputs = [torch.randn(2, length, 4, 2, 3, requires_grad=True) for _ in range(3)]
        for dropout in (0.0, 0.5):
            got, expected = (torch.autograd.grad(g(*inputs, dropout).square().sum(), inputs) for g in (compiled, f))
            assert all(torch.isfinite(g).all() for g in got)
            if dropout == 0:
                torch.testing.assert_close(got, expected)
    torch._dynamo.reset()
    for options in (dict(causal=True, offset=3), dict(causal=True, offset=-2), dict(mask=torch.randn(2, 1, 1, 9))):
        got, expected = (torch.autograd.grad(g(*inputs, 0.0, **options).square().sum(), inputs) for g in (compiled, f))
        torch.testing.assert_close(got, expected)
    for name in ("forward", "backward"):
        assert f"quatrain.hypercomplex_attention_{name}.default" in nodes


def test_attention_of_meta_tensors_is_traced():
    with torch._subclasses.FakeTensorMode():
        Q = torch.empty(2, 3, 4, 2, 3, device="meta")
        assert ops.hypercomplex_attention(Q, Q, Q, "quaternion").shape == (2, 3, 24)


@pytest.mark.filterwarnings("error:.*autograd kernel was not registered")
def test_second_derivatives_with_dropout_do_not_warn():
    Q = torch.randn(2, 3, 4, 2, 3, requires_grad=True)
    y = ops.hypercomplex_attention(Q, Q, Q, "quaternion", None, 0.5)
    (g,) = torch.autograd.grad(y.square().sum(), Q, create_graph=True)
    g.square().sum().backward()
    assert torch.isfinite(Q.grad).all()


def test_dropout_per_unit_drops_whole_numbers():
    y = ops.hypercomplex_dropout(torch.ones(1000, 8), 0.25, True, 4, True).view(1000, 4, 2)
    assert y.unique().tolist() == pytest.approx([0, 4 / 3])
    assert torch.equal(y[:, 0], y[:, 3])
    assert 0.7 < (y > 0).double().mean() < 0.8


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: ops.hypercomplex_attention(*heads(3), "quaternion"), RuntimeError, "needs n = 4 components"),
        (lambda: ops.hypercomplex_attention(*heads(), "real", padding()[:, :2]), RuntimeError, r"padding must be bool \(batch, keys\) = \(2, 5\)"),
        (lambda: ops.hypercomplex_attention(*heads(), "quaternoin"), ValueError, "did you mean quaternion"),
        (lambda: ops.hypercomplex_attention_forward(*floats(3), "quaternion"), RuntimeError, "needs n = 4 components"),
        (lambda: ops.hypercomplex_attention_forward(*floats(), "quaternion", padding()[:, :2]), RuntimeError, "padding must be bool"),
        (lambda: ops.hypercomplex_attention_forward(*floats(), "quaternion", None, 0.5), RuntimeError, "needs a seed with dropout"),
        (lambda: ops.hypercomplex_attention(*floats(), "quaternion", mask=torch.zeros(5, 3)), RuntimeError, r"mask must be bool or floating point and broadcast to \(batch, heads, queries, keys\) = \(2, 2, 3, 5\)"),
        (lambda: ops.hypercomplex_attention(*floats(), "quaternion", offset=2), RuntimeError, "offset is the place"),
        (lambda: ops.hypercomplex_attention(*floats(), "quaternion", order="value"), ValueError, "order must be one of query_key, key_query"),
        (lambda: ops.hypercomplex_attention(*(t.long() for t in heads()), "quaternion"), RuntimeError, "floating point"),
        (lambda: ops.cut_heads(doubles(2, 5, 10), 2**32, 2**32), RuntimeError, "divides"),
        (lambda: ops.hypercomplex_attention_backward(torch.zeros(2, 3, 24), *floats(3), "quaternion"), RuntimeError, "needs n = 4 components"),
        (lambda: ops.cut_heads(doubles(2, 5, 10), 2, 4), RuntimeError, "heads"),
        (lambda: ops.hypercomplex_layer_norm(doubles(3, 8), doubles(6), doubles(6)), RuntimeError, "width"),
        (lambda: ops.whitening_norm(doubles(3, 8), doubles(6, 2), doubles(8), None, None, 4, True), RuntimeError, r"weight must be .* = \(10, 2\)"),
        (lambda: ops.whitening_norm(doubles(3, 8), doubles(10, 2), doubles(8), None, None, 3, True), RuntimeError, r"x must be floating point \(batch, n c, ...\) with n = 3"),
        (lambda: ops.whitening_norm(doubles(3, 8), doubles(10, 2), doubles(8), None, None, 4, False), RuntimeError, "needs a running mean"),
        (lambda: ops.whitening_norm(doubles(3, 8), doubles(10, 2), doubles(8), torch.zeros(8), torch.zeros(4, 4, 1), 4, False), RuntimeError, r"running covariance \(n, n, c\) = \(4, 4, 2\)"),
        (lambda: ops.whitening_norm(doubles(1, 8), doubles(10, 2), doubles(8), None, None, 4, True), RuntimeError, "at least 2 values"),
        (lambda: ops.whitening_norm(torch.full((3, 8), 1e20), torch.randn(10, 2), torch.randn(8), torch.zeros(8), torch.zeros(4, 4, 2), 4, False, eps=0.0), torch.linalg.LinAlgError, "has no Cholesky factor with eps = 0: "),
        (lambda: ops.hypercomplex_dropout(doubles(3, 8), 1.5, True), ValueError, "between 0 and 1, got 1.5"),
        (lambda: ops.masked_mean(doubles(2, 5, 8), torch.zeros(2, 5)), RuntimeError, "bool"),
        (lambda: ops.split_activation(doubles(2), "rlu"), ValueError, "must be one of identity, relu"),
    ],
)
def test_refusals(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_operators_without_a_derivative_give_constants():
    """Torch's own answer for an operator that autograd does not know is a warning, and silently wrong gradients."""
    queries = torch.randn(2, 3, 4, 2, 3, requires_grad=True)
    mask = ops.attention_dropout_mask(queries, queries, 4, 0.5, torch.tensor([7]))
    y, products = ops.linear_with_products(doubles(5, 8), S(), None, "learned", A())
    assert not (mask.requires_grad or y.requires_grad or products.requires_grad)


@pytest.mark.parametrize("floating", [torch.double, torch.float])
def test_backward_of_attention_called_directly_is_differentiable_without_a_warning(floating):
    def f(*t):
        return ops.hypercomplex_attention_backward(*t, "quaternion", padding())

    tensors = [torch.randn(2, 3, 24, dtype=floating, requires_grad=True), *(t.detach().to(floating).requires_grad_() for t in heads())]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.autograd.backward([(g * g).sum() for g in f(*tensors)])
    assert all(t.grad is not None and t.grad.abs().sum() > 0 for t in tensors)
    if floating == torch.double:
        assert gradcheck(f, tensors)
