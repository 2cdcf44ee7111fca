"""The layers behave like torch's modules in what a user tries."""

import copy
import io
import pickle

import pytest
import torch
from quatrain import algebra, init, nn, ops
from quatrain.models import TextClassifier

ALGEBRAS = ["real", "quaternion", "phm(4)", "wkp(2)", "phm(4, trained_rank=6)"]


def layer(notation="quaternion", **options):
    return nn.Linear(8, 12, algebra=notation, **options)


def encoder(notation="quaternion", **options):
    return nn.TransformerEncoder(16, 2, 2, feed_forward=32, algebra=notation, **options)


def classifier(notation="quaternion", **options):
    return TextClassifier(50, 3, width=16, heads=2, feed_forward=32, algebra=notation, **options)


def by_definition(module, x):
    if module.factors is not None:
        A = torch.einsum("ir,br,ar->iab", *module.factors)
    else:
        A = module.A if module.A is not None else algebra.get(module.algebra).table.to(x.dtype)
    if module.w is not None:
        A = module.w[:, None, None] * A
    H = torch.einsum("iab,ipq->apbq", A, module.S).reshape(12, 8)
    return torch.nn.functional.linear(x, H, module.bias)


@pytest.mark.parametrize("notation", ALGEBRAS)
@pytest.mark.parametrize("training", [True, False])
def test_values(notation, training):
    module = layer(notation, dtype=torch.float64).train(training)
    torch.nn.init.normal_(module.bias)
    if module.w is not None:
        torch.nn.init.normal_(module.w)
    x = torch.randn(3, 5, 8, dtype=torch.float64)
    for _ in range(2):  # in eval mode the second call finds what the first prepared
        torch.testing.assert_close(module(x), by_definition(module, x))
    torch.testing.assert_close(torch.nn.functional.linear(x, module.weight, module.bias), module(x))


def test_real_encoder_is_torchs():
    mine = nn.TransformerEncoderLayer(16, 2, 32, algebra="real", packed=True, dtype=torch.float64)
    theirs = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dtype=torch.float64)
    names = {"attention.packed": "self_attn.in_proj", "attention.output": "self_attn.out_proj"}
    state = theirs.state_dict()
    with torch.no_grad():
        for name, p in mine.named_parameters():
            base, kind = name.rsplit(".", 1)
            base = names.get(base, base.removeprefix("feed_forward."))
            separator = "_" if base.endswith("in_proj") else "."
            p.copy_(state[f"{base}{separator}{'weight' if kind == 'S' else kind}"])
    x = torch.randn(3, 5, 16, dtype=torch.float64)
    padding = torch.zeros(3, 5, dtype=torch.bool)
    padding[1, 3:] = True
    y = theirs.eval()(x, src_key_padding_mask=padding)
    torch.testing.assert_close(mine.eval()(x, padding)[~padding], y[~padding])


def test_arguments_are_keywords_of_torch():
    module = nn.Linear(in_features=8, out_features=12, bias=False, algebra="phm(2)", device="cpu", dtype=torch.float64)
    assert module.bias is None and module.S.dtype == torch.float64
    assert repr(module) == "Linear(in_features=8, out_features=12, algebra=phm(2), bias=False)"
    assert list(layer("wkp(4)").state_dict()) == ["A", "w", "S", "bias"]
    assert list(layer("phm(1)").state_dict()) == ["S", "bias"]


def test_weight_is_read_only():
    module = layer()
    assert module.weight.shape == (12, 8) and module.weight.requires_grad
    assert module.weight.dtype == torch.float32 and module.weight.device.type == "cpu"
    with pytest.raises((AttributeError, KeyError)):
        module.weight = torch.nn.Parameter(torch.zeros(12, 8))
    module.weight.sum().backward()
    assert module.S.grad is not None


@pytest.mark.parametrize("make", [layer, encoder, classifier])
@pytest.mark.parametrize("notation", ALGEBRAS)
def test_state_dicts_are_strict(make, notation):
    torch.manual_seed(1)
    one, two = make(notation), make(notation)
    assert two.load_state_dict(one.state_dict(), strict=True).missing_keys == []
    for name, p in two.state_dict().items():
        assert torch.equal(p, one.state_dict()[name])
    with pytest.raises(RuntimeError, match="Missing key"):
        two.load_state_dict({}, strict=True)


