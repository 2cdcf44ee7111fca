"""Weights of other toolkits' convolutions: layers that compute what theirs do, here written from their definition."""

import pytest
import torch
from quatrain.published import convolution
from torch.nn import functional


def published_convolution(n, kernel):
    return {"conv.A": torch.randn(n, n, n), "conv.F": torch.randn(n, 4, 3, *kernel) / 3}


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("kernel", [(3,), (3, 2), (2, 1, 2)])
def test_convolutions_of_a_and_f(n, kernel):
    state = published_convolution(n, kernel)
    H = torch.einsum("iab,ipq...->apbq...", state["conv.A"], state["conv.F"]).reshape(n * 4, n * 3, *kernel)
    x, run = torch.randn(2, n * 3, *(6,) * len(kernel)), getattr(functional, f"conv{len(kernel)}d")
    expected = run(x, H, stride=2, padding=1)
    layer = convolution(state, "conv", stride=2, padding=1)
    torch.testing.assert_close(layer(x), expected, rtol=1e-4, atol=1e-4)
    assert layer.algebra == (f"phm({n})" if n > 1 else "real") and layer.bias is None
    small = {"conv.a": state["conv.A"], "conv.s": state["conv.F"]}
    assert torch.equal(convolution(small, "conv", stride=2, padding=1)(x), layer(x))
    with pytest.warns(UserWarning, match="'conv.bias' is dropped: the published layer never adds it"):
        layer = convolution(state | {"conv.bias": torch.ones(n * 4)}, "conv", stride=2, padding=1)
    torch.testing.assert_close(layer(x), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n", [1, 4])
def test_weighted_convolutions_of_one_place(n):
    state = published_convolution(n, (1, 1)) | {"conv.kron_weights": torch.randn(n)}
    H = sum(w * torch.kron(A, F[..., 0, 0]) for w, A, F in zip(state["conv.kron_weights"], state["conv.A"], state["conv.F"]))
    x, layer = torch.randn(2, 3 * n, 5, 5), convolution(state, "conv")
    torch.testing.assert_close(layer(x), torch.einsum("oc,bchw->bohw", H, x), rtol=1e-4, atol=1e-4)
    assert layer.algebra == ("wkp(4)" if n > 1 else "real")


def test_convolutions_that_are_not_the_same():
    state = published_convolution(4, (3, 3))
    for more, reason in {
        "kron_weights": "'conv.kron_weights' is of a product that scatters A over the kernel, .* got \\[3, 3\\]",
        "A2": "'conv.A2' is of a second sum",
        "A": "'conv.A' and 'F' must have the shapes .*, got \\[4\\] and",
    }.items():
        with pytest.raises(ValueError, match=reason):
            convolution(state | {f"conv.{more}": torch.ones(4)}, "conv")
    with pytest.raises(ValueError, match="'conv.kron_weights' must have n = 4 values"):
        convolution(state | {"conv.kron_weights": torch.ones(3)}, "conv")
    with pytest.raises(ValueError, match="there is no 'A'"):
        convolution(state)


def quaternion_kernels(first, second, kernel):
    return {f"conv.{component}_weight": torch.randn(first, second, *kernel) / 3 for component in "rijk"}


def real_kernel(state):
    """As all these toolkits write it out, also for transposed layers, of which it maps outputs to inputs."""
    r, i, j, k = (state[f"conv.{component}_weight"] for component in "rijk")
    rows = [r, -i, -j, -k], [i, r, -k, j], [j, k, r, -i], [k, -j, i, r]
    return torch.cat([torch.cat(row, 1) for row in rows])


@pytest.mark.parametrize("bias", [None, torch.randn(8)], ids=["plain", "bias"])
@pytest.mark.parametrize("kernel", [(3,), (3, 2), (2, 1, 2)])
def test_quaternion_convolutions(kernel, bias):
    state, x = quaternion_kernels(2, 3, kernel), torch.randn(2, 12, *(6,) * len(kernel))
    more = {} if bias is None else {"conv.bias": bias}
    layer = convolution(state | more, "conv", stride=2, padding=1, dilation=2)
    run = getattr(functional, f"conv{len(kernel)}d")
    torch.testing.assert_close(layer(x), run(x, real_kernel(state), bias, stride=2, padding=1, dilation=2), rtol=1e-4, atol=1e-4)
    assert layer.algebra == "quaternion" and torch.equal(layer.F[2], state["conv.j_weight"])


@pytest.mark.parametrize("bias", [None, torch.randn(8)], ids=["plain", "bias"])
@pytest.mark.parametrize("kernel", [(3,), (3, 2), (2, 1, 2)])
def test_transposed_quaternion_convolutions(kernel, bias):
    state, x = quaternion_kernels(3, 2, kernel), torch.randn(2, 12, *(6,) * len(kernel))
    before = state["conv.i_weight"].clone()
    more = {} if bias is None else {"conv.bias": bias}
    layer = convolution(state | more, "conv", transposed=True, stride=2, padding=1, output_padding=1)
    run = getattr(functional, f"conv_transpose{len(kernel)}d")
    torch.testing.assert_close(layer(x), run(x, real_kernel(state), bias, stride=2, padding=1, output_padding=1), rtol=1e-4, atol=1e-4)
    assert torch.equal(state["conv.i_weight"], before)


def test_quaternion_convolutions_that_are_not_the_same():
    state = quaternion_kernels(2, 3, (3, 3))
    for more, reason in {
        "zero_kernel": "'conv.zero_kernel' is of a map that rotates",
        "bias": r"'conv.bias' must have the shape \(8,\), got \(12,\)",
        "j_weight": r"must have one shape \(out/4, in/4, kernel...\), got .*\[12\]",
    }.items():
        with pytest.raises(ValueError, match=f"^published.convolution: .*{reason}"):
            convolution(state | {f"conv.{more}": torch.ones(12)}, "conv")
    with pytest.raises(ValueError, match=r"must have one shape \(out/4, in/4, kernel...\), got \[\[2, 3\]"):
        convolution(quaternion_kernels(2, 3, ()), "conv")
    with pytest.raises(ValueError, match=r"must have one shape \(in/4, out/4, kernel...\), got \[\[2, 3\]"):
        convolution(quaternion_kernels(2, 3, ()), "conv", transposed=True)
    with pytest.raises(ValueError, match="there is no 'conv.r_weight'"):
        convolution({name: tensor for name, tensor in state.items() if "r_" not in name}, "conv")
    with pytest.raises(ValueError, match="there is no 'conv.r_weight', and transposed layers are quaternion ones"):
        convolution(published_convolution(4, (3, 3)), "conv", transposed=True)
    for kernels in (state, published_convolution(4, (3, 3))):
        with pytest.raises(ValueError, match="groups must be 1, got 2: those of the published layers are runs of channels"):
            convolution(kernels, "conv", groups=2)
