"""The mechanisms of the field, each with its event and its error."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from discreet.mechanisms.exponential import Exponential
    from discreet.mechanisms.gaussian import DiscreteGaussian, Gaussian
    from discreet.mechanisms.knorm import KNorm, Norm
    from discreet.mechanisms.laplace import DiscreteLaplace, Laplace
    from discreet.mechanisms.mechanism import Mechanism
    from discreet.mechanisms.noisy_max import PermuteAndFlip, ReportNoisyMax
    from discreet.mechanisms.partition_selection import PartitionSelection, SelectedKeys
    from discreet.mechanisms.propose_test_release import ProposeTestRelease
    from discreet.mechanisms.quantile import Quantile
    from discreet.mechanisms.randomized_response import RandomizedResponse
    from discreet.mechanisms.smooth import Lomax
    from discreet.mechanisms.sparse_vector import SparseVector, SparseVectorSession
    from discreet.mechanisms.staircase import Criterion, Staircase
    from discreet.mechanisms.weighted_selection import WeightedSelection

_NAMES = {
    "Mechanism": "discreet.mechanisms.mechanism",
    "Exponential": "discreet.mechanisms.exponential",
    **dict.fromkeys(("DiscreteGaussian", "Gaussian"), "discreet.mechanisms.gaussian"),
    **dict.fromkeys(("KNorm", "Norm"), "discreet.mechanisms.knorm"),
    **dict.fromkeys(("DiscreteLaplace", "Laplace"), "discreet.mechanisms.laplace"),
    **dict.fromkeys(("PermuteAndFlip", "ReportNoisyMax"), "discreet.mechanisms.noisy_max"),
    **dict.fromkeys(("PartitionSelection", "SelectedKeys"), "discreet.mechanisms.partition_selection"),
    "ProposeTestRelease": "discreet.mechanisms.propose_test_release",
    "Quantile": "discreet.mechanisms.quantile",
    "RandomizedResponse": "discreet.mechanisms.randomized_response",
    "Lomax": "discreet.mechanisms.smooth",
    **dict.fromkeys(("SparseVector", "SparseVectorSession"), "discreet.mechanisms.sparse_vector"),
    **dict.fromkeys(("Criterion", "Staircase"), "discreet.mechanisms.staircase"),
    "WeightedSelection": "discreet.mechanisms.weighted_selection",
}

__all__ = ["Criterion", "DiscreteGaussian", "DiscreteLaplace", "Exponential", "Gaussian", "KNorm", "Laplace", "Lomax"]
__all__ += ["Mechanism", "Norm", "PartitionSelection", "PermuteAndFlip", "ProposeTestRelease", "Quantile"]
__all__ += ["RandomizedResponse", "ReportNoisyMax", "SelectedKeys", "SparseVector", "SparseVectorSession", "Staircase"]
__all__ += ["WeightedSelection"]


def __getattr__(name: str) -> object:
    """Loads a name from its module on first use."""
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'discreet.mechanisms' has no attribute {name!r}")
