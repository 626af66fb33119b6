"""The choice of an oracle from public facts: how many values, how much privacy, how many people."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from discreet import check
from discreet.local.oracles.direct_response import GeneralizedRandomizedResponse
from discreet.local.oracles.domain import Value, ValueDomain
from discreet.local.oracles.hadamard_response import HadamardResponse
from discreet.local.oracles.local_hashing import LocalHashing
from discreet.local.oracles.oracle import FrequencyOracle
from discreet.local.oracles.subset_selection import SubsetSelection
from discreet.local.oracles.unary_encoding import UnaryEncoding

KINDS = (GeneralizedRandomizedResponse, LocalHashing, HadamardResponse, SubsetSelection, UnaryEncoding)
_AS_GOOD = 1.02  # variances this near to the least are equal in practice: an interval is 1 % longer


def best(domain: ValueDomain | int | Iterable[Value], epsilon: check.Number, n: int) -> FrequencyOracle:
    """Returns the oracle of least variance; among those within 2 % of it, the one with the shortest reports.

    Args:
        domain: how many values there are, or the list of them.
        epsilon: above 0.
        n: about how many people will report.

    Returns:
        The oracle. Its variance is that of a value which every d-th person holds, d values being in the domain.

    Raises:
        InvalidParameter: outside these domains.

    >>> type(best(4, epsilon=1, n=1000)).__name__, type(best(1024, epsilon=1, n=1000)).__name__
    ('GeneralizedRandomizedResponse', 'LocalHashing')
    """
    values, count = ValueDomain.of(domain), check.integer(n=n, at_least=1)
    found = [kind(epsilon=epsilon, domain=values) for kind in KINDS]
    variances = [oracle.variance(count, Fraction(1, values.size)) for oracle in found]
    good = [o for o, variance in zip(found, variances, strict=True) if variance <= _AS_GOOD * min(variances)]
    return min(good, key=lambda oracle: oracle.bits_per_report)
