"""Weights of hypercomplex networks that others trained, as layers that compute the same.

Other toolkits have the four components of a quaternion matrix as ``r_weight``, ``i_weight``, ``j_weight`` and ``k_weight``,
each (in/4, out/4), of a convolution (out/4, in/4, kernel...), for the left product W * x of components that are concatenated,
as here. HyperNets and PHYDI have ``A`` and ``F`` of a convolution, HyperNets ``a`` and ``s`` of a linear layer, as here.
"""

from __future__ import annotations

from ._layers import convolution, linear
from ._networks import resnet
from ._recurrent import SOURCES, Source, recurrent

__all__ = ["SOURCES", "Source", "convolution", "linear", "recurrent", "resnet"]
