"""Private statistics of arrays: each returns an `Estimate`, a number with an interval and the event of its release.

Bounds are public and never read from the data; noise is exact; nothing depends on the number of rows unless it is
public. Values in `discreet.statistics.diagnostics` are private: for the steward's eyes, never published.
"""

from discreet.statistics.budget_split import Spending
from discreet.statistics.frequent_texts import FrequentTexts, heavy_hitters
from discreet.statistics.histogram import Bounds, find_bounds, histogram
from discreet.statistics.moments.covariance import correlation, covariance
from discreet.statistics.moments.iterative_covariance import iterative_covariance
from discreet.statistics.moments.iterative_mean import iterative_mean
from discreet.statistics.moments.mean import mean
from discreet.statistics.moments.variance import standard_deviation, variance
from discreet.statistics.prefix_tree import PrefixCounts, PrefixTree
from discreet.statistics.quantiles.quantiles import interquartile_range, median, quantile, quantiles
from discreet.statistics.robust.heavy_tails import heavy_tailed_mean
from discreet.statistics.robust.m_estimators import huber_location, m_estimate
from discreet.statistics.robust.m_regression import m_regression
from discreet.statistics.robust.scores import Biweight, Huber, Logistic, Score
from discreet.statistics.robust.subsample_and_aggregate import subsample_and_aggregate
from discreet.statistics.robust.trimmed_mean import smooth_median, trimmed_mean
from discreet.statistics.tests.binomial import binomial_test, test_of_tests
from discreet.statistics.tests.chi_squared import chi_squared_test
from discreet.statistics.tests.difference_of_means import difference_of_means_test
from discreet.statistics.tests.permutation import permutation_test
from discreet.statistics.tests.results import TestResult

std = standard_deviation

__all__ = [
    "Biweight",
    "Bounds",
    "FrequentTexts",
    "Huber",
    "Logistic",
    "PrefixCounts",
    "PrefixTree",
    "Score",
    "Spending",
]
__all__ += ["TestResult"]
__all__ += ["binomial_test", "chi_squared_test", "correlation", "covariance", "difference_of_means_test", "find_bounds"]
__all__ += [
    "heavy_hitters",
    "heavy_tailed_mean",
    "histogram",
    "huber_location",
    "interquartile_range",
    "iterative_covariance",
]
__all__ += ["iterative_mean", "m_estimate", "m_regression", "mean", "median", "permutation_test", "quantile"]
__all__ += ["quantiles", "smooth_median", "standard_deviation", "std", "subsample_and_aggregate", "test_of_tests"]
__all__ += ["trimmed_mean", "variance"]
