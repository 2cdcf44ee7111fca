"""Padding between the words of a batch: an encoder leaves it out, and nobody can tell."""

import pytest
import torch
from quatrain import nn, ops

LENGTHS = (7, 2, 5, 1)


def padding_before(lengths=LENGTHS):
    longest = max(lengths)
    return torch.arange(longest) < longest - torch.tensor(lengths)[:, None]


def encoder(**options):
    torch.manual_seed(0)
    return nn.TransformerEncoder(32, 2, 2, feed_forward=64, dropout=0.0, dtype=torch.double, **options)


def hidden_at_words(module, x, padding, **options):
    """The result and the gradients, all of words alone."""
    seen = padding.logical_not()[..., None]
    y = module(x, padding, **options) * seen
    return y, torch.autograd.grad(y.square().sum(), [x, *module.parameters()], allow_unused=True)


def test_rows_are_the_words_in_their_order():
    padding = torch.tensor([[False, True, False], [True, True, False]])
    words, x = nn.Words(padding), torch.randn(2, 3, 4)
    assert torch.equal(words.rows(x)[0], torch.stack([x[0, 0], x[0, 2], x[1, 2]]))
    assert torch.equal(words.places(words.rows(x)), x * padding.logical_not()[..., None])
    for little in (None, torch.zeros(2, 3, dtype=torch.bool), padding_before((8, 7))):
        assert nn.Words(little).rows(x) is x and nn.Words(little).places(x) is x
    assert nn.Words(torch.ones(2, 3, dtype=torch.bool)).rows(x).shape == (1, 0, 4)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("algebra, norm", [("quaternion", "post"), ("phm(4)", "pre"), ("real", "phydi")])
def test_an_encoder_sees_each_text_as_if_alone(algebra, norm, packed):
    module, padding = encoder(algebra=algebra, norm=norm, packed=packed), padding_before()
    for name, parameter in module.named_parameters():
        if name.endswith("alpha"):
            torch.nn.init.constant_(parameter, 0.5)
    x = torch.randn(4, 7, 32, dtype=torch.double, requires_grad=True)
    y, gradients = hidden_at_words(module, x, padding, causal=True)
    alone = [module(x[i : i + 1, 7 - length :], causal=True)[0] for i, length in enumerate(LENGTHS)]
    for i, length in enumerate(LENGTHS):
        torch.testing.assert_close(y[i, 7 - length :], alone[i])
    expected = torch.autograd.grad(sum(text.square().sum() for text in alone), [x, *module.parameters()], allow_unused=True)
    torch.testing.assert_close(gradients, expected)


def test_maps_get_no_padding_and_layers_keep_their_shape():
    module, given, seen = encoder(), {}, {}
    for name, child in module.named_modules():
        child.register_forward_pre_hook(lambda child, inputs, name=name: given.__setitem__(name, inputs))
        child.register_forward_hook(lambda child, inputs, result, name=name: seen.__setitem__(name, result))
    module(torch.randn(4, 7, 32, dtype=torch.double), padding_before())
    assert seen["layers.0"].shape == (4, 7, 32) and isinstance(given["layers.0"][1], torch.Tensor)
    assert seen["layers.1.attention"][0].shape == (1, sum(LENGTHS), 32)
    assert seen["layers.1.feed_forward.linear1"].shape == (1, sum(LENGTHS), 64)


def test_second_derivatives_and_function_transforms():
    index = ops.index_of_words(padding_before())
    x = torch.randn(4, 7, 3, dtype=torch.double, requires_grad=True)
    f = lambda x: ops.places_of_words(ops.rows_of_words(x, index).square(), index, 4, 7).pow(2)
    assert torch.autograd.gradcheck(f, x) and torch.autograd.gradgradcheck(f, x)
    plain = lambda x: (x * padding_before().logical_not()[..., None]).pow(4)
    x = x.detach()
    torch.testing.assert_close(torch.func.jacrev(f)(x), torch.func.jacrev(plain)(x))
    torch.testing.assert_close(torch.func.jacfwd(f)(x), torch.func.jacfwd(plain)(x))
    torch.testing.assert_close(torch.func.vmap(f)(x.expand(3, 4, 7, 3)), plain(x).expand(3, 4, 7, 3))


def test_programs_and_transforms_keep_the_padding():
    module, padding = encoder(algebra="quaternion"), padding_before()
    x = torch.randn(4, 7, 32, dtype=torch.double, requires_grad=True)
    expected = hidden_at_words(module, x, padding)
    torch._dynamo.reset()
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    y = compiled(x, padding) * padding.logical_not()[..., None]
    torch.testing.assert_close(y, expected[0])
    torch.testing.assert_close(
        torch.autograd.grad(y.square().sum(), [x, *module.parameters()], allow_unused=True), expected[1]
    )
    other = padding.flip(0)  # the same program
    torch.testing.assert_close(compiled(x, other)[~other], module(x, other)[~other])
    program = torch.export.export(module, (x, padding)).module()
    torch.testing.assert_close(program(x, other)[~other], module(x, other)[~other])
    traced = torch.jit.trace(module, (x, padding), check_trace=False)
    torch.testing.assert_close(traced(x, other)[~other], module(x, other)[~other])
    batched = torch.func.vmap(lambda x, padding: module(x[None], padding[None])[0])(x, padding)
    torch.testing.assert_close(batched[~padding], module(x, padding)[~padding])


def test_a_text_without_a_batch():
    module, padding = encoder(), padding_before()
    x = torch.randn(7, 32, dtype=torch.double)
    for layer in (module, module.layers[0]):
        torch.testing.assert_close(layer(x, padding[2])[2:], layer(x[None, 2:])[0])
        torch.testing.assert_close(layer(x), layer(x[None])[0])


def test_wrong_sizes_are_named():
    words = nn.Words(padding_before())
    attention = nn.MultiheadAttention(16, 2)
    rows = torch.randn(1, sum(LENGTHS), 16)
    for call, message in [
        (lambda: nn.Words(torch.zeros(2, 3)), "padding must be bool"),
        (lambda: words.rows(torch.randn(3, 7, 4)), r"sizes \[4, 7\], got \[3, 7, 4\]"),
        (lambda: words.places(torch.randn(1, 4, 4)), "the 15 words of the index"),
        (lambda: attention(rows, rows.clone(), rows, words), "must be one tensor"),
        (lambda: attention(*[rows[0]] * 3, words), "rows of Words"),
        (lambda: attention(rows, rows, rows, words, key_padding_mask=padding_before()), "say the same"),
    ]:
        with pytest.raises((ValueError, RuntimeError), match=message):
            call()
