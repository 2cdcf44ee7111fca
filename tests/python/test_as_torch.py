"""What somebody who knows torch.nn expects of a layer, and what would be wrong in silence."""

import copy
import inspect
import pickle
import re
import warnings

import pytest
import torch
from torch import nn
from torch.nn.utils import prune

import quatrain
from quatrain.nn import Linear

WRITES = {
    "zeros_": nn.init.zeros_,
    "normal_": nn.init.normal_,
    "xavier_uniform_": nn.init.xavier_uniform_,
    "orthogonal_": nn.init.orthogonal_,
    "data.zero_": lambda weight: weight.data.zero_(),
    "detach().zero_": lambda weight: weight.detach().zero_(),
    "copy_": lambda weight: weight.copy_(torch.zeros(12, 8)),
    "row": lambda weight: weight[0].mul_(2),
    "transposed": lambda weight: weight.T.mul_(2),
    "setitem": lambda weight: weight.__setitem__(0, 1.0),
    "data = ": lambda weight: setattr(weight, "data", torch.zeros(12, 8)),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
@pytest.mark.parametrize("grad", [True, False])
def test_writes_into_the_matrix_are_told(write, grad):
    layer = Linear(8, 12)
    before = layer.S.detach().clone()
    with torch.set_grad_enabled(grad), pytest.raises(RuntimeError, match="write into layer.S|leaf|requires grad"):
        write(layer.weight)
    assert torch.equal(layer.S, before)


def test_the_matrix_reads_as_any_tensor():
    layer, x = Linear(8, 12), torch.randn(3, 8)
    H = layer.weight
    assert isinstance(H, torch.Tensor) and not isinstance(H, nn.Parameter)
    for result in (x @ H.T, nn.functional.linear(x, H), H.clone(), H * 2, H.double(), H.sum()):
        assert type(result) is torch.Tensor
    torch.testing.assert_close(nn.functional.linear(x, H, layer.bias), layer(x))
    assert type(pickle.loads(pickle.dumps(H.detach()))) is torch.Tensor
    assert type(copy.deepcopy(H.detach())) is torch.Tensor
    assert H.detach().clone().zero_().abs().sum() == 0  # a copy is one's own
    H.square().sum().backward()
    assert layer.S.grad is not None and layer.S.grad.abs().sum() > 0
    with pytest.raises(AttributeError, match="weight is the matrix H, computed from S and A, and cannot be set"):
        layer.weight = nn.Parameter(torch.zeros(12, 8))


FREEZES = {
    "method": lambda weight: weight.requires_grad_(False),
    "named": lambda weight: weight.requires_grad_(requires_grad=False),
    "attribute": lambda weight: setattr(weight, "requires_grad", False),
}


@pytest.mark.parametrize("freeze", FREEZES.values(), ids=FREEZES.keys())
def test_who_freezes_the_matrix_is_told_what_to_freeze(freeze):
    layer = Linear(8, 12)
    with pytest.raises(RuntimeError, match="freeze layer.S"):
        freeze(layer.weight)
    assert layer.weight.requires_grad_().requires_grad
    layer.S.requires_grad_(False)
    freeze(layer.weight)
    assert not layer.weight.requires_grad


def test_arguments_stand_as_torchs():
    assert Linear(8, 12, False).bias is None
    assert Linear(8, 12, True, "cpu", torch.float64).S.dtype == torch.float64
    assert Linear(8, 12).algebra == "quaternion"
    assert quatrain.nn.MultiheadAttention(16, 2, 0.1, False).output.bias is None
    assert quatrain.nn.TransformerEncoderLayer(16, 2, 32, 0.2).dropout == 0.2
    with pytest.raises(TypeError, match=r"bias must be True or False, got 'phm\(4\)' \(the algebra is named"):
        Linear(8, 12, "phm(4)")
    with pytest.raises(ValueError, match="in_features must be divisible by n = 4, got 6"):
        Linear(6, 12)
    for ours, theirs, arguments in (
        (quatrain.nn.RNN, nn.RNN, (8, 8, 2, "relu", False, True)),
        (quatrain.nn.RNNCell, nn.RNNCell, (8, 8, False, "relu")),
    ):
        mine, real, x = ours(*arguments), theirs(*arguments), torch.randn(2, 3, 8)
        assert mine.cell == "rnn_" + real.nonlinearity and mine.bias is real.bias is False
        assert getattr(mine, "batch_first", None) == getattr(real, "batch_first", None)
        with pytest.raises(TypeError, match="nonlinearity is given twice, as the fourth argument 'relu' and as 'tanh'"):
            ours(*arguments, nonlinearity="tanh")
        with pytest.raises(ValueError, match="nonlinearity must be one of tanh, relu; got False"):
            ours(*arguments[:3], False)
    assert quatrain.nn.Embedding(8, 8, device="cpu", dtype=torch.float64).S.dtype == torch.float64
    for padding_idx in (0, "quaternion"):
        with pytest.raises(TypeError, match="positional"):
            quatrain.nn.Embedding(8, 8, padding_idx)


CONVOLUTIONS = [kind + f"{axes}d" for kind in ("Conv", "ConvTranspose") for axes in (1, 2, 3)]
RECURRENT = ["LSTM", "GRU", "RNN", "LSTMCell", "GRUCell", "RNNCell"]


@pytest.mark.parametrize("kind", ["Linear", *CONVOLUTIONS, *RECURRENT, "Embedding", "LayerNorm", "Dropout"])
def test_forward_names_its_arguments_as_torch_does(kind):
    names = [list(inspect.signature(getattr(module, kind).forward).parameters) for module in (quatrain.nn, nn)]
    assert names[0] == names[1]
    assert names[0][1] == "input"


def test_other_layers_call_their_input_so_too():
    x = torch.randn(3, 8)
    for layer in (quatrain.nn.Activation("relu"), quatrain.nn.WhiteningNorm(8), quatrain.nn.Linear(8, 8), quatrain.nn.LayerNorm(8)):
        layer.eval()
        assert torch.equal(layer(input=x), layer(x))
    layer, state = quatrain.nn.GRU(8, 8), torch.randn(1, 8)
    torch.testing.assert_close(layer(input=x, hx=state), layer(x, state))


@pytest.mark.parametrize(
    "kind, options",
    [(kind, {}) for kind in CONVOLUTIONS]
    + [
        ("Conv1d", dict(padding=1, dilation=2, groups=2)),
        ("Conv2d", dict(padding="same", padding_mode="reflect")),
        ("Conv2d", dict(padding=[1, 0], stride=[2, 1])),
        ("Conv3d", dict(padding="valid")),
        ("ConvTranspose1d", dict(stride=2, padding=1, output_padding=1)),
        ("ConvTranspose3d", dict(stride=(2, 2, 3), output_padding=(1, 1, 2), dilation=2)),
    ],
)
def test_attributes_of_convolutions_are_torchs(kind, options):
    ours, theirs = (getattr(module, kind)(8, 16, 3, **options) for module in (quatrain.nn, nn))
    for name in ("kernel_size", "stride", "padding", "dilation", "output_padding", "transposed", "padding_mode", "groups"):
        mine, real = getattr(ours, name), getattr(theirs, name)
        assert type(mine) is type(real) and mine == real, name
    mine, real = (set(re.findall(r"\w+=(?:\([^)]*\)|\w+)", repr(layer))) for layer in (ours, theirs))
    assert mine == real | {"algebra=quaternion", "bias=True"}


@pytest.mark.parametrize(
    "kind, options, shown",
    [("LSTM", dict(batch_first=True, proj_size=4), {"batch_first=True", "proj_size=4"}), ("GRU", dict(batch_first=True), {"batch_first=True"}), ("RNN", {}, set())],
)
def test_recurrent_layers_print_what_is_unusual(kind, options, shown):
    printed = repr(getattr(quatrain.nn, kind)(8, 8, **options))
    assert {part for part in ("batch_first=True", "batch_first=False", "proj_size=4", "proj_size=0") if part in printed} == shown


def test_recurrent_layers_name_their_mode():
    for kind, options in (("LSTM", {}), ("GRU", {}), ("RNN", {}), ("RNN", dict(nonlinearity="relu"))):
        ours, theirs = (getattr(module, kind)(8, 8, **options) for module in (quatrain.nn, nn))
        assert ours.mode == theirs.mode
    assert quatrain.nn.LSTM(8, 8, printed=True).mode == "LSTM"


def test_dropout_without_a_layer_above_is_warned_of():
    with pytest.warns(UserWarning, match="^LSTM: dropout is between the layers, so dropout = 0.5 does nothing with num_layers = 1$") as caught:
        quatrain.nn.LSTM(8, 8, dropout=0.5)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quatrain.nn.LSTM(8, 8, 2, dropout=0.5)
        quatrain.nn.GRU(8, 8)


@pytest.mark.parametrize("algebra", ["real", "quaternion", "wkp(4)"])
def test_embeddings_have_torchs_weight(algebra):
    layer, tokens = quatrain.nn.Embedding(12, 8, algebra=algebra), torch.arange(12)
    assert layer.weight.shape == (12, 8)
    torch.testing.assert_close(nn.functional.embedding(tokens, layer.weight), layer(tokens))
    with pytest.raises(RuntimeError, match="write into layer.S"), torch.no_grad():
        layer.weight[0].zero_()
    with pytest.raises(AttributeError, match="Embedding: weight is the matrix H, computed from S and A, and cannot be set"):
        layer.weight = nn.Parameter(torch.zeros(12, 8))


def test_state_dicts_know_their_algebra(tmp_path):
    quaternion, split = (nn.Sequential(Linear(8, 8, algebra=a)) for a in ("quaternion", "split_quaternion"))
    with pytest.raises(RuntimeError, match="layer '0' was trained with the algebra quaternion .*, the model has split_quaternion"):
        split.load_state_dict(quaternion.state_dict())
    with pytest.raises(RuntimeError, match="was trained with the algebra"):
        split.load_state_dict(quaternion.state_dict(), strict=False)
    torch.save(quaternion.state_dict(), tmp_path / "state.pt")
    stored = torch.load(tmp_path / "state.pt", weights_only=True)
    with pytest.raises(RuntimeError, match="was trained with the algebra"):
        split.load_state_dict(stored)
    nn.Sequential(Linear(8, 8)).load_state_dict(stored)
    # A learned tensor is in the state itself, wherever it started.
    learned = Linear(8, 8, algebra="phm(quaternion)").state_dict()
    Linear(8, 8, algebra="phm(4)").load_state_dict(learned)
    # A plain dictionary, as other libraries keep it, says nothing and is taken.
    split.load_state_dict(dict(quaternion.state_dict()))


def test_convert_keeps_what_a_new_layer_would_lose():
    model = nn.Sequential(*(nn.Linear(8, 8) for _ in range(6)))
    model[0].register_forward_hook(lambda layer, given, y: 0 * y)
    model[1].register_full_backward_hook(lambda layer, *grads: None)
    prune.l1_unstructured(model[2], "weight", 0.5)
    with pytest.warns(FutureWarning):
        nn.utils.weight_norm(model[3])
    nn.utils.parametrizations.weight_norm(model[4])
    x = torch.randn(3, 8)
    kept = model[:5](x)
    model, report = quatrain.convert(model, "quaternion")
    assert report.converted == 1
    torch.testing.assert_close(model[:5](x), kept)
    for layer, words in zip(report.layers, ["hooks", "hooks", "computed from others", "computed from others", "computed from others"]):
        assert words in layer.skipped

    for lazy, x in ((nn.LazyLinear(8), torch.zeros(1, 8)), (nn.LazyConv2d(8, 3), torch.zeros(1, 8, 3, 3)), (nn.LazyConvTranspose1d(8, 3), torch.zeros(1, 8, 3))):
        model, report = quatrain.convert(nn.Sequential(lazy), "quaternion")
        assert report.layers[0].skipped == "is lazy and has no weights yet: give the model an input first, then convert it"
        model(x)
        assert quatrain.convert(model, "quaternion")[1].converted == 1
    with pytest.raises(ValueError, match="the weights of '0' are on the meta device"):
        quatrain.convert(nn.Sequential(nn.Linear(8, 8, device="meta")), "quaternion")
    assert quatrain.convert(nn.Sequential(nn.Linear(8, 8, device="meta")), "quaternion", fresh=True)[1].converted == 1


@pytest.mark.parametrize("algebra", ["real", "quaternion", "phm(4)"])
@pytest.mark.parametrize("packed", [False, True])
def test_attention_takes_torchs_words(algebra, packed):
    attention = quatrain.nn.MultiheadAttention(16, 2, algebra=algebra, packed=packed)
    x = torch.randn(3, 5, 16)
    padding = torch.zeros(3, 5, dtype=torch.bool)
    padding[1, 3:] = True
    sees = torch.rand(5, 5) > 0.3
    sees.fill_diagonal_(True)
    added = torch.randn(3, 2, 5, 5)

    def same(ours, torchs):
        torch.testing.assert_close(attention(x, x, x, **ours)[0], attention(x, x, x, **torchs)[0])

    same({"padding": padding}, {"key_padding_mask": padding})
    same({"causal": True}, {"is_causal": True})
    same({"mask": sees}, {"attn_mask": ~sees})
    same({"mask": added}, {"attn_mask": added.flatten(0, 1)})
    with pytest.raises(ValueError, match="mask and attn_mask say the same"):
        attention(x, x, x, mask=sees, attn_mask=~sees)

    whole, weights = attention(x, x, x, padding, True)
    one = x[1]
    alone, own = attention(one, one, one, padding[1], True)
    torch.testing.assert_close(alone, whole[1])
    torch.testing.assert_close(own, weights[1])


def test_a_torch_mask_hides_what_it_hides_in_torch():
    theirs = nn.MultiheadAttention(16, 2, batch_first=True).eval()
    ours = quatrain.nn.MultiheadAttention(16, 2, algebra="real", packed=True).eval()
    with torch.no_grad():
        ours.packed.S.copy_(theirs.in_proj_weight[None]), ours.packed.bias.copy_(theirs.in_proj_bias)
        ours.output.S.copy_(theirs.out_proj.weight[None]), ours.output.bias.copy_(theirs.out_proj.bias)
    x, hidden = torch.randn(3, 5, 16), torch.rand(6, 5, 5) > 0.6
    hidden[:, :, 0] = False
    for mask in (hidden, hidden[0], torch.randn(5, 5)):
        torch.testing.assert_close(ours(x, x, x, attn_mask=mask)[0], theirs(x, x, x, attn_mask=mask)[0])
    # A floating padding is added to the scores.
    padding = torch.randn(3, 5)
    padding[1, 3:] = -torch.inf
    for mask in (None, hidden, torch.randn(5, 5)):
        floating = torch.zeros(hidden.shape).masked_fill(hidden, -torch.inf) if mask is hidden else mask  # torch wants one type
        expected = theirs(x, x, x, key_padding_mask=padding, attn_mask=floating)[0]
        torch.testing.assert_close(ours(x, x, x, key_padding_mask=padding, attn_mask=mask)[0], expected)
    one = x[1]
    expected = theirs(one, one, one, key_padding_mask=padding[1])[0]
    torch.testing.assert_close(ours(one, one, one, padding[1])[0], expected)


def test_profiles_name_the_operators():
    layer = Linear(8, 12)
    names = [layer(torch.randn(2, 8)).grad_fn.name()]
    with torch.profiler.profile() as profile:
        layer(torch.randn(2, 8)).sum().backward()
    names += [event.key for event in profile.key_averages()]
    assert any("quatrain::ops::autograd::Linear" in name for name in names)
    assert not any("anonymous" in name for name in names)


def test_the_version_is_the_librarys():
    assert quatrain.__version__ == torch.ops.quatrain.version() and quatrain.__version__[0].isdigit()


@pytest.mark.parametrize("kind", [Linear, quatrain.nn.LSTM, quatrain.nn.GRUCell])
def test_scripts_are_told_what_they_cannot_read(kind):
    with pytest.raises(TypeError, match="torch.jit.script cannot read this layer: take torch.jit.trace"):
        torch.jit.script(torch.nn.Sequential(torch.nn.ReLU(), kind(8, 8)))


def test_fx_is_told_what_it_cannot_trace():
    with pytest.raises(TypeError, match="Conv2d: torch.fx goes into this layer.*is_leaf_module"):
        torch.fx.symbolic_trace(nn.Sequential(quatrain.nn.Conv2d(8, 8, 3)))

    class Tracer(torch.fx.Tracer):
        def is_leaf_module(self, m, name):
            return isinstance(m, quatrain.nn.HypercomplexLayer) or super().is_leaf_module(m, name)

    model, x = nn.Sequential(quatrain.nn.Conv2d(8, 8, 3), nn.ReLU()), torch.randn(2, 8, 6, 6)
    torch.testing.assert_close(torch.fx.GraphModule(model, Tracer().trace(model))(x), model(x))


def test_a_flag_is_no_number():
    with pytest.raises(TypeError, match="Dropout: n must be an int, got True"):
        quatrain.nn.Dropout(0.5, True)  # torch's second argument is inplace


@pytest.mark.parametrize("layer, before", [(quatrain.nn.RNN, (8, 8, 1)), (quatrain.nn.RNNCell, (8, 8, True))])
def test_the_fourth_argument_of_an_rnn_is_shown(layer, before):
    arguments = inspect.signature(layer).parameters
    assert list(arguments)[3] == "nonlinearity" and arguments["nonlinearity"].default == "tanh"
    assert layer(*before, "relu").cell == "rnn_relu"
