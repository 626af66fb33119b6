"""The local model: no party is trusted, and every person randomizes their own answer before it leaves them.

A client and an aggregator share public parameters only. `privatize` is what a client does, `estimate` what an
aggregator does with all the reports; intervals are on every number, and reports of another survey are refused.
"""

from discreet.local.heavy_hitters import FrequentStrings, HeavyHitters
from discreet.local.means import DuchiMean, HybridMean, MeanOracle, PiecewiseMean
from discreet.local.oracles.best_oracle import best
from discreet.local.oracles.direct_response import GeneralizedRandomizedResponse, RandomizedResponse
from discreet.local.oracles.domain import ValueDomain
from discreet.local.oracles.frequencies import Frequencies
from discreet.local.oracles.hadamard_response import HadamardResponse
from discreet.local.oracles.local_hashing import LocalHashing
from discreet.local.oracles.oracle import FrequencyOracle
from discreet.local.oracles.reports import Reports
from discreet.local.oracles.subset_selection import SubsetSelection
from discreet.local.oracles.unary_encoding import UnaryEncoding
from discreet.local.permanent_response import PermanentResponse
from discreet.local.survey import Survey

__all__ = [
    "DuchiMean",
    "Frequencies",
    "FrequencyOracle",
    "FrequentStrings",
    "GeneralizedRandomizedResponse",
    "ValueDomain",
]
__all__ += ["HadamardResponse", "HeavyHitters", "HybridMean", "LocalHashing", "MeanOracle", "PermanentResponse"]
__all__ += ["PiecewiseMean", "RandomizedResponse", "Reports", "SubsetSelection", "Survey", "UnaryEncoding"]
__all__ += ["best"]
