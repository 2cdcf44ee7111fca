"""What the papers print, beside the defaults."""

import pytest
import torch
from quatrain import nn


def test_printed_encoder_layers_are_the_formulas():
    x = torch.randn(2, 5, 16, dtype=torch.float64)
    post, phydi = (nn.TransformerEncoderLayer(16, 2, 32, algebra="quaternion", norm=norm, printed=True, dtype=torch.float64).eval() for norm in ("post", "phydi"))
    y = post.norm1(x + post.attention.self_attention(x))
    torch.testing.assert_close(post(x), post.norm2(x + post.feed_forward(y)))  # PHYDI (4)
    torch.nn.init.constant_(phydi.alpha, 0.7)
    y = x + 0.7 * phydi.attention.self_attention(x)
    torch.testing.assert_close(phydi(x), x + 0.7 * phydi.feed_forward(y))  # PHYDI (5)


def test_phms_appendix():
    module = nn.Linear(8, 12, algebra="phm(2)")
    B, T = nn.to_phm_blocks(module.A, module.S)
    H = torch.stack([(B[b] @ T[q]).flatten() for b in range(2) for q in range(4)], 1)
    torch.testing.assert_close(H, module.matrix())
    A, S = nn.from_phm_blocks(B, T)
    assert torch.equal(A, module.A) and torch.equal(S, module.S)
    with pytest.raises(ValueError, match="from_phm_blocks: B must be"):
        nn.from_phm_blocks(T, B)


@pytest.mark.parametrize(
    "make, algebra, millions",
    [
        (nn.RNN, "real", 33.4),
        (nn.LSTM, "real", 176.3),
        (nn.LSTM, "quaternion", 49.9),
    ],
)
def test_the_largest_sizes_of_qrnn(make, algebra, millions):
    """Tables 1 and 2 at a width of 2,048, counted without memory; tests/nn/recurrent_test.cpp has the other rows."""
    both = dict(bidirectional=True, share_directions=True) if make is nn.LSTM else {}
    layers = make(160, 2048, 4, algebra=algebra, single_bias=True, device="meta", **both)
    output = (2 * 2048 + 1) * 1750 if both else (2048 + 1) * 1840
    size = sum(p.numel() for p in layers.parameters()) + output
    assert abs(size / 1e6 - millions) < 0.015 * millions + 0.05
