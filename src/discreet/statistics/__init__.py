"""Private statistics of arrays: each returns an `Estimate`, a number with an interval and the event of its release.

Bounds are public and never read from the data; noise is exact; nothing depends on the number of rows unless it is
public. Values in `discreet.statistics.diagnostics` are private: for the steward's eyes, never published.
"""

from discreet.statistics.binomial import binomial_test
from discreet.statistics.blocks import subsample_and_aggregate
from discreet.statistics.bounds import Bounds, find_bounds
from discreet.statistics.chi_squared import chi_squared_test
from discreet.statistics.covariance import correlation, covariance
from discreet.statistics.heavy_tails import heavy_tailed_mean
from discreet.statistics.histogram import histogram
from discreet.statistics.iterative import iterative_mean
from discreet.statistics.m_estimators import huber_location, m_estimate
from discreet.statistics.m_regression import m_regression
from discreet.statistics.many_tests import test_of_tests
from discreet.statistics.mean import mean
from discreet.statistics.means_difference import difference_of_means_test
from discreet.statistics.permutation import permutation_test
from discreet.statistics.quantiles import interquartile_range, median, quantile, quantiles
from discreet.statistics.results import TestResult
from discreet.statistics.scores import Biweight, Huber, Logistic, Score
from discreet.statistics.spending import Spending
from discreet.statistics.spread import standard_deviation, variance
from discreet.statistics.trimmed import smooth_median, trimmed_mean
from discreet.statistics.whitening import iterative_covariance

std = standard_deviation

__all__ = [
    "Biweight",
    "Bounds",
    "Huber",
    "Logistic",
    "Score",
    "Spending",
    "TestResult",
    "binomial_test",
    "chi_squared_test",
    "correlation",
    "covariance",
    "difference_of_means_test",
    "find_bounds",
    "heavy_tailed_mean",
    "histogram",
    "huber_location",
    "interquartile_range",
    "iterative_covariance",
    "iterative_mean",
    "m_estimate",
    "m_regression",
    "mean",
    "median",
    "permutation_test",
    "quantile",
    "quantiles",
    "smooth_median",
    "standard_deviation",
    "std",
    "subsample_and_aggregate",
    "test_of_tests",
    "trimmed_mean",
    "variance",
]
