"""Public knowledge about a column from its name alone: a small public table of kinds and their bounds.

The bounds are generous limits of what can be true, not what is usual: values outside are clipped, and noise grows with
the width. They come from general knowledge of the kind and never from a file.
"""

from __future__ import annotations

import re

from discreet.dataclass import dataclass

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


@dataclass(frozen=True, slots=True)
class ColumnKind:
    """The kind of a column: what it is about, and between which numbers, or days, its values can lie."""

    name: str
    low: int | str
    high: int | str

    @property
    def is_day(self) -> bool:
        """Returns whether it is one of days and moments, not of numbers."""
        return isinstance(self.low, str)


_KINDS = (
    (ColumnKind("systolic blood pressure", 50, 300), ("systolic", "sbp", "trestbps", "sysbp", "ap_hi")),
    (ColumnKind("diastolic blood pressure", 20, 200), ("diastolic", "dbp", "diabp", "ap_lo")),
    (ColumnKind("blood pressure", 20, 300), ("blood_pressure", "bp")),
    (ColumnKind("heart rate", 20, 300), ("heart_rate", "pulse", "bpm", "thalach")),
    (ColumnKind("body mass index", 5, 100), ("bmi", "body_mass_index")),
    (ColumnKind("cholesterol in mg/dl", 20, 1000), ("cholesterol", "chol", "ldl", "hdl")),
    (ColumnKind("glucose in mg/dl", 10, 2000), ("glucose", "blood_sugar")),
    (ColumnKind("HbA1c in percent", 2, 25), ("hba1c", "a1c")),
    (ColumnKind("oxygen saturation in percent", 0, 100), ("spo2", "oxygen_saturation")),
    (ColumnKind("body temperature in degrees Celsius", 25, 45), ("body_temperature", "body_temp")),
    (ColumnKind("height in cm", 20, 280), ("height_cm",)),
    (ColumnKind("weight in kg", 0, 500), ("weight_kg",)),
    (ColumnKind("age", 0, 120), ("age", "agep", "ages")),
    (ColumnKind("percent", 0, 100), ("percent", "pct", "percentage", "humidity", "humid")),
    (ColumnKind("probability", 0, 1), ("probability", "prob", "propensity")),
    (ColumnKind("latitude", -90, 90), ("latitude", "lat")),
    (ColumnKind("longitude", -180, 180), ("longitude", "lon", "lng", "long")),
    (ColumnKind("direction in degrees", 0, 360), ("wind_dir", "bearing", "azimuth")),
    (ColumnKind("hours of a week", 0, 168), ("hours_per_week", "weekly_hours")),
    (ColumnKind("hours of a day", 0, 24), ("hours_per_day", "daily_hours", "hour")),
    (ColumnKind("minute", 0, 60), ("minute",)),
    (ColumnKind("month", 1, 12), ("month",)),
    (ColumnKind("day of a month", 1, 31), ("day_of_month", "mday", "day")),
    (ColumnKind("day of a week", 0, 7), ("weekday", "day_of_week", "dow")),
    (ColumnKind("week", 0, 53), ("week", "week_of_year")),
    (ColumnKind("quarter", 1, 4), ("quarter",)),
    (ColumnKind("year", 1900, 2100), ("year", "yr", "birth_year", "year_of_birth")),
    (
        ColumnKind("date of birth", "1900-01-01", "2099-12-31"),
        ("birth_date", "date_of_birth", "birthdate", "birthday", "dob"),
    ),
    (ColumnKind("number of children", 0, 25), ("children", "kids", "num_children", "siblings")),
    (ColumnKind("people of a household", 0, 50), ("household_size", "family_size")),
    (ColumnKind("years of education", 0, 40), ("education_years", "education_num", "years_of_education")),
    (ColumnKind("days of a hospital stay", 0, 365), ("length_of_stay", "los", "time_in_hospital", "days_in_hospital")),
    (ColumnKind("decile", 0, 10), ("decile",)),
)
"""Kinds and the words that name them: single ones anywhere in a name, several ones next to each other."""

