"""Whole networks of the layers of ``quatrain.nn``: the same names, options, defaults and parameter names as in C++."""

from .language_model import LanguageModel
from .recurrent_network import RecurrentNetwork
from .resnet import ResNet, ResNetBlock
from .seq2seq import Seq2Seq
from .text_classifier import TextClassifier
from .token_inputs import TokenInputs

__all__ = ["LanguageModel", "RecurrentNetwork", "ResNet", "ResNetBlock", "Seq2Seq", "TextClassifier", "TokenInputs"]
