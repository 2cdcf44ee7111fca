"""Several gradients at once: torch.autograd.grad(is_grads_batched=True) and what is built on it."""

import pytest
import quatrain
import torch
from quatrain import nn

ALGEBRAS = ("real", "quaternion", "phm(4)", "phm(4, trained_rank=6)")

LAYERS = {
    "linear": lambda algebra: (nn.Linear(8, 16, algebra=algebra), (3, 8)),
    "convolution": lambda algebra: (nn.Conv2d(8, 16, 3, algebra=algebra), (2, 8, 5, 5)),
    "transposed": lambda algebra: (nn.ConvTranspose1d(8, 16, 3, algebra=algebra), (2, 8, 5)),
    "encoder": lambda algebra: (nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, algebra=algebra), (2, 5, 16)),
    "lstm": lambda algebra: (nn.LSTM(8, 16, 2, bidirectional=True, proj_size=8, algebra=algebra), (5, 3, 8)),
    "gru": lambda algebra: (nn.GRU(8, 16, gates="separate", algebra=algebra), (5, 3, 8)),
    "rnn": lambda algebra: (nn.RNN(8, 16, algebra=algebra), (5, 3, 8)),
    "cell": lambda algebra: (nn.LSTMCell(8, 16, algebra=algebra), (3, 8)),
    "no sequence": lambda algebra: (nn.LSTM(8, 16, algebra=algebra), (5, 0, 8)),
}


def made(layer, algebra):
    torch.manual_seed(1)
    module, shape = LAYERS[layer](algebra)
    module.double()
    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    y = module(x)
    return (y[0] if isinstance(y, tuple) else y), [x, *module.parameters()]


def expect_each(y, inputs):
    directions = torch.randn(3, *y.shape, dtype=y.dtype)
    batched = torch.autograd.grad(y, inputs, directions, is_grads_batched=True, retain_graph=True, allow_unused=True)
    for i, direction in enumerate(directions):
        single = torch.autograd.grad(y, inputs, direction, retain_graph=True, allow_unused=True)
        for got, expected in zip(batched, single):
            assert (got is None) == (expected is None)
            if got is not None:
                torch.testing.assert_close(got[i], expected)


@pytest.mark.parametrize("algebra", ALGEBRAS)
@pytest.mark.parametrize("layer", LAYERS)
def test_gradients_are_those_of_each_direction(layer, algebra):
    expect_each(*made(layer, algebra))


@pytest.mark.parametrize("layer", ["linear", "lstm", "gru"])
def test_gradients_of_gradients_too(layer):
    y, inputs = made(layer, "phm(4, trained_rank=6)")
    (dx,) = torch.autograd.grad(y.square().sum(), inputs[0], create_graph=True)
    expect_each(dx, inputs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_operators_of_attention_and_matching(dtype):
    torch.manual_seed(1)
    a, b, g = (torch.randn(2, 3, 8, dtype=dtype, requires_grad=True) for _ in range(3))
    matched = quatrain.ops.hypercomplex_matching(a, b, "quaternion", 4)
    expect_each(matched, [a, b])
    attention = nn.MultiheadAttention(8, 2, algebra="quaternion").to(dtype)
    (da,) = torch.autograd.grad(attention(a, b, g)[0].square().sum(), a, create_graph=True)
    expect_each(da, [a, b, g])


def test_jacobians_and_hessians_are_vectorised():
    torch.manual_seed(1)
    layer = nn.LSTM(4, 4, algebra="quaternion").double()
    x = torch.randn(3, 2, 4, dtype=torch.float64)
    run = lambda x: layer(x)[0]
    total = lambda x: run(x).square().sum()
    for derivative, of in ((torch.autograd.functional.jacobian, run), (torch.autograd.functional.hessian, total)):
        torch.testing.assert_close(derivative(of, x, vectorize=True), derivative(of, x))