_BY_WORDS = {tuple(names.split("_")): kind for kind, all_names in _KINDS for names in all_names}
_ALONE = {"day", "month", "hour", "minute", "week", "quarter", "children", "siblings", "kids", "long", "pulse", "bp"}
"""Words that mean something else in longer names, such as days worked."""

_OTHERWISE = {
    "months", "days", "weeks", "hours", "minutes", "seconds", "since", "until", "per", "rate", "change", "diff",
    "difference", "delta", "ratio", "score", "rank", "log", "squared", "std", "sd", "var", "zscore", "factor", "index",
    "count", "total", "sum", "group", "category",
}  # fmt: skip
"""Words that make something else of a kind: age_months is no age in years."""

PEOPLE = (
    "patient", "person", "subject", "participant", "member", "customer", "client", "user", "student", "employee",
    "citizen", "respondent", "beneficiary", "donor", "borrower", "player", "driver", "passenger", "household",
    "individual", "ssn", "mrn",
)  # fmt: skip
_OF_IDS = ("id", "ids", "nbr", "no", "num", "number", "key", "code", "uuid", "guid", "identifier", "ref", "hash")


def words_of(name: str) -> tuple[str, ...]:
    """Returns the words of a column's name, in lower case.

    >>> words_of("patientAge_years"), words_of("AGEP"), words_of("HbA1c")
    (('patient', 'age', 'years'), ('agep',), ('hb', 'a', '1', 'c'))
    """
    return tuple(word.lower() for word in _WORD.findall(name))


def kind_of(name: str) -> ColumnKind | None:
    """Returns the kind that a column's name suggests; None if it suggests none.

    >>> kind_of("age"), kind_of("diastolic_bp"), kind_of("pct_white"), kind_of("page"), kind_of("age_months")
    (ColumnKind(name='age', low=0, high=120), ColumnKind(name='diastolic blood pressure', low=20, high=200), \
ColumnKind(name='percent', low=0, high=100), None, None)
    """
    words = words_of(name)
    whole = _BY_WORDS.get((name.lower(),)) or _BY_WORDS.get(words)
    if whole is not None:
        return whole
    for parts, kind in _BY_WORDS.items():  # the first kinds are the more special ones
        runs = (words[start : start + len(parts)] for start in range(len(words) - len(parts) + 1))
        if parts in runs and (len(parts) > 1 or parts[0] not in _ALONE) and not _OTHERWISE & (set(words) - set(parts)):
            return kind
    return None


def likely_unit(names: tuple[str, ...]) -> str | None:
    """Returns the column whose name is that of people's ids; None if there is none.

    >>> likely_unit(("encounter_id", "patient_nbr", "age")), likely_unit(("id", "age")), likely_unit(("age", "sex"))
    ('patient_nbr', 'id', None)
    """
    ranked = sorted((rank, place) for place, name in enumerate(names) if (rank := _rank(words_of(name))) is not None)
    return names[ranked[0][1]] if ranked else None


def is_id(name: str) -> bool:
    """Returns whether a name is that of ids, of people or of anything: their sums and means say nothing.

    >>> is_id("encounter_id"), is_id("orderId"), is_id("num_procedures")
    (True, True, False)
    """
    return words_of(name)[-1:] in (("id",), ("ids",), ("uuid",), ("guid",), ("identifier",), ("key",))


def _rank(words: tuple[str, ...]) -> int | None:
    """Returns how surely words name the ids of people: the smaller, the surer; None if they do not."""
    whom = [word for word in words if word in PEOPLE or word.removesuffix("s") in PEOPLE]
    if not words:
        return None
    if whom and (words[-1] in _OF_IDS or len(words) == 1):
        return 0
    if whom and any(word in _OF_IDS for word in words):
        return 1
    return 2 if words in (("id",), ("uuid",), ("pid",), ("uid",)) else None
