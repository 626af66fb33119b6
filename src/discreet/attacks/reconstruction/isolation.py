"""Overlapping totals that single out a person: which combinations of queries leave one number alone."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.attacks.attack import beside, compare_trials, posterior
from discreet.attacks.reconstruction.attribute_inference import span
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.mechanisms import Laplace
from discreet.noise import Bits, source_of
from discreet.noise.experiment import uniforms
from discreet.report.attack_finding import RAW, Comparison, Finding, Trial

Exactly = NDArray[np.object_]


@dataclass(frozen=True, kw_only=True)
class Isolation(Finding):
    """Reports people whose numbers follow from the answers exactly.

    Attributes:
        exposed: their places.
        combinations: for each, one factor for each query; the sum of answers with these factors is the person's number.
        queries: how many there are.
        measured: whether `success` was measured against the truth; else it is the share of people who are exposed.
    """

    exposed: tuple[int, ...]
    combinations: dict[int, tuple[Fraction, ...]]
    queries: int
    measured: bool

    def details(self) -> tuple[str, ...]:
        """Returns who is exposed, and by how many queries."""
        if not self.exposed:
            return (f"No combination of the {self.queries:,} queries isolates one person.",)
        first = self.exposed[0]
        used = sum(factor != 0 for factor in self.combinations[first])
        return (f"{len(self.exposed):,} people are exposed; person {first} by {used} of {self.queries:,} queries.",)


def _compare(
    queries: Any,
    *,
    bounds: tuple[int, int] = (0, 1000),
    epsilons: Sequence[check.Number] = ("0.1", 1, 10),
    smallest: int = 3,
    rounding: int = 10,
    trials: int = 100,
    bits: Bits | None = None,
) -> Comparison:
    """Compares totals of overlapping groups: exact, rounded, withheld if the group is small, private.

    In every trial each person has a whole number of its own, spread evenly over the bounds, and the attack is right if
    it names the number. Private answers have exact Laplace noise for all queries together, when one person's number is
    *replaced*. Hence the bound: one of k equally likely values is named with at most e^epsilon / (k - 1 + e^epsilon).

    Args:
        queries: a row of weights for each query, with a column for each person; public.
        bounds: of the numbers; whole.
        epsilons: each for all answers together.
        smallest: groups of fewer people are withheld; trackers get around it.
        rounding: of rounded totals.
        trials: for each release.
        bits: the source of randomness.
    """
    source, asked = source_of(bits), _weights(queries)
    low, high = (int(end) for end in span("bounds", bounds))
    chance = 1 / (high - low + 1)
    repeats, step = check.integer(trials=trials, at_least=1), check.integer(rounding=rounding, at_least=1)
    budgets = sorted(check.positive(epsilon=each) for each in epsilons)
    reach = int(np.abs(asked).sum(axis=0).max()) * (high - low)
    secret = low + np.floor((high - low + 1) * uniforms((asked.shape[1], repeats), bits=source)).astype(np.int64)
    exact = asked.astype(np.int64) @ secret
    large = np.count_nonzero(asked, axis=1) >= check.integer(smallest=smallest, at_least=1)
    every, few = _isolate_people(asked, None), _isolate_people(asked[large], None)

    def try_defence(name: str, known: Isolation, answers: Any, epsilon: Fraction | None = None) -> Trial:
        bound = None if epsilon is None else posterior(float(epsilon), chance)
        finding = _score_trials(known, answers, secret, ends=(low, high), bound=bound)
        return Trial(defence=name, epsilon=None if epsilon is None else float(epsilon), finding=finding)

    found = [
        try_defence(RAW, every, exact),
        try_defence(f"rounded to {step}", every, np.round(exact / step) * step),
        try_defence(f"fewer than {smallest} withheld", few, exact[large]),
    ]
    for epsilon in budgets:
        released = Laplace(epsilon=epsilon, sensitivity=reach).release(exact, bits=source)
        found.append(try_defence(f"epsilon {float(epsilon):g}", every, released, epsilon))
    return compare_trials(found, bound=lambda at: posterior(at, chance))


def _isolate(queries: Any, answers: Any = None, *, truth: Any = None, tolerance: float = 0.5) -> Isolation:
    """Finds the people whose numbers follow from totals of overlapping groups, and the combination that does it.

    The decision is exact: a person is exposed if and only if the unit vector of this person is a rational combination
    of the queries, which elimination on whole numbers of any size decides.

    Args:
        queries: a row of whole weights for each query, with a column for each person; 0 and 1 for totals of groups.
        answers: exact or noisy, one for each query; None to ask who would be exposed.
        truth: each person's number, to keep score.
        tolerance: how near counts as right.

    Raises:
        InvalidParameter: if shapes do not fit.

    No query is about one person alone: they are about all wards together, A and B, B and C, and A and C:

    >>> found = isolate([[1, 1, 1], [1, 1, 0], [0, 1, 1]], [100, 30, 95])
    >>> found.exposed, found.recovered
    ((0, 1, 2), {0: 5, 1: 25, 2: 70})
    """
    asked = _weights(queries)
    known = _isolate_people(asked, _parse_answers(answers, len(asked)))
    if truth is None:
        return known
    right = np.asarray(truth, dtype=np.float64)
    if right.shape != (asked.shape[1],) or answers is None:
        raise InvalidParameter("truth", right.shape, f"to be {asked.shape[1]:,} numbers, with answers")
    reach = float(check.not_negative(tolerance=tolerance))
    hits = sum(abs(float(known.recovered[person]) - right[person]) <= reach for person in known.exposed)
    return _with(known, success=hits / len(right), measured=True)


def _isolate_people(asked: Exactly, answers: list[Fraction] | None) -> Isolation:
    combinations = _combinations(asked)
    people = asked.shape[1]
    values = None
    if answers is not None:
        sums = {
            person: sum((factor * answer for factor, answer in zip(factors, answers, strict=True)), Fraction(0))
            for person, factors in combinations.items()
        }
        values = {person: int(total) if total.denominator == 1 else total for person, total in sums.items()}
    return Isolation(
        attack="Overlapping totals",
        goal="people exposed",
        success=len(combinations) / people,
        baseline=0.0,
        targets=people,
        recovered=values,
        exposed=tuple(combinations),
        combinations=combinations,
        queries=len(asked),
        measured=False,
    )


def _combinations(asked: Exactly) -> dict[int, tuple[Fraction, ...]]:
    """Returns, by person, the factors that leave this person alone.

    Elimination brings the queries, next to the unit matrix that records what was done, to reduced echelon form. A unit
    vector is in the row space if and only if it is a row of that form: any vector of the space is the sum of the form's
    rows, each times the vector's entry in the row's pivot.
    """
    rows, people = asked.shape
    work = np.hstack([asked, np.eye(rows, dtype=np.int64).astype(object)])
    pivots: list[int] = []
    for column in range(people):
        done = len(pivots)
        below = np.flatnonzero(work[done:, column] != 0)
        if not below.size:
            continue
        work[[done, done + below[0]]] = work[[done + below[0], done]]
        pivot = work[done]
        others = np.flatnonzero(work[:, column] != 0)
        others = others[others != done]
        work[others] = work[others] * pivot[column] - work[others, column][:, None] * pivot
        work[others] = work[others] // np.gcd.reduce(work[others], axis=1)[:, None] if others.size else work[others]
        pivots.append(column)
    alone = [(row, column) for row, column in enumerate(pivots) if np.count_nonzero(work[row, :people]) == 1]
    return {
        column: tuple(Fraction(factor, work[row, column]) for factor in work[row, people:]) for row, column in alone
    }


def _score_trials(
    known: Isolation, answers: Any, secret: NDArray[np.int64], *, ends: tuple[int, int], bound: float | None
) -> Isolation:
    """Returns the share of people, over all trials, whose whole number is named; the others are guessed."""
    people, trials = secret.shape
    chance = 1 / (ends[1] - ends[0] + 1)
    factors = np.array([[float(factor) for factor in known.combinations[person]] for person in known.exposed])
    hits = 0
    if known.exposed:
        values = np.clip(np.round(factors @ np.asarray(answers, dtype=np.float64)), *ends)
        hits = int(np.sum(values == secret[list(known.exposed)]))
    guessed = chance * (people - len(known.exposed)) * trials
    return _with(
        known,
        goal="numbers named",
        success=(hits + guessed) / (people * trials),
        baseline=chance,
        targets=people * trials,
        bound=bound,
        measured=True,
    )


def _with(known: Isolation, **changes: Any) -> Isolation:
    return Isolation(**({name: getattr(known, name) for name in known.__dataclass_fields__} | changes))


def _weights(queries: Any) -> Exactly:
    found = np.asarray(queries)
    if found.ndim != 2 or not found.size or found.dtype.kind not in "biu":
        shape = "a matrix of whole numbers, with a row for each query and a column for each person"
        raise InvalidParameter("queries", found.shape, f"to be {shape}", "Pass e.g. [[1, 1, 0], [0, 1, 1]].")
    whole = np.empty(found.shape, dtype=object)
    whole[...] = found.astype(np.int64).tolist()
    return whole


def _parse_answers(answers: Any, rows: int) -> list[Fraction] | None:
    if answers is None:
        return None
    found = [check.rational(answers=answer) for answer in answers]
    if len(found) != rows:
        raise InvalidParameter("answers", len(found), f"to be as many as the {rows:,} queries")
    return found


isolate = beside(_compare)(_isolate)
