"""Any public test made private: it is run on disjoint blocks, and the number of rejections is tested privately."""

# ruff: noqa: PT028 - a function whose name begins with test, and no test

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from discreet import check
from discreet.check import Number
from discreet.errors import InvalidParameter, InvalidValue
from discreet.mechanisms import Laplace
from discreet.noise import Bits, source_of, uniform_below
from discreet.noise.experiment import uniforms
from discreet.privacy import Neighbours
from discreet.statistics.results import TestResult
from discreet.statistics.spending import Spending
from discreet.statistics.tulap import greater

_MOST = 1_000_000


def test_of_tests(
    data: Any,
    test: Callable[..., float],
    *,
    blocks: int,
    epsilon: Number | None = None,
    block_level: Number = 0.1,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    bits: Bits | None = None,
) -> TestResult:
    """Runs a test on blocks of units and tells privately whether too many blocks reject.

    Under the null hypothesis each of m blocks rejects with a chance of at most `block_level`, independently, so that
    the number of rejections is at most binomial, and its private p-value holds (Kazan, Shi, Groce, Bray 2023).

    Formal guarantee: epsilon-DP under both relations. Each unit is put into a block independently of all others, so
    one unit, added, removed or replaced, changes one block, and the number of rejections by at most 1. A block that
    is empty, or whose test fails or returns no number, does not reject: nothing else depends on the data.

    Args:
        data: an array with a unit in each row, or a tuple of arrays of the same length.
        test: a public test, from the rows of a block (an argument for each array) to a p-value.
        blocks: how many, m; public.
        epsilon: above 0; there is no use for a delta.
        block_level: the level of the test in each block.
        neighbours: the relation to protect; it makes no difference here.
        bits: the source of randomness; None is the secure one.

    Raises:
        InvalidParameter: if a parameter is missing or wrong.
        InvalidValue: if arrays of a tuple differ in length.

    >>> from discreet.noise import SeededBits
    >>> def sign_test(rows: Any) -> float:
    ...     return math.comb(len(rows), 0) / 2 ** len(rows) if (rows > 0).all() else 1.0
    >>> found = test_of_tests(np.ones(500), sign_test, blocks=50, epsilon=1, bits=SeededBits(1))
    >>> found.reject(0.01)
    True
    """
    budget = Spending.of(epsilon).pure_epsilon
    count = check.integer(blocks=blocks, at_least=2, at_most=_MOST)
    level = check.probability(block_level=block_level)
    Neighbours(neighbours)
    if not callable(test):
        raise InvalidParameter("test", test, "to be a function from rows to a p-value")
    arrays = [np.asarray(part) for part in (data if isinstance(data, tuple) else (data,))]
    if len({len(part) for part in arrays}) != 1:
        raise InvalidValue("to have one row for each unit in every array", "Pass arrays of the same length.")
    source = source_of(bits)
    places = uniform_below(count, len(arrays[0]), bits=source)
    rejections = sum(_rejects(test, [part[places == block] for part in arrays], float(level)) for block in range(count))
    noise = Laplace(epsilon=budget, sensitivity=1)
    released = int(noise.release(rejections, bits=source)) + float(uniforms(1, bits=source)[0]) - 0.5
    p_value = greater(released, count, float(level), float(budget))
    return TestResult(p_value=p_value, statistic=released, event=noise.event, private=source.private)


setattr(test_of_tests, "__test__", False)  # noqa: B010 - says the same to pytest, in a way that mypy accepts


def _rejects(test: Callable[..., float], rows: list[Any], level: float) -> bool:
    """Whether a block rejects; whatever goes wrong in it is a public constant, no."""
    if not len(rows[0]):
        return False
    try:
        found = float(test(*rows))
    except Exception:  # noqa: BLE001 - a failure must not be told apart from "not rejected"
        return False
    return math.isfinite(found) and found <= level
