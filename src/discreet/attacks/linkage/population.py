"""How unique a person is, from the number of people in their area: no rows are needed.

The library ships no populations. The caller gives the number of people of an area and the shares of ages and sexes, as
a mapping or as a table.
"""

from __future__ import annotations

import datetime as dt
import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.attacks.linkage.attacker_tables import columns_of, select_columns
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.report import comparison_charts
from discreet.report.attack_finding import Finding
from discreet.report.charts import Spec
from discreet.report.display import rate

YEAR = 365.25
OLDEST = 80  # ages spread evenly below it, where no shares are given

Ages = Mapping[tuple[Any, int], float]
"""People, or shares of them, by sex and by the first age of a band; a band ends where the next one begins,
and the last one is as wide as the one before it."""


@dataclass(frozen=True, kw_only=True)
class PopulationUniqueness(Finding):
    """Reports how likely it is that no one else in an area has the same birth date and sex.

    Attributes:
        area: the postcode.
        others: the expected number of other people there who share birth date and sex.
    """

    area: str
    others: float

    def summary(self) -> str:
        """Returns the finding in plain sentences."""
        return (
            f"Of {self.targets:,} people in {self.area}, about {self.others:.2g} others share this birth date and sex; "
            f"with a chance of {rate(self.success)} no one else does."
        )

    @property
    def headline(self) -> str:
        """Returns the finding as the title of a chart."""
        return f"A chance of {rate(self.success)} to be the only one in {self.area} with this birth date and sex"

    def spec(self) -> Spec:
        """Returns the chances that no one else, and that at least one other, has the same birth date and sex."""
        found = {"shared with no one": self.success, "shared with others": 1 - self.success}
        shown = {name: (chance, chance, chance) for name, chance in found.items()}
        return comparison_charts.rates(shown, {}, headline=self.headline, across="chance to share birth date and sex")


def how_unique(
    postcode: str,
    birth: dt.date | str,
    sex: Any,
    *,
    population: Any,
    ages: Ages | None = None,
    today: dt.date | str | None = None,
) -> PopulationUniqueness:
    """Returns the chance that a person is the only one in an area with a birth date and a sex.

    All others in the area are taken to have an age and a sex by the given shares, independently, and a birthday on
    any day of the years of the band alike. Real areas are less even (a college, a home for the old), so that the
    answer is an estimate.

    Args:
        postcode: of the area.
        birth: a date, or text like "1980-05-17".
        sex: as the shares name it.
        population: how many people live in the area; or a mapping from postcode, or a table of two columns with a row
            an area: the postcode, the people.
        ages: people or shares by (sex, first age of a band); without it two sexes and 80 years alike.
        today: the day at which the age is counted.

    Raises:
        InvalidParameter: if the area, the age or the sex is not in the data given.

    >>> how_unique("02139", "1980-05-17", "F", population=7500, today="2025-01-01").summary()
    'Of 7,500 people in 02139, about 0.13 others share this birth date and sex; with a chance of 88 % no one else does.'
    """
    people = check.integer(population=_people(population, postcode), at_least=1)
    age = _age(_day(birth, "birth"), dt.date.today() if today is None else _day(today, "today"))
    share = _share(ages, sex, age)
    return PopulationUniqueness(
        attack="How unique am I",
        goal="chance that no one else has this birth date and sex",
        success=float((1 - share) ** (people - 1)),
        baseline=1 / people,
        targets=people,
        area=postcode,
        others=share * (people - 1),
    )


def share_unique(population: Any, *, ages: Ages | None = None) -> float:
    """Returns the expected share of people of all areas who are alone there with their birth date and sex.

    A person of a cell with probability q is alone among N with probability (1 - q)^(N - 1); the mean is over areas by
    their people, and over cells by q.

    Args:
        population: a mapping from areas, or a table of two columns with a row an area: the area, the people.
        ages: as in `how_unique`.

    >>> round(share_unique({"somewhere": 7500}), 4)
    0.8796
    """
    people = np.array(list(_areas(population).values()), dtype=np.float64)
    days, shares = _cells(ages)
    people = people[people > 0]
    if not people.size:
        raise InvalidParameter("population", 0, "to have people", "Pass areas with at least one person.")
    alone = np.zeros(people.size)
    for count, share in zip(days, shares, strict=True):
        alone += share * np.exp((people - 1) * np.log1p(-share / count))
    return float(np.average(alone, weights=people))


def _cells(ages: Ages | None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns the days of each band and the shares of people in them, by sex."""
    if ages is None:
        return np.full(2, OLDEST * YEAR), np.full(2, 0.5)
    total = _total(ages)
    kept = [(sex, first) for (sex, first), count in ages.items() if count > 0]
    days = [YEAR * _width(ages, sex, first) for sex, first in kept]
    return np.array(days), np.array([ages[band] / total for band in kept])


def _share(ages: Ages | None, sex: Any, age: int) -> float:
    """Returns the probability that a person has the sex and was born on a given day of the band of that age."""
    if ages is None:
        return 1 / (2 * OLDEST * YEAR)
    firsts = [first for other, first in ages if other == sex and first <= age]
    if not firsts:
        sexes = list(dict.fromkeys(other for other, _ in ages))
        raise InvalidParameter("sex", sex, f"to have a band of ages for {age} years", f"The shares name: {sexes}.")
    first = max(firsts)
    return ages[sex, first] / _total(ages) / (YEAR * _width(ages, sex, first))


def _total(ages: Ages) -> float:
    total = float(sum(ages.values()))
    if not total > 0 or min(ages.values()) < 0:
        raise InvalidParameter("ages", "shares", "to be at least 0 and not all 0", "Pass counts of people, or shares.")
    return total


def _width(ages: Ages, sex: Any, first: int) -> float:
    """Returns the years of a band; the last one is as wide as the one before it."""
    firsts = sorted(start for other, start in ages if other == sex)
    place = firsts.index(first)
    if len(firsts) == 1:
        return OLDEST
    return firsts[place + 1] - first if place + 1 < len(firsts) else first - firsts[place - 1]


def _people(population: Any, postcode: str) -> int:
    if isinstance(population, numbers.Real):
        return check.integer(population=population)
    areas = _areas(population)
    if postcode not in areas:
        raise InvalidParameter("postcode", postcode, "to be an area of the population", "Pass its people as a number.")
    return areas[postcode]


def _areas(population: Any) -> dict[Any, int]:
    if isinstance(population, Mapping) and all(np.isscalar(people) for people in population.values()):
        return {area: int(people) for area, people in population.items()}
    columns = columns_of(population)
    if len(columns) != 2:
        raise InvalidParameter("population", list(columns), "to have two columns", "Pass the area and its people.")
    area, people = select_columns(columns, columns, parameter="population")
    return {
        name: int(float(count)) for name, count in zip(area.tolist(), people.tolist(), strict=True) if count is not None
    }


def _day(day: dt.date | str, name: str) -> dt.date:
    if isinstance(day, dt.date):
        return day
    try:
        return dt.date.fromisoformat(day)
    except (TypeError, ValueError):
        raise InvalidParameter(name, day, "to be a date", "Write it like 1980-05-17.") from None


def _age(birth: dt.date, today: dt.date) -> int:
    if birth > today:
        raise InvalidParameter(
            "birth", str(birth), f"to be no later than {today}", "Pass the day of counting as today."
        )
    return today.year - birth.year - ((today.month, today.day) < (birth.month, birth.day))