@pytest.mark.parametrize("notation", ALGEBRAS)
def test_load_state_dict_in_eval_mode_forgets_what_was_prepared(notation):
    one, two, x = layer(notation).eval(), layer(notation).eval(), torch.randn(3, 8)
    with torch.no_grad():
        two(x)
        two.load_state_dict(one.state_dict())
        assert torch.equal(two(x), one(x))
        two.load_state_dict({name: 2 * p for name, p in one.state_dict().items()}, assign=True)
        torch.testing.assert_close(two(x), by_definition(two, x))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
@pytest.mark.parametrize("notation", ALGEBRAS)
def test_copies_share_nothing(copied, notation):
    module, x = layer(notation).eval(), torch.randn(3, 8)
    module.factorize()
    with torch.no_grad():
        y = module(x)
        other = copied(module)
        assert torch.equal(other(x), y)
        for p in other.parameters():
            p.add_(1)
        other.train().eval()
        assert torch.equal(module(x), y)
        torch.testing.assert_close(other(x), by_definition(other, x))
    mine = {t.untyped_storage().data_ptr() for t in (*module.parameters(), *(module.weights()[0].factored or ()))}
    theirs = {t.untyped_storage().data_ptr() for t in (*other.parameters(), *(other.weights()[0].factored or ()))}
    assert not mine & theirs


def test_copies_of_a_training_layer_take_its_factors_along():
    module, x = nn.Linear(64, 64, algebra="phm(4)", way="factored"), torch.randn(256, 64)
    module(x).sum().backward()
    before = ops.structure_report(module.A)
    assert before.rank > 0
    assert ops.structure_report(copy.deepcopy(module).A).rank == before.rank


@pytest.mark.parametrize("make", [encoder, classifier])
def test_models_copy_and_pickle(make):
    module = make("phm(2)").eval()
    x = torch.randint(1, 50, (2, 5)) if make is classifier else torch.randn(2, 5, 16)
    buffer = io.BytesIO()
    torch.save(module, buffer)
    buffer.seek(0)
    for other in (copy.deepcopy(module), torch.load(buffer, weights_only=False)):
        assert torch.equal(other(x), module(x))


