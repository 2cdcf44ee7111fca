"""The operators ``torch.ops.quatrain.*`` that users call, as typed functions.

The other operators serve derivatives, layers and runs.

Every system of the papers is one bilinear map, y = (sum_i A_i (x) S_i) x + b, with A of shape (n, n, n) indexed
[i, row, column], S of shape (n, k/n, d/n), and the components of x and y concatenated on the last axis. Arguments that
do not fit are ValueError or, as in torch's own operators, RuntimeError, and an index out of range is IndexError: one sentence
each.
"""

from .attention import cut_heads, hypercomplex_alignment, hypercomplex_attention, hypercomplex_attention_with_weights
from .components import (
    ACTIVATIONS,
    hamilton_product,
    hypercomplex_conjugate,
    hypercomplex_dropout,
    hypercomplex_layer_norm,
    hypercomplex_matching,
    hypercomplex_norm,
    split_activation,
    whitening_norm,
)
from .maps import (
    convolution,
    convolution_with_epilogue,
    drop_prepared,
    embedding,
    instruction_sets,
    linear,
    planned_way,
    prepared_size,
    recurrence,
    recurrent_layer,
)
from .structure import (
    Decomposition,
    Nearest,
    StructureReport,
    decompose,
    materialise,
    nearest,
    rank,
    set_structure_state,
    structure_report,
    structure_state,
)
from .words import index_of_words, masked_mean, places_of_words, rows_of_words

__all__ = [
    "ACTIVATIONS",
    "Decomposition",
    "Nearest",
    "StructureReport",
    "convolution",
    "convolution_with_epilogue",
    "cut_heads",
    "decompose",
    "drop_prepared",
    "embedding",
    "hamilton_product",
    "hypercomplex_alignment",
    "hypercomplex_attention",
    "hypercomplex_attention_with_weights",
    "hypercomplex_conjugate",
    "hypercomplex_dropout",
    "hypercomplex_layer_norm",
    "hypercomplex_matching",
    "hypercomplex_norm",
    "index_of_words",
    "instruction_sets",
    "linear",
    "masked_mean",
    "materialise",
    "nearest",
    "places_of_words",
    "planned_way",
    "prepared_size",
    "rank",
    "recurrence",
    "recurrent_layer",
    "rows_of_words",
    "set_structure_state",
    "split_activation",
    "structure_report",
    "structure_state",
    "whitening_norm",
]
