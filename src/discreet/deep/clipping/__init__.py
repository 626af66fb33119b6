"""Gradients of single examples from one backward pass: their norms, and the sum of the clipped ones."""

from discreet.deep.clipping import attention, convolutions, embeddings, linear_layers, normalisations, recurrent_layers
from discreet.deep.clipping.clip_bounds import ClipRule, Flat, Normalised, PerLayer, clip_rule
from discreet.deep.clipping.clipped_sum import PerExampleGradients
from discreet.deep.clipping.recorded_calls import LayerCallRecorder

FAMILIES = (attention, convolutions, embeddings, linear_layers, normalisations, recurrent_layers)
"""Modules that register rules of layers."""

__all__ = [
    "FAMILIES",
    "ClipRule",
    "Flat",
    "LayerCallRecorder",
    "Normalised",
    "PerExampleGradients",
    "PerLayer",
    "clip_rule",
]