@pytest.mark.parametrize("notation", ALGEBRAS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.half])
def test_to_dtype(notation, dtype):
    module, x = layer(notation).eval(), torch.randn(3, 8)
    with torch.no_grad():
        module(x)
        expected = module.double()(x.double())
        y = module.to(dtype)(x.to(dtype))
    assert y.dtype == dtype and {p.dtype for p in module.parameters()} == {dtype}
    tolerance = {torch.float64: 1e-6, torch.bfloat16: 6e-2, torch.half: 1e-2}[dtype]
    torch.testing.assert_close(y.double(), expected, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("notation", ["quaternion", "phm(4)"])
def test_half_models(notation):
    tokens = torch.randint(1, 50, (2, 5))
    model = classifier(notation).eval()
    with torch.no_grad():
        expected = model(tokens)
        torch.testing.assert_close(model.half()(tokens).float(), expected, atol=3e-2, rtol=3e-2)


@pytest.mark.parametrize("make", [layer, encoder, classifier])
@pytest.mark.parametrize("notation", ALGEBRAS)
def test_meta_device(make, notation):
    module = make(notation, device="meta")
    assert all(p.is_meta for p in module.parameters())
    with torch.device("meta"):
        assert all(p.is_meta for p in make(notation).parameters())
    other = make(notation)
    module.to_empty(device="cpu").load_state_dict(other.state_dict())
    if make is layer:
        torch.testing.assert_close(module(torch.ones(1, 8)), other(torch.ones(1, 8)))
        torch.manual_seed(3)
        module.reset_parameters()
        torch.manual_seed(3)
        assert torch.equal(module.S, make(notation).S)


@pytest.mark.parametrize("notation", ["real", "quaternion", "phm(4)"])
def test_embeddings_leave_the_meta_device(notation):
    """By every way that torch has; the table of a fixed algebra is no parameter, and comes along."""
    tokens, wanted = torch.arange(8), nn.Embedding(8, 8, algebra=notation)

    def on_meta():
        with torch.device("meta"):
            return nn.Embedding(8, 8, algebra=notation)

    module = on_meta().to_empty(device="cpu")
    assert not list(module.buffers())  # to_empty leaves them empty
    module.load_state_dict(wanted.state_dict())
    assert torch.equal(module(tokens), wanted(tokens))
    module = on_meta()
    module.load_state_dict(wanted.state_dict(), assign=True)
    assert torch.equal(module(tokens), wanted(tokens))
    torch.testing.assert_close(torch.compile(module, fullgraph=True, backend="aot_eager")(tokens), wanted(tokens))
    assert torch.equal(torch.func.functional_call(on_meta(), dict(wanted.named_parameters()), (tokens,)), wanted(tokens))
    module = on_meta().to_empty(device="cpu")
    torch.manual_seed(3)
    module.reset_parameters()
    torch.manual_seed(3)
    assert torch.equal(module(tokens), nn.Embedding(8, 8, algebra=notation)(tokens))


def test_embeddings_keep_the_numbers_of_their_table():
    algebra.add("thirds", torch.tensor([[[1, 0], [0, 1]], [[0, 1 / 3], [1, 0]]]))
    module, tokens = nn.Embedding(8, 8, algebra="thirds"), torch.arange(8)
    module.bfloat16().double()
    torch.testing.assert_close(module(tokens), module.matrix()[tokens], rtol=1e-12, atol=1e-12)


def test_norms_start_anew():
    norm = nn.WhiteningNorm(8, device="meta").to_empty(device="cpu")
    for tensor in norm.state_dict().values():
        tensor.fill_(9)
    norm.reset_parameters()
    torch.testing.assert_close(norm.state_dict(), nn.WhiteningNorm(8).state_dict())


def test_meta_forward_gives_shapes():
    assert layer(device="meta")(torch.empty(5, 8, device="meta")).shape == (5, 12)
    assert encoder(device="meta", dtype=torch.half).layers[0].norm1.weight.dtype == torch.half


@pytest.mark.parametrize("notation", ["real", "quaternion", "phm(4)", "wkp(4)"])
def test_fake_tensors_go_through_layers_made_among_them(notation):
    with torch._subclasses.FakeTensorMode():
        embedding = nn.Embedding(8, 16, algebra=notation)
        assert embedding(torch.arange(8)).shape == (8, 16)
        assert embedding.scores(torch.empty(2, 16)).shape == (2, 8)
        assert layer(notation)(torch.empty(5, 8)).shape == (5, 12)
        assert nn.LSTM(8, 16, algebra=notation)(torch.empty(3, 2, 8))[0].shape == (3, 2, 16)
        assert nn.Conv2d(8, 16, 3, algebra=notation)(torch.empty(2, 8, 5, 5)).shape == (2, 16, 3, 3)


def test_initialisation_by_generator():
    S = [init.glorot_(torch.empty(4, 3, 2), generator=torch.Generator().manual_seed(5)) for _ in range(2)]
    assert torch.equal(*S)
    A = init.random_structure_(torch.empty(4, 4, 4), torch.Generator().manual_seed(5))
    torch.testing.assert_close(A.norm(dim=0), torch.ones(4, 4))
    assert init.structure_power(A) == pytest.approx(1) and init.structure_power("dual") == 0.75
    assert torch.equal(init.table_structure_(torch.empty(4, 4, 4), "quaternion").double(), algebra.get("quaternion").table)
    assert torch.equal(init.identity_structure_(torch.empty(3, 3, 3))[0], torch.eye(3))
    assert init.real_fans(torch.empty(4, 3, 2)) == (8, 12)
    S = init.lecun_(torch.empty(4, 64, 64))
    assert S.var().item() * 4 * 64 == pytest.approx(1, rel=0.1)
    for fill in (init.glorot_, init.he_, init.polar_, init.polar_paper_):
        wide, one = (fill(torch.empty(4, 30, 2), generator=torch.Generator().manual_seed(5), maps=maps) for maps in (3, 1))
        fans = [sum(init.real_fans(one, maps)) if fill is not init.he_ else 8 for maps in (3, 1)]
        torch.testing.assert_close(wide * fans[0] ** 0.5, one * fans[1] ** 0.5)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: nn.Linear(510, 8, algebra="quaternion"), ValueError, r"in_features must be divisible by n = 4, got 510 \(nearest: 508, 512\)"),
        (lambda: nn.Linear(8, 2, algebra="quaternion"), ValueError, r"out_features .* got 2 \(nearest: 4\)"),
        (lambda: nn.Linear(8, 0), ValueError, "out_features must be positive, got 0"),
        (lambda: nn.Linear(8, 8, algebra="quaternoin"), ValueError, "did you mean quaternion"),
        (lambda: nn.Linear(8, 8, algebra=True), TypeError, "algebra must be a text"),
        (lambda: nn.Linear(8, 8, initialiser="xavier"), ValueError, "initialiser must be one of glorot, he"),
        (lambda: nn.Linear(8, 8, way="fast"), ValueError, "way must be one of auto, factored"),
        (lambda: layer()(torch.randn(3, 7)), RuntimeError, "in_features = 8"),
        (lambda: layer()(torch.tensor(1.0)), RuntimeError, "at least one axis"),
        (lambda: layer()(torch.randn(3, 8).double()), RuntimeError, "convert one"),
        (lambda: layer()(torch.ones(3, 8, dtype=torch.int64)), RuntimeError, "floating point"),
        (lambda: layer()(torch.empty(3, 8, device="meta")), RuntimeError, "meta"),
        (lambda: nn.dropout(torch.ones(4), 7.0, False), ValueError, "dropout: p must be between 0 and 1, got 7.0"),
        (lambda: init.identity_structure_(torch.zeros(3, 4, 4)), ValueError, r"^identity_structure_: A must be \(n, n, n\), got \[3, 4, 4\]"),
        (lambda: init.random_structure_(torch.tensor(1.0)), ValueError, r"^random_structure_: A must be \(n, n, n\), got \[\]"),
        (lambda: init.structure_power(torch.zeros(3, 4, 4)), ValueError, r"structure_power: A must be \(n, n, n\), got \[3, 4, 4\]"),
        (lambda: init.initialise_structure_(torch.zeros(3, 3, 3), "phm(4)"), ValueError, r"with n = 4 for phm\(4\), got \[3, 3, 3\]"),
        (lambda: nn.LayerNorm(8, eps=-1.0), ValueError, "LayerNorm: eps must be a finite number that is at least 0, got -1.0"),
        (lambda: nn.WhiteningNorm(8, eps=float("nan")), ValueError, "WhiteningNorm: eps must be a finite number that is at least 0, got nan"),
        (lambda: nn.WhiteningNorm(8, momentum=1.5), ValueError, "WhiteningNorm: momentum must be between 0 and 1, got 1.5"),
        (lambda: nn.Dropout(1.5), ValueError, "Dropout: p must be between 0 and 1, got 1.5"),
        (lambda: nn.LayerNorm(10, n=4, per_component=True), ValueError, "divisible by n = 4"),
        (lambda: nn.Activation("rlu"), ValueError, "activation must be one of identity"),
        (lambda: nn.MultiheadAttention(16, 3, algebra="quaternion"), ValueError, r"n \* heads = 12, got 16"),
        (lambda: nn.MultiheadAttention(16, 2, algebra="phm(4)", attention="componentwise"), ValueError, "needs a fixed algebra"),
        (lambda: nn.MultiheadAttention(16, 2, packed=True)(*torch.randn(3, 2, 5, 16)), ValueError, "self-attention only"),
        (lambda: nn.MultiheadAttention(16, 2)(*torch.randn(3, 16)), ValueError, r"query must be \(batch, length, width = 16\)"),
        (lambda: nn.TransformerEncoderLayer(16, 2, norm="pre", printed=True), ValueError, "printed is a form of norm = post or phydi"),
        (lambda: nn.Linear(8, 8, algebra="quaternion", maps=3), ValueError, r"divisible by n \* maps = 12, got 8"),
        (lambda: nn.TransformerEncoder(16, 2, 0), ValueError, "layers must be at least 1"),
        (lambda: encoder(norm="sandwich"), ValueError, "norm must be one of post, pre, phydi"),
        (lambda: classifier()(torch.zeros(5, dtype=torch.int64)), ValueError, r"tokens must be \(batch, length\)"),
        (lambda: nn.to_concatenated(torch.zeros(5), 2), ValueError, "divisible by n = 2"),
        (lambda: nn.MultiheadAttention(16, 2, packed="yes"), TypeError, "MultiheadAttention: packed must be True or False, got 'yes'$"),
        (lambda: nn.WhiteningNorm(16, "4"), TypeError, "WhiteningNorm: n must be an int, got '4'"),
        (lambda: nn.WhiteningNorm(16, eps="4"), TypeError, "WhiteningNorm: eps must be a number, got '4'"),
        (lambda: nn.WhiteningNorm(16, momentum=None), TypeError, "WhiteningNorm: momentum must be a number, got None .there is no average"),
    ],
)
def test_refusals(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_algebras_of_ones_own(tmp_path):
    table = algebra.get("quaternion").table
    mine = algebra.add("mine", -table)
    assert mine.n == 4 and "mine" in algebra.names() and torch.equal(mine.table, -table)
    U, V, W = algebra.get("quaternion").factors
    assert algebra.add("mine_fast", -table, factors=(-U, V, W)).rank == 8
    with pytest.raises(ValueError, match="mine"):
        algebra.add("mine", table)
    with pytest.raises(ValueError, match=r"\(n, n, n\)"):
        algebra.add("flat", torch.zeros(4, 4))
    (tmp_path / "a.toml").write_text('name = "from_file"\nn = 1\ntable = [[0, 0, 0, 2.0]]\n')
    assert algebra.add_from_file(tmp_path / "a.toml").table.item() == 2
    with pytest.raises(ValueError, match="take real"):
        nn.Embedding(8, 4, algebra="from_file")
    one, two = (nn.Linear(8, 12, algebra=name, bias=False) for name in ("mine", "quaternion"))
    two.load_state_dict(dict(one.state_dict()))  # a plain dictionary knows no algebra
    x = torch.randn(3, 8)
    torch.testing.assert_close(one(x), -two(x))


@pytest.mark.parametrize("algebra", ["real", "quaternion", "phm(4)"])
@pytest.mark.parametrize("packed", [False, True])
def test_projecting_apart_from_attending(algebra, packed):
    module = nn.MultiheadAttention(16, 2, algebra=algebra, packed=packed)
    x, mask = torch.randn(3, 6, 16), torch.ones(6, 6, dtype=torch.bool).tril()
    whole = module.self_attention(x, causal=True)
    torch.testing.assert_close(module.self_attention(x, mask=mask), whole)
    torch.testing.assert_close(module(x, x, x, need_weights=True, causal=True)[0], whole)
    Q, K, V = module.project(x)
    torch.testing.assert_close(module.attend(Q[:, 4:], K, V, causal=True, offset=4)[0], whole[:, 4:])
    y, weights = module.attend(Q[:, 4:], K, V, need_weights=True, causal=True, offset=4)
    torch.testing.assert_close(y, whole[:, 4:])
    assert weights.shape[-2:] == (2, 6) and weights[..., 0, 5].abs().max() == 0
    if packed:
        with pytest.raises(ValueError, match="call project"):
            module.project_query(x)
        with pytest.raises(ValueError, match="call project"):
            module.project_key_value(x, x)
    else:
        memory = torch.randn(3, 4, 16)
        K, V = module.project_key_value(memory, memory)
        torch.testing.assert_close(module.attend(module.project_query(x), K, V)[0], module(x, memory, memory)[0])


def test_layouts():
    x = torch.randn(3, 8)
    assert torch.equal(nn.to_interleaved(nn.to_concatenated(x, 4), 4), x)
    assert nn.to_concatenated(torch.arange(8), 4).tolist() == [0, 4, 1, 5, 2, 6, 3, 7]


def test_parameter_report():
    report = nn.parameter_report(classifier("quaternion").requires_grad_(False))
    assert report.embeddings == 50 * 16 and report.trainable == 0
    assert report.total == report.embeddings + report.encoder + 16 * 3 + 3


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    ("make", "sizes"),
    [
        (lambda **o: nn.Linear(16, 8, **o), (0, 16)),
        (lambda **o: nn.Conv2d(64, 64, 3, **o), (0, 64, 8, 8)),
        (lambda **o: nn.Conv2d(64, 64, 1, **o), (0, 64, 8, 8)),
        (lambda **o: nn.LSTM(16, 16, **o), (5, 0, 16)),
        (lambda **o: nn.FeedForward(16, 32, **o), (0, 16)),
    ],
    ids=["linear", "convolution", "pointwise", "lstm", "feed_forward"],
)
def test_nothing_needs_no_factors(make, sizes, training):
    layer = make(algebra="phm(4)", way="factored").train(training)
    y = layer(torch.randn(sizes, requires_grad=True))
    y = y[0] if isinstance(y, tuple) else y
    assert y.numel() == 0
    y.sum().backward()
