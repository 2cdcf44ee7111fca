"""Quatrain: hypercomplex layers for PyTorch over one C++ library.

Quaternion and other hypercomplex layers hold 1/n of the parameters of the real layers that they replace.

>>> import torch, quatrain
>>> layer = quatrain.nn.Linear(64, 64, algebra="quaternion")
>>> layer(torch.randn(2, 64)).shape
torch.Size([2, 64])
"""

from ._library import FOLDER as _FOLDER
from ._library import LIBRARY as _LIBRARY
from ._library import VERSION as __version__
from . import _flops as _flops
from . import _fused as _fused
from . import algebra, init, models, nn, ops, published
from .convert import ConversionReport, FactorizeReport, convert, factorize
from .fuse import fuse
from .materialise import materialise
from .runs import Run, RunModel, load, write_tensorboard
from .weights import load_model, save_model

#: For CMake: -DCMAKE_PREFIX_PATH=$(python -c 'import quatrain; print(quatrain.cmake_prefix_path)')
cmake_prefix_path: str = str(_FOLDER)
#: The library that is loaded.
library: str = str(_LIBRARY)

__all__ = [
    "ConversionReport",
    "FactorizeReport",
    "Run",
    "RunModel",
    "algebra",
    "cmake_prefix_path",
    "convert",
    "factorize",
    "fuse",
    "init",
    "library",
    "load",
    "load_model",
    "materialise",
    "models",
    "nn",
    "ops",
    "published",
    "save_model",
    "write_tensorboard",
]
