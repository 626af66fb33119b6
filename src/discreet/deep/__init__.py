"""Private training of PyTorch models: an ordinary loop in which three lines change, or an estimator that has it inside.

Needs PyTorch: ``pip install '.[deep]'``. The estimators besides need scikit-learn, the extra `learn`.
"""

from typing import TYPE_CHECKING, Any

from discreet.lazy import extra, load

with extra("Deep learning"):
    from discreet.deep.banded_noise import BandedNoise
    from discreet.deep.clipping import ClipRule, Flat, Normalised, PerLayer
    from discreet.deep.private_trainer import Trainer
    from discreet.deep.scattering_layer import Scattering

if TYPE_CHECKING:
    from discreet.deep.estimators.classifier import Classifier
    from discreet.deep.estimators.networks import register_model
    from discreet.deep.estimators.regressor import Regressor

_ESTIMATORS = {
    "Classifier": "discreet.deep.estimators.classifier",
    "Regressor": "discreet.deep.estimators.regressor",
    "register_model": "discreet.deep.estimators.networks",
}

__all__ = ["BandedNoise", "Classifier", "ClipRule", "Flat", "Normalised", "PerLayer", "Regressor", "Scattering"]
__all__ += ["Trainer", "register_model"]


def __getattr__(name: str) -> Any:
    """Loads an estimator when it is first asked for: the trainer works without scikit-learn."""
    if name in _ESTIMATORS:
        return getattr(load(_ESTIMATORS[name], "An estimator"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
