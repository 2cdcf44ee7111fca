"""The layers as ``torch.nn.Module``s: the same layers, defaults and parameter names as in C++. Linear layers, convolutions and recurrent layers have
torch.nn's arguments in its order; attention, Transformers, ``LayerNorm`` and ``Dropout`` have their own, and the batch comes first.

Components are concatenated on the last axis: [r .. | i .. | j .. | k ..]. Maps, attention, norms and recurrences are
operators of ``quatrain.ops``; layers add only residuals, scalars and biases to them. ``TorchMultiheadAttention`` alone
computes as torch's module does, by torch's functions.

Constructors raise ValueError for sizes that n does not divide, numbers out of range, unknown names and options that
contradict each other, and TypeError for an argument of another type. A call raises ValueError or, as torch's own
operators do, RuntimeError where shapes, types or devices do not fit, and TypeError for an input that is no tensor of
floating-point numbers. Each is one sentence with the layer, the argument, the rule and the value.
"""

from .attention import MultiheadAttention
from .component_wise import Activation, Dropout, LayerNorm, dropout
from .convolution import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .decoder import TransformerDecoder, TransformerDecoderLayer
from .embedding import Embedding
from .encoder import FeedForward, TransformerEncoder, TransformerEncoderLayer
from .layout import from_phm_blocks, to_concatenated, to_interleaved, to_phm_blocks
from .linear import Linear
from .parameters import ParameterReport, decaying_parameters, parameter_groups, parameter_report
from .recurrent import GRU, LSTM, RNN
from .recurrent_cell import GRUCell, LSTMCell, RNNCell
from .torch_attention import TorchMultiheadAttention
from .weight import HypercomplexLayer, HypercomplexWeight
from .whitening import WhiteningNorm
from .words import Words

__all__ = [
    "Activation",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "Dropout",
    "Embedding",
    "FeedForward",
    "GRU",
    "GRUCell",
    "HypercomplexLayer",
    "HypercomplexWeight",
    "LSTM",
    "LSTMCell",
    "LayerNorm",
    "Linear",
    "MultiheadAttention",
    "ParameterReport",
    "RNN",
    "RNNCell",
    "TorchMultiheadAttention",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
    "WhiteningNorm",
    "Words",
    "decaying_parameters",
    "dropout",
    "from_phm_blocks",
    "parameter_groups",
    "parameter_report",
    "to_concatenated",
    "to_interleaved",
    "to_phm_blocks",
]
