"""Conversion of real models, and factors of learned ones."""

import pytest
import quatrain
import torch
from quatrain import nn, ops
from quatrain.models import TextClassifier


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(8, 16)
        self.first = torch.nn.Linear(16, 16)
        self.again = self.first  # one layer in two places
        self.head = torch.nn.Linear(16, 8, bias=False)
        self.head.weight = self.embedding.weight
        self.odd = torch.nn.Linear(16, 3)

    def forward(self, x):
        return self.head(self.again(self.first(self.embedding(x))))


@pytest.mark.parametrize("algebra", ["quaternion", "phm(4)", "wkp(4)"])
def test_a_model_that_is_hypercomplex_converts_without_error(algebra):
    layer = nn.Linear(16, 24, algebra="quaternion", dtype=torch.float64)
    real = torch.nn.Linear(16, 24, dtype=torch.float64)
    with torch.no_grad():
        real.weight.copy_(layer.weight)
    x = torch.randn(5, 16, dtype=torch.float64)
    expected = real(x)
    (converted,), report = quatrain.convert(torch.nn.Sequential(real), algebra)
    torch.testing.assert_close(converted(x), expected)
    assert report.layers[0].error < 1e-12 and report.converted == 1 and converted.S.dtype == torch.float64


def test_the_nearest_weights():
    real = torch.nn.Linear(8, 8, bias=False, dtype=torch.float64)
    layer, report = quatrain.convert(real, "quaternion")
    H = layer.weight.detach()
    error = ((H - real.weight).norm() / real.weight.norm()).item()
    assert report.layers[0].error == pytest.approx(error) and 0 < error < 1
    other = nn.Linear(8, 8, algebra="quaternion", dtype=torch.float64)  # the rest is orthogonal to every quaternion matrix
    assert ((H - real.weight) * other.weight).sum().abs() < 1e-12
    assert quatrain.convert(real, "phm(4)")[1].layers[0].error < error


def test_report_and_what_is_skipped():
    model = Tied().eval()
    model.first.weight.requires_grad_(False)
    tokens = torch.tensor([1, 2])
    model, report = quatrain.convert(model, "quaternion")
    assert [(layer.name, layer.skipped) for layer in report.layers] == [
        ("first", ""), ("head", "its weight is tied to embedding.weight"), ("odd", "n = 4 does not divide 3")]  # fmt: skip
    assert model.first is model.again and isinstance(model.first, nn.Linear) and not model.first.training
    assert not model.first.S.requires_grad and model.first.bias.requires_grad
    assert report.before - report.after == 16 * 16 * 3 // 4 and "whole model" in str(report)
    assert model(tokens).shape == (2, 8)
    assert quatrain.convert(model, "octonion")[1].layers[0].skipped == "is hypercomplex already (quaternion)"
    _, report = quatrain.convert(Tied(), "quaternion", where=lambda name, layer: name != "first")
    assert report.layers[0].skipped == "excluded by where" and report.converted == 0


def test_shared_biases_and_computed_weights_stay():
    first, second = (torch.nn.Conv2d(8, 8, 3) for _ in range(2))
    second.bias = first.bias
    normed = torch.nn.utils.parametrizations.weight_norm(torch.nn.Conv2d(8, 8, 3))
    _, report = quatrain.convert(torch.nn.Sequential(first, second, normed), "quaternion")
    assert [layer.skipped for layer in report.layers] == [
        "its bias is tied to 1.bias", "its bias is tied to 0.bias",
        "its weight is computed from others (weight_norm, spectral_norm, pruning): make it a parameter first"]  # fmt: skip


def test_weights_that_nothing_is_near_to_are_named():
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Conv2d(8, 8, 3))
    with torch.no_grad():
        model[1].weight[0, 0, 0, 0] = float("inf")
    with pytest.raises(ValueError, match="convert: the weight of '1' holds nan or inf"):
        quatrain.convert(model, "quaternion")


def test_fresh_weights():
    torch.manual_seed(3)
    layer, report = quatrain.convert(torch.nn.Linear(8, 8), "phm(4)", fresh=True)
    assert report.layers[0].error is None and not layer.bias.any()
    assert layer.A.norm(dim=0).sub(1).abs().max() < 1e-6


