"""Declared random samples: how many people of which population a table holds, by the design of the survey.

A design is public: a survey publishes how many people it drew of how many. It is a fact that the steward vouches for.
Nothing about privacy rests on it, and the number of people in the data is never looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from fractions import Fraction
from typing import Any

from discreet import check
from discreet.check import assign
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.plan.model.nodes import Value

INTERVALS = NOISE, POPULATION = "noise", "population"
"""What the interval of a number may cover: noise alone, or the drawing of a random sample as well."""

MOST_PEOPLE = 10**12
MOST_STRATA = 1000
_EXAMPLE = (
    'Declare e.g. {"population": {"A": 50000, "B": 20000}, "size": {"A": 1000, "B": 1000}, "by": "ward"}, '
    "where by names the column of the strata."
)


@dataclass(frozen=True, slots=True)
class SimpleSample:
    """People drawn at random from a population, every set of so many with the same chance.

    Strata that are drawn in proportion to their sizes, but for rounding, are described as one such sample.

    Args:
        population: how many people there are, N.
        size: how many were drawn, n.
        missed: the largest share of a stratum that was not drawn: 1 - n/N if there is one.
        correction: the largest N/(N - 1) of a stratum, by which a variance with N - 1 exceeds one with N.
        unevenness: the sum over strata of |n_h - n N_h/N|, which rounding to whole people leaves.
    """

    population: int
    size: int
    missed: Fraction
    correction: Fraction
    unevenness: Fraction = Fraction(0)

    @classmethod
    def of(cls, population: int, size: int) -> SimpleSample:
        """Returns a sample of so many of so many people."""
        return cls(population, size, 1 - Fraction(size, population), Fraction(population, max(population - 1, 1)))

    @property
    def factor(self) -> Fraction:
        """Returns how many people of the population each one in the sample represents."""
        return Fraction(self.population, self.size)

    @property
    def design_factor(self) -> Fraction:
        """Returns (1 - n/N) N/(N - 1): what turns the mean square of n draws into the variance of their sum."""
        return self.missed * self.correction


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A simple random sample of people, or one of each stratum, drawn without replacement.

    Args:
        population: how many people there are; in strata, a dictionary of numbers by the value of the column `by`.
        size: how many of them were drawn, people without rows included; by stratum alike.
        by: the column that names the stratum, the same in all rows of one person.

    >>> Sample(population=100_000, size=5_000)
    Sample(5,000 of 100,000)
    >>> Sample(population={"A": 50_000, "B": 20_000}, size={"A": 1_000, "B": 1_000}, by="ward")
    Sample(2,000 of 70,000, by ward)
    """

    population: int | Mapping[Any, int]
    size: int | Mapping[Any, int]
    by: str | None = None
    _strata: tuple[tuple[Value, SimpleSample], ...] = field(default=(), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        parts = isinstance(self.population, Mapping), isinstance(self.size, Mapping), self.by is not None
        if len(set(parts)) > 1:
            raise InvalidParameter("by", self.by, "to come with numbers of every stratum", _EXAMPLE)
        if isinstance(self.population, Mapping) and isinstance(self.size, Mapping):
            self._check_strata(self.population, self.size)
            listed = [(key, _drawn(self.population[key], self.size[key])) for key in self.population]
        else:
            listed = [(None, _drawn(self.population, self.size))]
        assign(self, _strata=tuple(listed))

    def __repr__(self) -> str:
        return f"Sample({self})"

    def __str__(self) -> str:
        drawn, of = (sum(getattr(one, name) for _, one in self._strata) for name in ("size", "population"))
        return f"{drawn:,} of {of:,}" + ("" if self.by is None else f", by {self.by}")

    @classmethod
    def of(cls, given: Any) -> Sample:
        """Returns a sample, given as itself or as a dictionary of its arguments.

        Raises:
            InvalidParameter: if it is neither.
        """
        if isinstance(given, Sample):
            return given
        if isinstance(given, Mapping) and {"population", "size"} <= given.keys() <= {"population", "size", "by"}:
            return cls(**given)
        hint = 'Declare how many people were drawn of how many, e.g. {"population": 100000, "size": 5000}.'
        raise InvalidParameter("sample_of", given, "to be a sample of a population", hint)

    def _check_strata(self, population: Mapping[Any, int], size: Mapping[Any, int]) -> None:
        if population.keys() != size.keys():
            raise InvalidParameter("size", sorted(map(str, size)), "to name the strata of the population", _EXAMPLE)
        if not 1 <= len(population) <= MOST_STRATA:
            condition = f"to have 1 to {MOST_STRATA:,} strata"
            raise InvalidParameter("population", f"{len(population)} strata", condition, _EXAMPLE)

    @property
    def strata(self) -> Mapping[Value, SimpleSample]:
        """Returns the sample of each stratum; of one without strata nothing."""
        return {} if self.by is None else dict(self._strata)

    @property
    def together(self) -> SimpleSample | None:
        """Returns the whole as one simple sample; None if strata were not drawn in proportion to their sizes.

        A stratum is drawn in proportion if its number differs from the exact share by less than one person.
        """
        samples = [one for _, one in self._strata]
        population, size = sum(one.population for one in samples), sum(one.size for one in samples)
        apart = [abs(one.size - Fraction(size * one.population, population)) for one in samples]
        if max(apart) >= 1:
            return None
        missed, correction = max(one.missed for one in samples), max(one.correction for one in samples)
        return SimpleSample(population, size, missed, correction, sum(apart, Fraction(0)))


def _drawn(population: Any, size: Any) -> SimpleSample:
    people = check.integer(population=population, at_least=1, at_most=MOST_PEOPLE)
    return SimpleSample.of(people, check.integer(size=size, at_least=1, at_most=people))
