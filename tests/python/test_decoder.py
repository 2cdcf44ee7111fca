"""Decoder layers: torch's at n = 1, and what each place may depend on."""

import pytest
import torch
from quatrain import nn

DESIGNS = {
    "post": {"algebra": "quaternion"},
    "pre": {"algebra": "phm(4)", "norm": "pre", "packed": True},
    "phydi": {"algebra": "quaternion", "norm": "phydi"},
    "real attention": {"algebra": "quaternion", "attention": "real", "norm_per_component": True},
    "partial": {"algebra": "phm(2)", "scope": "partial"},
}


def decoder(layers=2, **options):
    torch.manual_seed(3)
    model = nn.TransformerDecoder(16, 4, layers, feed_forward=32, dtype=torch.float64, **options).eval()
    for name, p in model.named_parameters():
        if name.endswith("alpha"):  # 0 at the start, which leaves nothing to see
            torch.nn.init.constant_(p, 0.5)
    return model


def some(*shape):
    return torch.randn(*shape, dtype=torch.float64)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("bias", [True, False])
def test_a_real_decoder_is_torchs(norm, bias):
    mine = decoder(layers=1, algebra="real", packed=True, norm=norm, bias=bias).layers[0]
    theirs = torch.nn.TransformerDecoderLayer(
        16, 4, 32, batch_first=True, norm_first=norm == "pre", bias=bias, dtype=torch.float64
    ).eval()
    state = theirs.state_dict()
    if bias:  # torch's begin at 0
        for tensor in state.values():
            tensor.add_(0.1 * torch.randn_like(tensor))
        theirs.load_state_dict(state)
    parts = {"query": 0, "key": 1, "value": 2}
    with torch.no_grad():
        for name, p in mine.named_parameters():
            place, kind = name.rsplit(".", 1)
            attention, _, part = place.partition(".")
            kind = "weight" if kind == "S" else kind
            found = {"attention": "self_attn", "cross_attention": "multihead_attn"}.get(attention)
            if found is None:
                key = f"{place.removeprefix('feed_forward.')}.{kind}"
                value = state[key] if bias or key in state else p  # our norms keep their biases
            elif part == "output":
                value = state[f"{found}.out_proj.{kind}"]
            else:
                value = state[f"{found}.in_proj_{kind}"]
                if part != "packed":
                    value = value.chunk(3)[parts[part]]
            p.copy_(value.reshape(p.shape))
    x, memory = some(3, 5, 16), some(3, 7, 16)
    padding, memory_padding = torch.zeros(3, 5, dtype=torch.bool), torch.zeros(3, 7, dtype=torch.bool)
    padding[1, 3:], memory_padding[0, 4:], memory_padding[2, 1:] = True, True, True
    causal = torch.nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float64)
    y = theirs(
        x,
        memory,
        tgt_mask=causal,
        tgt_key_padding_mask=torch.zeros(3, 5, dtype=torch.float64).masked_fill(padding, float("-inf")),
        memory_key_padding_mask=memory_padding,
    )
    torch.testing.assert_close(mine(x, memory, padding, memory_padding)[~padding], y[~padding])


@pytest.mark.parametrize("options", DESIGNS.values(), ids=DESIGNS.keys())
def test_a_place_sees_those_before_it_and_the_memory(options):
    model = decoder(**options)
    x, memory = some(2, 6, 16), some(2, 5, 16)
    y = model(x, memory)
    later = x.clone()
    later[:, 4:] = some(2, 2, 16)
    z = model(later, memory)
    torch.testing.assert_close(z[:, :4], y[:, :4])
    assert ((z - y)[:, 4:].abs().amax(-1) > 1e-6).all()
    torch.testing.assert_close(model(x[:, :3], memory), y[:, :3])
    elsewhere = memory.clone()
    elsewhere[:, 4] = some(2, 16)
    assert ((model(x, elsewhere) - y).abs().amax(-1) > 1e-6).all()


@pytest.mark.parametrize("options", DESIGNS.values(), ids=DESIGNS.keys())
def test_padding_is_not_seen(options):
    model = decoder(**options)
    x, memory = some(2, 6, 16), some(2, 5, 16)
    padding, memory_padding = torch.zeros(2, 6, dtype=torch.bool), torch.zeros(2, 5, dtype=torch.bool)
    padding[0, 4:], memory_padding[1, 2:] = True, True
    y = model(x, memory, padding, memory_padding)
    torch.testing.assert_close(y[0, :4], model(x[:1, :4], memory[:1])[0])
    torch.testing.assert_close(y[1], model(x[1:], memory[1:, :2])[0])


@pytest.mark.parametrize("options", DESIGNS.values(), ids=DESIGNS.keys())
def test_gradients(options):
    model = decoder(layers=1, **options)
    x, memory = some(2, 3, 16).requires_grad_(), some(2, 4, 16).requires_grad_()
    assert torch.autograd.gradcheck(model, (x, memory))
    model(x, memory).square().sum().backward()
    assert [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()] == []