def test_trained_factors_have_no_nearest_weights():
    with pytest.raises(ValueError, match="fresh = True"):
        quatrain.convert(torch.nn.Linear(8, 8), "phm(4, trained_rank=6)")
    layer, _ = quatrain.convert(torch.nn.Linear(8, 8), "phm(4, trained_rank=6)", fresh=True)
    assert layer.factors.shape == (3, 4, 6)


def test_our_own_real_models_convert():
    model = TextClassifier(50, 4, width=16, heads=2, feed_forward=32, algebra="real").eval()
    tokens = torch.randint(1, 50, (2, 5))
    expected = model(tokens)
    model, report = quatrain.convert(model, "real")
    assert report.converted == 2 * 6 + 1
    torch.testing.assert_close(model(tokens), expected)
    model, report = quatrain.convert(model, "phm(4)")
    assert report.converted == 13 and model(tokens).shape == (2, 4)


def test_a_model_of_torch_converts_trains_and_reloads(tmp_path):
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    model, report = quatrain.convert(torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), "quaternion")
    assert report.converted == 12 and report.layers[0].name == "layers.0.self_attn.q_proj"
    x = torch.randn(2, 5, 16)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(20):
        loss = (model(x) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    model.eval()
    with torch.no_grad():  # here torch's own fast path reads linear1.weight
        y = model(x)
    torch.testing.assert_close(y, model(x), rtol=1e-4, atol=1e-5)
    quatrain.save_model(model, tmp_path / "weights")
    other, _ = quatrain.convert(torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), "quaternion", fresh=True)
    quatrain.load_model(other.eval(), tmp_path / "weights")
    torch.testing.assert_close(other(x), model(x))


def test_factorize():
    model = nn.FeedForward(8, 8, algebra="phm(2)").eval()
    report = quatrain.factorize(model)
    assert (report.learned, report.sound) == (2, 2) and all(layer.rank <= 3 and layer.error < 1e-6 for layer in report.layers)
    assert model.linear1.has_factors() and "linear2" in str(report)
    assert ops.rank("learned", model.linear1.A, model.linear1.weights()[0].factored[1:]) == report.layers[0].rank
    with pytest.raises(ValueError, match="find_factors: A must be learned, got algebra = quaternion"):
        nn.Linear(8, 8).find_factors()


def test_our_real_embedding_converts_and_torchs_stays():
    table = nn.Embedding(8, 16, algebra="quaternion").matrix().detach()
    ours, theirs = nn.Embedding(8, 16, algebra="real"), torch.nn.Embedding(8, 16)
    with torch.no_grad():
        ours.S.copy_(table.unsqueeze(0))
    model, report = quatrain.convert(torch.nn.ModuleList([ours, theirs]), "quaternion")
    assert [layer.name for layer in report.layers] == ["0"] and report.layers[0].error < 1e-6
    torch.testing.assert_close(model[0](torch.arange(8)), table)
    assert model[1] is theirs


class Conv1D(torch.nn.Module):
    """GPT-2's linear layer, as transformers has it."""

    def __init__(self, outputs, inputs):
        super().__init__()
        self.nf, self.nx = outputs, inputs
        self.weight = torch.nn.Parameter(torch.randn(inputs, outputs))
        self.bias = torch.nn.Parameter(torch.randn(outputs))

    def forward(self, x):
        return torch.addmm(self.bias, x, self.weight)


def test_the_linear_layer_of_gpt2_converts(monkeypatch):
    assert not quatrain.convert(Conv1D(24, 16), "quaternion")[1].layers  # another's layer of that name
    monkeypatch.setattr(Conv1D, "__module__", "transformers.pytorch_utils")
    x, theirs = torch.randn(2, 16), Conv1D(24, 16)
    with torch.no_grad():
        theirs.weight.copy_(nn.Linear(16, 24).matrix().t())
    expected = theirs(x)
    model, report = quatrain.convert(torch.nn.Sequential(theirs), "quaternion")
    assert (report.layers[0].in_features, report.layers[0].out_features) == (16, 24) and isinstance(model[0], nn.Linear)
    torch.testing.assert_close(model(x), expected, rtol=1e-4, atol=1e-5)
    assert quatrain.convert(Conv1D(24, 18), "quaternion")[1].layers[0].skipped == "n = 4 does not divide 18"
    pruned = torch.nn.utils.prune.random_unstructured(Conv1D(24, 16), "weight", 0.5)
    assert quatrain.convert(pruned, "quaternion")[1].layers[0].skipped.startswith("its weight is computed")


