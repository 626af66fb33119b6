"""The mechanisms of the field, each with its event and its error."""

from discreet.mechanisms.base import Mechanism
from discreet.mechanisms.exponential import Exponential
from discreet.mechanisms.gaussian import DiscreteGaussian, Gaussian
from discreet.mechanisms.knorm import KNorm, Norm
from discreet.mechanisms.laplace import DiscreteLaplace, Laplace
from discreet.mechanisms.noisy_max import PermuteAndFlip, ReportNoisyMax
from discreet.mechanisms.partition_selection import PartitionSelection, Selected
from discreet.mechanisms.propose_test_release import ProposeTestRelease
from discreet.mechanisms.quantile import Quantile
from discreet.mechanisms.randomized_response import RandomizedResponse
from discreet.mechanisms.smooth import Lomax
from discreet.mechanisms.sparse_vector import SparseVector, SparseVectorSession
from discreet.mechanisms.staircase import Criterion, Staircase
from discreet.mechanisms.weighted_selection import WeightedSelection

__all__ = ["Criterion", "DiscreteGaussian", "DiscreteLaplace", "Exponential", "Gaussian", "KNorm", "Laplace", "Lomax"]
__all__ += ["Mechanism", "Norm", "PartitionSelection", "PermuteAndFlip", "ProposeTestRelease", "Quantile"]
__all__ += ["RandomizedResponse", "ReportNoisyMax", "Selected", "SparseVector", "SparseVectorSession", "Staircase"]
__all__ += ["WeightedSelection"]
