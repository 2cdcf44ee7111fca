"""What torch's own tools do to layers: parametrizations, pruning, hooks, frozen parameters, function transforms, autocast, optimizers."""

import copy

import pytest
import torch
from quatrain import nn, ops
from test_layers import ALGEBRAS, by_definition, classifier, encoder, layer
from torch.nn.utils import parametrizations, parametrize, prune


class Symmetric(torch.nn.Module):
    def forward(self, S):
        return S + S.transpose(1, 2)


@pytest.mark.parametrize("training", [True, False])
def test_parametrize(training):
    module = nn.Linear(8, 8, algebra="quaternion").train(training)
    parametrize.register_parametrization(module, "S", Symmetric())
    x = torch.randn(3, 8)
    expected = x @ ops.materialise(module.S, "quaternion").T + module.bias
    torch.testing.assert_close(module(x), expected)
    module(x).sum().backward()
    assert module.parametrizations.S.original.grad is not None
    with torch.no_grad():
        module.parametrizations.S.original.mul_(2)
        torch.testing.assert_close(module(x), 2 * expected)
    other = copy.deepcopy(module)
    torch.testing.assert_close(other(x), module(x))
    parametrizations.weight_norm(layer(), "S")(torch.randn(3, 8))


@pytest.mark.parametrize("training", [True, False])
def test_prune(training):
    module, x = layer().train(training), torch.randn(3, 8)
    prune.l1_unstructured(module, "S", amount=0.5)
    assert int((module.S == 0).sum()) == 12
    torch.testing.assert_close(module(x), by_definition(module, x))
    module(x).sum().backward()
    assert int((module.S_orig.grad == 0).sum()) >= 12
    prune.remove(module, "S")
    torch.testing.assert_close(module(x), by_definition(module, x))


@pytest.mark.parametrize(
    "compute, originals",
    [
        (lambda module: parametrize.register_parametrization(module, "S", Symmetric()), ["parametrizations.S.original"]),
        (lambda module: parametrizations.weight_norm(module, "S"), ["parametrizations.S.original0", "parametrizations.S.original1"]),
        (lambda module: prune.l1_unstructured(module, "S", amount=0.5), ["S_orig"]),
        (lambda module: torch.nn.utils.spectral_norm(module, "S"), ["S_orig"]),
    ],
)
def test_what_S_is_computed_from_decays(compute, originals):
    module = nn.Linear(8, 8, algebra="phm(4)")
    compute(module)
    module(torch.randn(3, 8))
    held = dict(module.named_parameters())
    assert {id(p) for p in nn.decaying_parameters(module)} == {id(held[name]) for name in originals}
    decaying, others = nn.parameter_groups(module, 0.1)
    assert len(decaying["params"]) == len(originals) and len(others["params"]) == 2  # A and the bias


def test_hooks():
    module, calls = layer(), []
    module.register_forward_pre_hook(lambda m, args: calls.append("before"))
    module.register_forward_hook(lambda m, args, y: calls.append("after") or 2 * y)
    module.register_full_backward_hook(lambda m, gi, go: calls.append("backward"))
    x = torch.randn(3, 8, requires_grad=True)
    y = module(x)
    torch.testing.assert_close(y, 2 * by_definition(module, x))
    y.sum().backward()
    assert calls == ["before", "after", "backward"]


@pytest.mark.parametrize("notation", ALGEBRAS)
def test_frozen_layers(notation):
    module = layer(notation).requires_grad_(False)
    assert not module(torch.randn(3, 8)).requires_grad
    x = torch.randn(3, 8, requires_grad=True)
    module(x).sum().backward()
    torch.testing.assert_close(x.grad, module.weight.sum(0).expand(3, 8))
    assert module.S.grad is None
    module.bias.requires_grad_(True)
    module(x).sum().backward()
    torch.testing.assert_close(module.bias.grad, torch.full((12,), 3.0))


