"""``torch.nn.MultiheadAttention`` with projections of any kind, and torch's encoders around it."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .weight import HypercomplexLayer


def _linear(weight: Tensor, bias: Tensor | None) -> nn.Linear:
    layer = nn.Linear(weight.size(1), weight.size(0), bias is not None, device="meta")
    layer.weight = nn.Parameter(weight.detach().clone(), weight.requires_grad)
    if bias is not None:
        layer.bias = nn.Parameter(bias.detach().clone(), bias.requires_grad)
    return layer


def _check_mask(name: str, mask: Tensor | None, *sizes: tuple[int, ...]) -> None:
    if mask is None:
        return
    if mask.dtype != torch.bool and not mask.is_floating_point():
        raise TypeError(f"TorchMultiheadAttention: {name} must be bool (True: hidden) or floating point (added), got {mask.dtype}")
    if tuple(mask.shape) not in sizes:
        wanted = " or ".join(str(size) for size in sizes)
        raise ValueError(f"TorchMultiheadAttention: {name} must have the shape {wanted}, got {tuple(mask.shape)}")


def _additive(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """True becomes -inf; a float mask stays."""
    if mask.dtype == torch.bool:
        return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(mask, -math.inf)
    return mask.to(dtype)


class TorchMultiheadAttention(nn.Module):
    """What ``quatrain.convert`` puts in the place of a ``torch.nn.MultiheadAttention``: the same call and the same function.

    Torch's module reads the weights of its projections itself; here they are four layers, of any kind, that are called:
    ``q_proj``, ``k_proj``, ``v_proj``, ``out_proj``. Beside them ``bias_k`` and ``bias_v``, where torch's module has them.

    Args:
        attention: the module whose weights are copied, into real layers.

    Shape: as torch's, ``batch_first`` or not, batched or not.

    >>> import torch, quatrain
    >>> real = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = torch.randn(3, 5, 8)
    >>> attention = quatrain.nn.TorchMultiheadAttention(real)
    >>> torch.allclose(attention(x, x, x)[0], real(x, x, x)[0], atol=1e-6)
    True
    >>> quatrain.convert(attention, "quaternion")[1].converted
    4
    """

    # Torch's encoders look here before their own fast path, and then call the module instead.
    in_proj_weight: Tensor | None = None
    in_proj_bias: Tensor | None = None
    _qkv_same_embed_dim = False

    def __init__(self, attention: nn.MultiheadAttention) -> None:
        super().__init__()
        self.embed_dim, self.kdim, self.vdim = attention.embed_dim, attention.kdim, attention.vdim
        self.num_heads, self.head_dim = attention.num_heads, attention.head_dim
        self.dropout, self.batch_first = attention.dropout, attention.batch_first
        self.add_zero_attn = attention.add_zero_attn
        if attention.in_proj_weight is not None:
            weights = attention.in_proj_weight.chunk(3)
        else:
            weights = (attention.q_proj_weight, attention.k_proj_weight, attention.v_proj_weight)
        packed = attention.in_proj_bias
        biases = (None, None, None) if packed is None else packed.chunk(3)
        self.q_proj, self.k_proj, self.v_proj = (_linear(*pair) for pair in zip(weights, biases))
        self.out_proj = _linear(attention.out_proj.weight, attention.out_proj.bias)
        self.bias_k, self.bias_v = attention.bias_k, attention.bias_v
        self.train(attention.training)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The output and, where ``need_weights``, the attention weights: see ``torch.nn.MultiheadAttention``."""
        if query.is_nested:
            raise ValueError("TorchMultiheadAttention: query must be one tensor, got a nested one (pad it and give a mask)")
        if is_causal and attn_mask is None:
            raise ValueError("TorchMultiheadAttention: is_causal is a hint about attn_mask, got none (give the mask too)")
        batched = query.dim() == 3
        self._check(query, key, value, key_padding_mask, attn_mask)
        if not batched:
            query, key, value = query.unsqueeze(0), key.unsqueeze(0), value.unsqueeze(0)
            key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
        elif not self.batch_first:
            query, key, value = query.transpose(0, 1), key.transpose(0, 1), value.transpose(0, 1)
        Q = self._heads(self.q_proj(query))
        K = self._heads(self._extended(self.k_proj(key), self.bias_k))
        V = self._heads(self._extended(self.v_proj(value), self.bias_v))
        p = self.dropout if self.training else 0.0
        causal = is_causal and key_padding_mask is None and not need_weights and K.size(2) == key.size(1)
        mask = None if causal else self._mask(attn_mask, key_padding_mask, Q, K)
        weights = None
        if need_weights:
            scores = Q @ K.transpose(2, 3) / math.sqrt(self.head_dim)
            weights = F.dropout(F.softmax(scores if mask is None else scores + mask, dim=-1), p)
            mixed = weights @ V
        else:
            mixed = F.scaled_dot_product_attention(Q, K, V, mask, p, causal)
        y = self.out_proj(mixed.transpose(1, 2).flatten(2))
        if weights is not None and average_attn_weights:
            weights = weights.mean(1)
        if not batched:
            return y.squeeze(0), None if weights is None else weights.squeeze(0)
        return y if self.batch_first else y.transpose(0, 1), weights

    def _check(self, query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None, attn_mask: Tensor | None) -> None:
        """Refuses what torch refuses: a wrong mask would hide other keys than it says."""
        axes = "batch, length" if self.batch_first else "length, batch"
        for name, x, width in (("query", query, self.embed_dim), ("key", key, self.kdim), ("value", value, self.vdim)):
            if x.dim() not in (2, 3) or x.dim() != query.dim() or x.size(-1) != width:
                raise ValueError(
                    f"TorchMultiheadAttention: query, key and value must all be ({axes}, width) or all (length, width), of widths "
                    f"{self.embed_dim}, {self.kdim} and {self.vdim}; got {name} {tuple(x.shape)} for query {tuple(query.shape)}"
                )
        if key.shape[:-1] != value.shape[:-1]:
            raise ValueError(
                f"TorchMultiheadAttention: key and value must have the same length and batch, got {tuple(key.shape)} and "
                f"{tuple(value.shape)}"
            )
        length, batch = (0, None) if query.dim() == 2 else (1, 0) if self.batch_first else (0, 1)
        if batch is not None and key.size(batch) != query.size(batch):
            raise ValueError(
                f"TorchMultiheadAttention: query and key must have the same batch, got {tuple(query.shape)} and {tuple(key.shape)}"
            )
        queries, keys = query.size(length), key.size(length)
        texts = 1 if batch is None else query.size(batch)
        _check_mask("key_padding_mask", padding, (keys,) if batch is None else (texts, keys))
        _check_mask("attn_mask", attn_mask, (queries, keys), (texts * self.num_heads, queries, keys))

    def _heads(self, x: Tensor) -> Tensor:
        """(B, L, width) -> (B, heads, L, width/heads)."""
        return x.unflatten(2, (self.num_heads, self.head_dim)).transpose(1, 2)

    def _extended(self, x: Tensor, bias: Tensor | None) -> Tensor:
        """With the learned key or value, and a zero one, at its end."""
        more = [] if bias is None else [bias.to(x.dtype).expand(x.size(0), 1, -1)]
        if self.add_zero_attn:
            more.append(x.new_zeros(x.size(0), 1, x.size(2)))
        return torch.cat([x, *more], 1) if more else x

    def _mask(self, attn_mask: Tensor | None, padding: Tensor | None, Q: Tensor, K: Tensor) -> Tensor | None:
        """What is added to the scores (B, heads, L, S)."""
        masks = []
        if attn_mask is not None:
            mask = _additive(attn_mask, Q.dtype)
            masks.append(mask if mask.dim() == 2 else mask.unflatten(0, (-1, self.num_heads)))
        if padding is not None:
            masks.append(_additive(padding, Q.dtype)[:, None, None, :])
        if not masks:
            return None
        mask = masks[0] if len(masks) == 1 else masks[0] + masks[1]
        return F.pad(mask, (0, K.size(2) - mask.size(-1)))  # extra keys are seen by all

    def extra_repr(self) -> str:
        return f"{self.embed_dim}, num_heads={self.num_heads}, dropout={self.dropout}, batch_first={self.batch_first}"


def leave_fast_paths(model: nn.Module) -> None:
    """Torch's encoders with hypercomplex layers in them call these in eval mode too, instead of reading their ``weight``,
    which would build H in every call."""
    for module in model.modules():
        if isinstance(module, (nn.TransformerEncoder, nn.TransformerEncoderLayer)):
            if any(isinstance(part, HypercomplexLayer) for part in module.modules()):
                # As torch itself marks an encoder that has no fast path.
                if isinstance(module, nn.TransformerEncoder):
                    module.use_nested_tensor = False
                else:
                    module.activation_relu_or_gelu = 0
