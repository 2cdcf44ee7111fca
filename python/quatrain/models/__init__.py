"""Whole networks of the layers of ``quatrain.nn``: the same names, options, defaults and parameter names as in C++."""

from .resnet import ResNet, ResNetBlock

__all__ = ["ResNet", "ResNetBlock"]