@pytest.mark.parametrize("notation", ALGEBRAS)
def test_functional_call_grad_and_vmap(notation):
    module = layer(notation, dtype=torch.float64)
    parameters = {name: p.detach() for name, p in module.named_parameters()}
    x = torch.randn(5, 8, dtype=torch.float64)

    def loss(parameters, x):
        return torch.func.functional_call(module, parameters, (x,)).square().sum()

    gradients = torch.func.grad(loss)(parameters, x)
    module(x).square().sum().backward()
    for name, p in module.named_parameters():
        torch.testing.assert_close(gradients[name], p.grad)
    each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(parameters, x)
    for name, g in each.items():
        torch.testing.assert_close(g.sum(0), gradients[name])
    stacked = {name: torch.stack([p, 2 * p]) for name, p in parameters.items()}  # an ensemble
    both = torch.func.vmap(loss, in_dims=(0, None))(stacked, x)
    torch.testing.assert_close(both[0], loss(parameters, x))
    hessian = torch.func.hessian(lambda b: loss({**parameters, "bias": b}, x))(parameters["bias"])
    torch.testing.assert_close(hessian, 10 * torch.eye(12, dtype=torch.float64))
    _, tangent = torch.func.jvp(lambda x: torch.func.functional_call(module, parameters, (x,)), (x,), (x,))
    torch.testing.assert_close(tangent, module(x) - module.bias)


def test_per_sample_gradients_of_a_model():
    model = classifier("phm(2)", dtype=torch.float64, dropout=0.0)
    parameters = {name: p.detach() for name, p in model.named_parameters()}
    tokens = torch.randint(1, 50, (3, 5))

    def loss(parameters, text):
        return torch.func.functional_call(model, parameters, (text[None],)).square().sum()

    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(parameters, tokens)
    model(tokens).square().sum().backward()
    for name, p in model.named_parameters():
        torch.testing.assert_close(each[name].sum(0), p.grad)


@pytest.mark.parametrize("notation", ALGEBRAS)
def test_autocast(notation):
    model, x = encoder(notation), torch.randn(2, 5, 16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert model.layers[0].feed_forward.linear1(x).dtype == torch.bfloat16
        y = model.eval()(x)
    torch.testing.assert_close(y.float(), model(x), atol=0.15, rtol=0.1)
    y.float().sum().backward()
    assert model.layers[0].feed_forward.linear1.S.grad.dtype == torch.float32


def test_what_is_prepared_in_eval_mode_goes_with_training():
    module, x = nn.Linear(64, 64, algebra="quaternion", way="materialised").eval(), torch.randn(3, 64)
    before = ops.prepared_size()[0]
    with torch.no_grad():
        module(x)
        assert ops.prepared_size()[0] == before + 1
        copy.deepcopy(module)
        assert ops.prepared_size()[0] == before + 1
        for forget in (lambda: module.train(), lambda: module.eval().double().float(), lambda: module.load_state_dict(module.state_dict())):
            module.eval()(x)
            assert ops.prepared_size()[0] == before + 1
            forget()
            assert ops.prepared_size()[0] == before
        module.eval()(x)
        module.S.data.mul_(2)
        ops.drop_prepared(module.S)
        assert ops.prepared_size()[0] == before
        module(x)
        module._apply(lambda t: t.data.mul_(2))
        assert ops.prepared_size()[0] == before
        prune.l1_unstructured(module, "S", amount=0.5)  # S is a new tensor in every call
        module(x)
        assert ops.prepared_size()[0] == before


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("fused", [False, True])
def test_steps_of_optimizers_are_noticed(fused, compiled):
    """Also where the layer was not called with autograd since: its gradient came from another process, or from its matrix."""
    torch._dynamo.reset()
    module, x = nn.Linear(64, 64, algebra="quaternion").eval(), torch.randn(3, 64)
    optimizer = torch.optim.AdamW(module.parameters(), lr=0.1, fused=fused)
    step = torch.compile(optimizer.step, backend="aot_eager") if compiled else optimizer.step
    for _ in range(2):
        with torch.no_grad():
            module(x)
        (module.matrix() - torch.eye(64)).square().sum().backward()
        step()
        with torch.no_grad():
            torch.testing.assert_close(module(x), x @ module.matrix().T + module.bias, rtol=1e-4, atol=1e-4)
