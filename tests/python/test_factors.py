"""Factors that are computed for a learned A and used in eval mode."""

import pytest
import torch
from quatrain import algebra, factorize, nn, ops
from test_layers import by_definition, layer


@pytest.mark.parametrize("notation", ["phm(4)", "wkp(2)"])
def test_factorize(notation):
    module, x = layer(notation).eval(), torch.randn(3, 8)
    y = module(x)
    assert not module.has_factors() and module.factorize() and module.has_factors()
    with torch.no_grad():
        torch.testing.assert_close(module(x), y, atol=1e-4, rtol=1e-4)
    assert list(module.state_dict()) == [name for name, _ in module.named_parameters()]
    with torch.no_grad():
        module.A[0, 0, 0] += 1
        assert not module.has_factors()
        torch.testing.assert_close(module(x), by_definition(module, x))
    assert layer().factorize() and not layer().has_factors()


@pytest.mark.parametrize(
    "make", [nn.Linear, nn.Embedding, lambda *sizes, **options: nn.Conv2d(*sizes, 3, **options)], ids=["linear", "embedding", "conv"]
)
def test_each_layer_with_one_weight_has_them(make):
    module = make(8, 16, algebra="phm(4)")
    assert not module.has_factors() and module.factorize() and module.has_factors()
    found = module.find_factors(rank=8)
    assert found.sound == (found.residual < 1e-6) and found.rank == 8
    fixed = make(8, 16)
    assert fixed.factorize()
    with pytest.raises(ValueError, match="find_factors: A must be learned, got algebra = quaternion"):
        fixed.find_factors()


def test_the_best_try_is_told_though_it_is_not_sound():
    found = ops.decompose(algebra.get("quaternion").table, rank=5)
    assert not found.sound and found.factors == () and found.rank == 5
    assert 1e-6 < found.residual < 1 and found.condition == float("inf")
    nothing = ops.decompose(torch.zeros(2, 2, 2))
    assert nothing.rank == 0 and nothing.residual == nothing.condition == float("inf")
    report = factorize(layer("phm(4)"), rank=5)
    assert report.sound == 0 and report.layers[0].rank == 5 and " 5 " in str(report)


def test_factors_are_of_the_very_values_of_A():
    module = layer("phm(2)").to(torch.bfloat16).eval()
    assert module.factorize()
    with torch.no_grad():
        module.A.mul_(1.01)  # within what rounding to this type allows
    assert not module.has_factors()
    module = layer("phm(2)")
    assert module.factorize()
    with torch.no_grad():
        module.A.mul_(1.001)
    assert not module.to(torch.bfloat16).has_factors()  # outdated ones do not come back


@pytest.mark.parametrize("inference", [False, True])
def test_weights_of_summands_are_no_part_of_A(inference):
    module, x = layer("wkp(2)").eval(), torch.randn(40, 8)
    assert module.factorize()
    with torch.no_grad():
        for part in (module.w, module.S, module.w):
            with torch.inference_mode(inference), torch.no_grad():  # without the mode gradients are recorded again
                kept, _, A, factors, _ = module._weight.operands(module)
                assert A is module.A and len(factors) == 3
                assert module._weight.operands(module)[0].data_ptr() == kept.data_ptr()
                assert torch.equal(kept, module.w[:, None, None] * module.S)
                torch.testing.assert_close(module(x), by_definition(module, x), rtol=1e-4, atol=1e-5)
            part.mul_(1.5)
            assert module.has_factors()
    y = module(x)
    y.sum().backward()
    assert all(p.grad is not None for p in module.parameters())


@pytest.mark.parametrize("notation", ["phm(4)", "wkp(2)"])
@pytest.mark.parametrize("between", [torch.bfloat16, torch.half, torch.float64])
def test_answers_are_as_exact_as_their_type(notation, between):
    module, x = layer(notation).eval(), torch.randn(40, 8)
    assert module.factorize()
    assert module.to(between).has_factors()
    module.float()
    with torch.no_grad():
        torch.testing.assert_close(module(x), by_definition(module, x), rtol=1e-5, atol=1e-5)
    assert module.has_factors() == (between is torch.float64)  # which rounds nothing
    assert module.factorize() and module.bfloat16().has_factors()


@pytest.mark.parametrize("notation", ["phm(4)", "wkp(2)"])
def test_vmap_over_factorized_models(notation):
    models = [layer(notation, dtype=torch.float64).eval() for _ in range(3)]
    for module in models:
        assert module.factorize()
    parameters, buffers = torch.func.stack_module_state(models)
    x = torch.randn(5, 8, dtype=torch.float64)

    def call(parameters, buffers):
        return torch.func.functional_call(models[0], (parameters, buffers), (x,))

    y = torch.func.vmap(call)(parameters, buffers)
    torch.testing.assert_close(y, torch.stack([by_definition(module, x) for module in models]))
