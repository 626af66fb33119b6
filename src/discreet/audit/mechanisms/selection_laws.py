"""Exact laws of choices on neighbouring inputs: options, reports, keys, points of a grid, yeses and noes."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from discreet.audit.mechanisms.additive_laws import (
    MOST_PIECES,
    NOTHING,
    LawPair,
    OutputMass,
    Recipe,
    gaussian_pieces,
    normalize_pieces,
    power,
    product,
    total,
    upper_tail,
    whole_range,
)
from discreet.errors import InvalidParameter
from discreet.exact import Enclosure
from discreet.mechanisms import (
    Exponential,
    PartitionSelection,
    PermuteAndFlip,
    Quantile,
    RandomizedResponse,
    ReportNoisyMax,
    SparseVector,
)
from discreet.mechanisms.private_selection import Selection, score_steps

_LONGEST = 12  # queries of a session: transcripts double with each


def _rows(mechanism: Selection, a: Any, b: Any) -> tuple[list[int], list[int]]:
    one, other = (score_steps(value, mechanism.grid) for value in (a, b))
    if one.ndim != 1 or one.shape != other.shape:
        raise InvalidParameter(
            "b", f"scores of shape {other.shape}", "to be one vector, as long as a", "Compare one choice."
        )
    return one.tolist(), other.tolist()


# ------------------------------------------------------------------------------------------------------------- options
def exponential(mechanism: Exponential, a: Any, b: Any) -> Recipe:
    """Returns both laws of the exponential mechanism, weights e^(-rate gap)."""
    one, other = _rows(mechanism, a, b)

    def recipe(digits: int) -> LawPair:
        p, q = ([power(mechanism.rate, max(row) - score, digits) for score in row] for row in (one, other))
        return normalize_pieces(p, q, [1] * len(one), digits)

    return recipe


def permute_and_flip(mechanism: PermuteAndFlip, a: Any, b: Any) -> Recipe:
    """Returns P(i) = c_i E[1 / (1 + heads among the others)], with coins c_i = e^(-rate gap)."""
    one, other = _rows(mechanism, a, b)

    def law(row: list[int], digits: int) -> list[Enclosure]:
        coins = [power(mechanism.rate, max(row) - score, digits) for score in row]
        return [coins[i] * _expected_share(coins[:i] + coins[i + 1 :], digits) for i in range(len(row))]

    return lambda digits: LawPair(tuple(map(OutputMass, law(one, digits), law(other, digits))))


def _expected_share(coins: list[Enclosure], digits: int) -> Enclosure:
    """Returns E[1 / (1 + number of heads)] from the law of that number."""
    heads = [Enclosure.of(1, digits)]
    for coin in coins:
        missed = [chance * (1 - coin) for chance in heads]
        hit = [chance * coin for chance in heads]
        nothing = Enclosure.of(0, digits)
        heads = [x + y for x, y in zip([*missed, nothing], [nothing, *hit], strict=True)]
    return total((chance * Fraction(1, 1 + k) for k, chance in enumerate(heads)), digits)


def noisy_max(mechanism: ReportNoisyMax, a: Any, b: Any) -> Recipe:
    """Returns both laws of the noisy maximum, by a sum over the winner's noise; ties go to the lowest index."""
    one, other = _rows(mechanism, a, b)
    scale = 1 / mechanism.rate

    def recipe(digits: int) -> LawPair:
        reach = whole_range(scale, digits // 2)
        widest = reach + max(max(one) - min(one), max(other) - min(other)) + 1
        below = {z: 1 - upper_tail(scale, z + 1, digits) for z in range(-widest, widest + 1)}
        a_ = Enclosure.of(-1 / scale, digits).exp()
        weights = [(1 - a_) / (a_ + 1) * power(mechanism.rate, k, digits) for k in range(reach + 1)]
        left = upper_tail(scale, reach + 1, digits) * 2

        def wins(row: list[int], i: int) -> Enclosure:
            terms = []
            for z in range(-reach, reach + 1):
                term = weights[abs(z)]
                for j, score in enumerate(row):
                    if j != i:
                        term = term * below[row[i] + z - score - (j < i)]
                terms.append(term)
            return _or_more(total(terms, digits), left)

        return LawPair(tuple(OutputMass(wins(one, i), wins(other, i)) for i in range(len(one))))

    return recipe


def randomized_response(mechanism: RandomizedResponse, a: Any, b: Any) -> Recipe:
    """Returns both laws of every report that differs: the one truth, the other, and all that are neither."""
    one, other = (np.ravel(np.asarray(value)).astype(np.int64).tolist() for value in (a, b))
    if len(one) != len(other):
        raise InvalidParameter("b", f"{len(other)} reports", f"to hold as many as a, {len(one)}")
    changed = sum(x != y for x, y in zip(one, other, strict=True))

    def report(digits: int) -> LawPair:
        truth = mechanism.probability(digits)
        lie = mechanism.lie(digits) * Fraction(1, mechanism.options - 1)
        others = (OutputMass(lie, lie, mechanism.options - 2),) if mechanism.options > 2 else ()
        return LawPair((OutputMass(truth, lie), OutputMass(lie, truth), *others))

    return product([report] * changed)


# -------------------------------------------------------------------------------------------------------------- points
def quantile(mechanism: Quantile, a: Any, b: Any) -> Recipe:
    """Returns points of equal losses on both sides, counted."""
    one, other = (_runs(mechanism, value) for value in (a, b))
    edges = sorted({edge for runs in (one, other) for start, stop, _ in runs for edge in (start, stop)})
    found = [(stop - start, _loss_at(one, start), _loss_at(other, start)) for start, stop in pairwise(edges)]

    def recipe(digits: int) -> LawPair:
        p, q = ([power(mechanism.rate, piece[side], digits) for piece in found] for side in (1, 2))
        return normalize_pieces(p, q, [size for size, _, _ in found], digits)

    return recipe


def _runs(mechanism: Quantile, value: Any) -> list[tuple[int, int, int]]:
    starts, sizes, losses = (column.tolist() for column in mechanism.cells(value))
    return sorted((s, s + n, loss) for s, n, loss in zip(starts, sizes, losses, strict=True) if n)


def _loss_at(runs: list[tuple[int, int, int]], point: int) -> int:
    return next(loss for start, stop, loss in runs if start <= point < stop)


# ---------------------------------------------------------------------------------------------------------------- keys
def partition_selection(mechanism: PartitionSelection, a: Any, b: Any) -> Recipe:
    """Returns both laws of every key whose count differs.

    A key is dropped, or kept and, where the method gives one, shown with its noisy count.
    """
    one, other = (np.ravel(np.asarray(value)).astype(np.int64).tolist() for value in (a, b))
    if len(one) != len(other):
        hint = "List the same keys for both, with 0 where there are no people."
        raise InvalidParameter("b", f"{len(other)} keys", f"to have as many keys as a, {len(one)}", hint)
    part = {"optimal": _selection_law, "truncated": _cut}.get(mechanism.method, _noisy_count_law)
    return product([part(mechanism, x, y) for x, y in zip(one, other, strict=True) if x != y])


def _selection_law(mechanism: PartitionSelection, x: int, y: int) -> Recipe:
    def recipe(digits: int) -> LawPair:
        p, q = (mechanism.rule.probability(count, digits) for count in (x, y))
        return LawPair((OutputMass(p, q), OutputMass(1 - p, 1 - q)))

    return recipe


def _noisy_count_law(mechanism: PartitionSelection, x: int, y: int) -> Recipe:
    """Returns noisy counts from the threshold on, in the terms of the shifted laws; all below become one piece."""
    scale, threshold = mechanism.scale, mechanism.threshold

    def recipe(digits: int) -> LawPair:
        low, high = sorted((x, y))
        points, rest = _points(mechanism.method, scale, (low, high), threshold, digits)
        zero, one = Enclosure.of(0, digits), Enclosure.of(1, digits)
        if low == 0:  # a key without people is never shown
            points = [OutputMass(zero, point.q, point.count) for point in points]
        shown = [total((getattr(point, side) * point.count for point in points), digits) for side in ("p", "q")]
        dropped = OutputMass(_low_by(one - shown[0], rest), _low_by(one - shown[1], rest))
        found = LawPair((*points, dropped), rest, unbounded=mechanism.method == "gaussian")
        return found if x <= y else found.swapped_pieces

    return recipe


def _cut(mechanism: PartitionSelection, x: int, y: int) -> Recipe:
    """Returns noisy counts above the longest noise, each with its mass; all below become one piece."""
    most = mechanism.threshold - 1
    if max(x, y) + 2 * most > MOST_PIECES:
        raise InvalidParameter("b", "another value", "to have counts near those of a and the threshold")

    def recipe(digits: int) -> LawPair:
        weights = [power(1 / mechanism.scale, k, digits) for k in range(most + 1)]
        everything = total(weights[1:], digits) * 2 + weights[0]
        zero = Enclosure.of(0, digits)

        def mass(noise: int) -> Enclosure:
            return weights[abs(noise)] / everything if abs(noise) <= most else zero

        ends = range(most + 1, max(x, y) + most + 1), range(-most, most + 1)
        shown = [OutputMass(mass(z - x), mass(z - y)) for z in ends[0]]
        one, other = (total((mass(z) for z in ends[1] if z + count <= most), digits) for count in (x, y))
        return LawPair((*shown, OutputMass(one, other)))

    return recipe


def _points(
    method: str, scale: Fraction, centres: tuple[int, int], threshold: int, digits: int
) -> tuple[list[OutputMass], Fraction]:
    low, high = centres
    if method == "gaussian":
        pieces = gaussian_pieces(scale, high - low, digits)
        first = low - (len(pieces.listed) - 1 - (high - low)) // 2
        return [piece for z, piece in enumerate(pieces.listed, start=first) if z >= threshold], pieces.rest
    if high - low + abs(threshold) > MOST_PIECES:
        raise InvalidParameter("b", "another value", "to have counts near those of a and the threshold")
    top = max(high, threshold)
    a = Enclosure.of(-1 / scale, digits).exp()
    unit = (1 - a) / (a + 1)
    listed = [
        OutputMass(unit * power(1 / scale, abs(z - low), digits), unit * power(1 / scale, abs(z - high), digits))
        for z in range(threshold, top)
    ]
    return [*listed, OutputMass(upper_tail(scale, top - low, digits), upper_tail(scale, top - high, digits))], NOTHING


def _low_by(value: Enclosure, rest: Fraction) -> Enclosure:
    """Returns the same number if up to `rest` of what was taken away was not known."""
    return Enclosure(max((value - rest).low, Decimal(0)), value.high, value.digits)


# -------------------------------------------------------------------------------------------------------------- yeses
def sparse_vector(mechanism: SparseVector, a: Any, b: Any) -> Recipe:
    """Returns both laws of every list of answers, by a sum over the noise of the threshold."""
    one, other = (np.ravel(np.asarray(mechanism.grid.steps(list(value)))).tolist() for value in (a, b))
    if len(one) != len(other) or len(one) > _LONGEST:
        raise InvalidParameter(
            "b", f"{len(other)} queries", f"to be as many as in a, {len(one)}, and at most {_LONGEST}"
        )
    level = mechanism.grid.steps(mechanism.threshold)
    limit = mechanism.max_positives

    def recipe(digits: int) -> LawPair:
        reach = whole_range(mechanism.threshold_scale, digits // 2)
        weights = {k: _point(mechanism.threshold_scale, k, digits) for k in range(reach + 1)}
        chances: dict[int, Enclosure] = {}

        def yes(gap: int) -> Enclosure:
            if gap not in chances:
                chances[gap] = upper_tail(mechanism.query_scale, gap, digits)
            return chances[gap]

        beyond = upper_tail(mechanism.threshold_scale, reach + 1, digits) * 2
        laws = []
        for queries in (one, other):
            law: dict[tuple[bool, ...], Enclosure] = {}
            for noise in range(-reach, reach + 1):
                _grow(law, (), weights[abs(noise)], [yes(level + noise - query) for query in queries], limit)
            laws.append(law)
        return LawPair(
            tuple(OutputMass(_or_more(p, beyond), _or_more(laws[1][key], beyond)) for key, p in laws[0].items())
        )

    return recipe


def _or_more(known: Enclosure, beyond: Enclosure) -> Enclosure:
    """Returns a sum that lacks at most the part beyond."""
    return Enclosure(known.low, (known + beyond).high, known.digits)


def _point(scale: Fraction, k: int, digits: int) -> Enclosure:
    a = Enclosure.of(-1 / scale, digits).exp()
    return (1 - a) / (a + 1) * power(1 / scale, k, digits)


def _grow(
    law: dict[tuple[bool, ...], Enclosure],
    answers: tuple[bool, ...],
    chance: Enclosure,
    hits: list[Enclosure],
    limit: int,
) -> None:
    """Adds the chances of all answers that can follow, given the chance of each yes."""
    if not hits or sum(answers) == limit:
        law[answers] = law[answers] + chance if answers in law else chance
        return
    _grow(law, (*answers, True), chance * hits[0], hits[1:], limit)
    _grow(law, (*answers, False), chance * (1 - hits[0]), hits[1:], limit)
