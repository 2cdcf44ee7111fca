"""The layers as ``torch.nn.Module``s: the same names, arguments, defaults and parameter names as in C++.

Components are concatenated on the last axis: [r .. | i .. | j .. | k ..]. Nothing is computed here: each layer calls the
operators of ``quatrain.ops``.
"""

from .attention import MultiheadAttention
from .component_wise import Activation, Dropout, LayerNorm, dropout, to_concatenated, to_interleaved
from .encoder import FeedForward, TransformerEncoder, TransformerEncoderLayer
from .linear import Linear
from .parameters import ParameterReport, parameter_report, takes_weight_decay
from .torch_attention import TorchMultiheadAttention

__all__ = [
    "Activation",
    "Dropout",
    "FeedForward",
    "LayerNorm",
    "Linear",
    "MultiheadAttention",
    "ParameterReport",
    "TorchMultiheadAttention",
    "TransformerEncoder",
    "TransformerEncoderLayer",
    "dropout",
    "parameter_report",
    "takes_weight_decay",
    "to_concatenated",
    "to_interleaved",
]