def zeroed(part):
    part.forward = lambda *given, **named: (torch.zeros(1), None)


def test_what_others_put_on_a_layer_is_not_lost():
    layers = torch.nn.ModuleList(torch.nn.Linear(8, 8) for _ in range(4))
    zeroed(layers[0])
    layers[1].register_buffer("mask", torch.ones(8, 8))
    layers[2].low_rank = torch.nn.Linear(8, 8)
    layers[3].scale = torch.nn.Parameter(torch.ones(8))
    _, report = quatrain.convert(layers, "quaternion")
    for layer, words in zip(report.layers, ["has a forward of its own", "holds mask too", "holds low_rank too", "", "holds scale too"]):
        assert layer.skipped.startswith(words)
    assert report.converted == 1 and isinstance(layers[2].low_rank, nn.Linear)


@pytest.mark.parametrize("change, words", [
    (lambda a: a.register_forward_hook(lambda *given: None), "has hooks"),
    (zeroed, "has a forward of its own"),
    (lambda a: torch.nn.utils.prune.random_unstructured(a, "in_proj_weight", 0.5), "has hooks"),
    (lambda a: torch.nn.utils.parametrizations.weight_norm(a.out_proj), "its out_proj was changed"),
    (lambda a: a.out_proj.register_forward_hook(lambda *given: None), "has hooks"),
    (lambda a: torch.nn.utils.parametrizations.weight_norm(a, "in_proj_weight"), "is a ParametrizedMultiheadAttention"),
    (lambda a: setattr(a.out_proj, "bias", a.in_proj_bias), "its weights are tied: self_attn.in_proj_bias and self_attn.out_proj.bias are one"),
])  # fmt: skip
def test_attentions_that_stay_are_told(change, words):
    model = torch.nn.TransformerEncoderLayer(8, 2, 16)
    attention = model.self_attn
    change(attention)
    _, report = quatrain.convert(model, "quaternion")
    assert model.self_attn is attention and report.converted == 2
    assert report.layers[0].name == "self_attn" and report.layers[0].skipped.startswith(words)


class Listed(torch.nn.Module):
    """Holds its layers under other names too, as detectors do."""

    def __init__(self):
        super().__init__()
        self.inner, self.outer = torch.nn.Linear(8, 8), torch.nn.LSTM(8, 8)
        self.all, self.by_name = [self.inner, self.outer, "text"], {"inner": self.inner}
        self.pair = self.inner, 7
        self.__dict__["hidden"] = self.inner


def test_layers_in_lists_are_replaced_too():
    model, _ = quatrain.convert(torch.nn.Sequential(Listed()), "quaternion")
    held = model[0]
    assert isinstance(held.inner, nn.Linear) and held.inner is held.all[0] is held.by_name["inner"] is held.hidden
    assert held.pair == (held.inner, 7)
    assert isinstance(held.outer, nn.LSTM) and held.outer is held.all[1] and held.all[2] == "text"


class Experts(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.scale = torch.nn.Parameter(torch.randn(2, 8, 8)), torch.nn.Parameter(torch.ones(8))


def test_other_matrices_are_told():
    normed = torch.nn.utils.parametrizations.weight_norm(torch.nn.Conv2d(8, 8, 3))
    parts = torch.nn.Embedding(8, 16), torch.nn.Linear(16, 16), Experts(), Experts(), torch.nn.MultiheadAttention(16, 2), normed, torch.nn.LayerNorm(16)
    _, report = quatrain.convert(torch.nn.Sequential(*parts), "quaternion")
    assert report.others == {"Embedding": 8 * 16, "Experts": 2 * 2 * 8 * 8} and "(Experts)" in str(report)


def test_what_is_no_model_and_no_filter():
    with pytest.raises(TypeError, match="convert: model must be a torch.nn.Module, got <class"):
        quatrain.convert(torch.nn.Linear, "quaternion")
    with pytest.raises(TypeError, match="convert: where must be a function of a name and a module, got 'head'"):
        quatrain.convert(torch.nn.Linear(8, 8), "quaternion", where="head")
