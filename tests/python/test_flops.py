"""What torch's flop counter counts for our operators: the products of the ways that they take, and torch's own count at n = 1."""

import pytest
import quatrain
import torch
from quatrain import nn
from quatrain.nn import Linear
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils.flop_counter import FlopCounterMode


def flops(call):
    with FlopCounterMode(display=False) as counter:
        call()
    return counter.get_total_flops()


def test_products_of_linear_layers():
    x = torch.randn(6, 64)
    real = flops(lambda: torch.nn.Linear(64, 128)(x))
    assert real == 2 * 6 * 64 * 128
    layer = Linear(64, 128, algebra="quaternion", way="factored")
    assert flops(lambda: layer(x)) == real * 8 // 16  # R / n^2 of the real layer's
    assert flops(lambda: Linear(64, 128, algebra="quaternion", way="materialised")(x)) == real
    assert flops(lambda: Linear(64, 128, algebra="real")(x)) == real

    given = torch.randn(6, 64, requires_grad=True)
    assert flops(lambda: layer(given).sum().backward()) == 3 * real * 8 // 16
    assert flops(lambda: layer(x).sum().backward()) == 2 * real * 8 // 16
    learned = Linear(64, 128, algebra="phm(4)").eval()
    assert learned.factorize()
    for gradients in (True, False):  # without them its weights stay as they are
        taken = torch.ops.quatrain.planned_way(
            x, learned.S, "learned", learned.A, learned._weight.factored[1:], not gradients
        )
        with torch.set_grad_enabled(gradients):
            assert flops(lambda: learned(x)) == (real * 8 // 16 if taken == "factored" else real)


# As AOTInductor's programs hand them over.
def test_lists_that_are_none_count_as_empty_ones():
    x, S = torch.randn(6, 64), torch.randn(4, 32, 16)
    counts = [flops(lambda: torch.ops.quatrain.linear(x, S, None, "quaternion", None, factors)) for factors in ([], None)]
    assert counts[0] == counts[1] > 0
    z, h0, state = torch.randn(5 * 6, 256), torch.randn(6, 64), torch.randn(4, 64, 16)
    arguments = (z, torch.full((5,), 6), h0, torch.zeros(6, 64), [state], "quaternion")
    counts = [flops(lambda: torch.ops.quatrain.recurrence(*arguments, A, factors, None, None, "lstm")) for A, factors in (([], []), (None, None))]
    assert counts[0] == counts[1] > 0


def test_products_of_attention():
    Q, K, V = (torch.randn(2, length, 4, 3, 64, requires_grad=True) for length in (5, 7, 7))
    pairs, width = 2 * 3 * 5 * 7, 4 * 64
    forward = flops(lambda: quatrain.ops.hypercomplex_attention(Q, K, V, "quaternion"))
    assert forward == 2 * pairs * (8 * 64 + width)  # R products of components, and the values
    narrow = (torch.randn(2, length, 4, 3, 1) for length in (5, 7, 7))  # n products of n components
    assert flops(lambda: quatrain.ops.hypercomplex_attention(*narrow, "quaternion")) == 2 * pairs * (16 + 4)
    assert torch.ops.quatrain.score_multiplications("real", 4, 64) == width
    both = flops(lambda: quatrain.ops.hypercomplex_attention(Q, K, V, "quaternion").sum().backward())
    assert both == forward + 2 * pairs * (3 * 8 * 64 + 2 * width)


def test_products_under_autocast():
    """There x comes in another type than the weights."""
    x, real = torch.randn(6, 64), 2 * 6 * 64 * 128
    with torch.autocast("cpu", torch.bfloat16):
        for algebra in ("real", "quaternion", "phm(4)"):
            assert flops(lambda: Linear(64, 128, algebra=algebra, way="materialised")(x)) == real
            assert flops(lambda: Linear(64, 128, algebra=algebra)(x)) in (real, real * 8 // 16)


PLAIN = [
    ("Conv1d", (3,), dict(stride=2, padding=1)),
    ("Conv2d", (3,), dict(padding=1)),
    ("Conv2d", ((4, 3),), dict(padding="same", dilation=(2, 1))),
    ("Conv2d", (3,), dict(groups=2)),
    ("Conv2d", (1,), dict(stride=2)),
    ("Conv3d", ((1, 3, 2),), dict(padding="valid")),
    ("ConvTranspose1d", (3, 2), dict(padding=1, output_padding=1)),
    ("ConvTranspose2d", ((3, 2),), dict(stride=(2, 1), groups=2)),
    ("ConvTranspose3d", (2,), dict(bias=False)),
]


@pytest.mark.parametrize("kind, arguments, options", PLAIN)
def test_convolutions_at_n_1_are_torchs(kind, arguments, options):
    x = torch.randn(2, 64, *(6, 7, 5)[: int(kind[-2])])
    learning = x.clone().requires_grad_()
    theirs = getattr(torch.nn, kind)(64, 128, *arguments, **options)
    ours = getattr(nn, kind)(64, 128, *arguments, algebra="real", **options)
    factored = getattr(nn, kind)(64, 128, *arguments, algebra="quaternion", **options)
    factored.way = "factored"
    for step in (lambda layer: layer(x), lambda layer: layer(x).sum().backward(), lambda layer: layer(learning).sum().backward()):
        real = flops(lambda: step(theirs))
        assert real > 0 and flops(lambda: step(ours)) == real
        assert flops(lambda: step(factored)) == real * 8 // 16
    with torch.no_grad():
        assert flops(lambda: ours.forward_with_epilogue(x, activation="relu")) == flops(lambda: theirs(x))


def test_a_known_convolution():
    x = torch.randn(1, 64, 8, 8)
    assert flops(lambda: nn.Conv2d(64, 64, 3, padding=1, algebra="real")(x)) == 2 * 9 * 64 * 64 * 64 == 4718592


@pytest.mark.parametrize("units", [8, 9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_convolutions_count_as_they_are_planned(units, dtype):
    """The way that was taken shows in the rounding of the result. What is not known to be factored counts as H."""
    x = torch.randn(3, 4 * units, 6, 6, dtype=dtype)
    layer = nn.Conv2d(4 * units, 64, 3, algebra="quaternion", dtype=dtype)
    taken, results = layer(x), {}
    for way in ("factored", "materialised"):
        layer.way = way
        results[way] = layer(x)
    assert not torch.equal(results["factored"], results["materialised"])
    layer.way = "auto"
    way = "factored" if units == 9 and dtype == torch.float32 else "materialised"
    assert torch.equal(taken, results[way])
    real = 2 * 3 * 16 * 9 * 4 * units * 64
    assert flops(lambda: layer(x)) == (real * 8 // 16 if way == "factored" else real)


def test_the_gradient_of_a_learned_structure_takes_that_of_H():
    x = torch.randn(3, 64, 6, 6, requires_grad=True)
    layer = nn.Conv2d(64, 64, 3, algebra="phm(4)")
    layer(x).sum().backward()  # it has factors that are followed from here on
    real = 2 * 3 * 16 * 9 * 64 * 64
    assert flops(lambda: layer(x)) == real // 2
    assert flops(lambda: layer(x).sum().backward()) == real // 2 + real // 2 + real
    layer.A.requires_grad_(False)
    assert flops(lambda: layer(x).sum().backward()) == 3 * real // 2
    # In other types that of A is taken through H altogether.
    layer, x = nn.Conv2d(64, 64, 3, algebra="phm(4)", way="factored", dtype=torch.float64).eval(), x.detach().double().requires_grad_()
    assert layer.factorize()
    assert flops(lambda: layer(x).sum().backward()) == real // 2 + 2 * real
    layer.A.requires_grad_(False)
    assert flops(lambda: layer(x).sum().backward()) == 3 * real // 2


@pytest.mark.parametrize("size", [1, 20])
def test_a_kernel_of_one_pixel_is_planned_as_a_linear_layer(size):
    """With channels last, and in each backward pass."""
    layer, real = nn.Conv2d(64, 64, 1, stride=2, algebra="quaternion"), 2 * size * size * 64 * 64
    x = torch.randn(1, 64, 2 * size, 2 * size).contiguous(memory_format=torch.channels_last)

    def share(prepared):
        pixels = torch.empty(size * size, 64)
        way = torch.ops.quatrain.planned_way(pixels, layer.F.flatten(2), "quaternion", None, [], prepared)
        return 8 if way == "factored" else 16

    y = layer(x)
    assert flops(lambda: y.sum().backward()) == real * share(False) // 16
    with torch.no_grad():
        assert flops(lambda: layer.eval()(x)) == real * share(True) // 16
    grouped = nn.Conv2d(64, 64, 1, stride=2, groups=2, algebra="quaternion")  # of 8 units each, so by H; F has half the weights
    assert flops(lambda: grouped(x)) == real // 2


def test_a_way_for_the_whole_process_is_counted(monkeypatch):
    layer, x = nn.Conv2d(64, 64, 3, algebra="quaternion"), torch.randn(3, 64, 6, 6)
    planned = flops(lambda: layer(x))
    monkeypatch.setenv("QUATRAIN_WAY", "materialised")
    assert flops(lambda: layer(x)) == 2 * planned


RECURRENT = [("LSTM", {}), ("LSTM", dict(proj_size=16)), ("GRU", {}), ("RNN", dict(bidirectional=True))]


@pytest.mark.parametrize("kind, options", RECURRENT)
def test_recurrent_layers_at_n_1_are_torchs(kind, options):
    """The maps of the inputs and those of the state, which each row of each step takes once."""
    theirs = getattr(torch.nn, kind)(64, 32, 2, **options)
    ours = getattr(nn, kind)(64, 32, 2, algebra="real", **options)
    x = torch.randn(5, 3, 64)
    packed = pack_padded_sequence(x, torch.tensor([5, 4, 2]))
    with torch.backends.mkldnn.flags(enabled=False):  # whose layers torch counts nothing of
        for given in (x, packed):
            real = flops(lambda: theirs(given))
            assert real > 0 and flops(lambda: ours(given)) == real
            with torch.no_grad():  # one operator
                assert flops(lambda: ours(given)) == real
    # Back, as much for the gradients of weights and for those of inputs and states.
    real = flops(lambda: ours(x))
    assert flops(lambda: ours(x.requires_grad_())[0].sum().backward()) == 3 * real


def test_a_known_lstm():
    layer = nn.LSTM(64, 32, algebra="real")
    assert flops(lambda: layer(torch.randn(7, 3, 64))) == 2 * 7 * 3 * 128 * (64 + 32)


@pytest.mark.parametrize("algebra", ["quaternion", "phm(4)"])
@pytest.mark.parametrize("steps, batch", [(4, 6), (4, 1), (20, 1)])
@pytest.mark.parametrize("gates", ["packed", "separate"])
def test_states_count_as_they_are_planned(algebra, steps, batch, gates):
    layer, x = nn.LSTM(64, 64, algebra=algebra, gates=gates), torch.randn(steps, batch, 64)
    quatrain.factorize(layer.eval())
    direction, real = layer._layers[0][0], 2 * batch * steps * 64 * 256

    def expected(weights, rows, prepared, factored=("factored",)):
        total = 0
        for weight in weights:
            S, known, A, factors, _ = weight.operands(layer)
            taken = torch.ops.quatrain.planned_way(torch.empty(rows, 64), S, known, A, factors, prepared)
            total += real // len(weights) * (8 if taken in factored else 16) // 16
        return total

    for gradients in (True, False):
        of_input = expected(direction.of_input, batch * steps, not gradients)
        with torch.set_grad_enabled(gradients):
            # In many steps weights are prepared even where they learn.
            assert flops(lambda: layer(x)) == of_input + expected(direction.of_state, batch, steps > 8 or not gradients)
    y = layer(x)[0].sum()
    with FlopCounterMode(display=False) as counter:
        y.backward()
    back = counter.get_flop_counts()["Global"][torch.ops.quatrain.recurrence_backward]
    assert back == expected(direction.of_state, batch, steps > 8, ("factored", "mixed"))  # no mixed way leads back


def test_recurrent_layers_under_autocast():
    x = torch.randn(5, 3, 64)
    with torch.autocast("cpu", torch.bfloat16):
        assert flops(lambda: nn.LSTM(64, 32, algebra="real")(x)) == 2 * 5 * 3 * 128 * (64 + 32)
