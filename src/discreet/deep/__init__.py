"""Private training of PyTorch models: an ordinary loop in which three lines change.

Needs PyTorch: ``pip install 'discreet[deep]'``.
"""

from discreet.lazy import extra

with extra("Deep learning"):
    from discreet.deep.banded_noise import BandedNoise
    from discreet.deep.clipping import ClipRule, Flat, Normalised, PerLayer
    from discreet.deep.private_trainer import Trainer
    from discreet.deep.scattering_layer import Scattering

__all__ = ["BandedNoise", "ClipRule", "Flat", "Normalised", "PerLayer", "Scattering", "Trainer"]
