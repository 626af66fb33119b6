"""Public domains of people and their events, and private rows of both as codes within the limits of each unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from discreet import check
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.synthetic.coded_rows import CodedRows, Integers, id_text, places_within_limit
from discreet.synthetic.domain import ColumnDomain, Domain, Keys
from discreet.synthetic.found_keys import Texts, unknown_columns

MOST_EVENTS = 1 << 10
"""Events of one unit that are kept at most: their number is a column of the people's model."""

_NAMES = "Give a column another name in one of the SELECTs."


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedDomain:
    """The public domains of a table of people and of a table of their events.

    People are modelled with one more column, the number of events that were kept of them. Events are modelled together
    with the attributes of whose they are, and are drawn given these.

    Args:
        people: the columns of people.
        events: the columns of events.
        names: what the two tables are called.
        most: how many events of one unit are kept at most.

    Raises:
        InvalidParameter: if the tables have one name, or there may be no event, or too many.
    """

    people: Domain
    events: Domain
    names: tuple[str, str]
    most: int

    def __post_init__(self) -> None:
        check.integer(rows_per_unit=self.most, at_least=1, at_most=MOST_EVENTS)
        if len(set(self.names)) != 2:
            raise InvalidParameter("events", self.names[1], "to be a different table from that of people")

    @property
    def number(self) -> str:
        """Returns the name of the column that says how many events there are of a person."""
        name = f"number of {self.names[1]}"
        while name in self.people.columns:
            name += "'"
        return name

    @property
    def person_domain(self) -> Domain:
        """Returns the domain of the people's model: their columns, and the number of their events."""
        return self.people.beside(Domain({self.number: Keys(range(self.most + 1), missing=False)}))

    @property
    def event_domain(self) -> Domain:
        """Returns the domain of the events' model: the columns of both, each with the name of its table before it."""
        people = self.people.rename_columns(self.person_names)
        return people.beside(self.events.rename_columns(self.event_names))

    @property
    def person_names(self) -> dict[str, str]:
        """Returns what columns of people are called in the events' model."""
        return {name: f"{self.names[0]}.{name}" for name in self.people.columns}

    @property
    def event_names(self) -> dict[str, str]:
        """Returns what columns of events are called in their model."""
        return {name: f"{self.names[1]}.{name}" for name in self.events.columns}

    def with_columns(self, people: Mapping[str, ColumnDomain], events: Mapping[str, ColumnDomain]) -> LinkedDomain:
        """Returns the same with what was released about some columns, by their own names."""
        return replace(self, people=self.people.with_columns(people), events=self.events.with_columns(events))


@dataclass(frozen=True, slots=True, eq=False)
class LinkedRows:
    """Private rows of both tables, within the limits of each unit: one person, and at most so many events.

    Args:
        people: fine codes of people, and the number of their events.
        events: fine codes of events, together with those of whose they are.
        texts: of columns whose keys are to be found, by their names in the events' model.
    """

    people: CodedRows
    events: CodedRows
    texts: Mapping[str, Texts]


@dataclass(frozen=True, slots=True, eq=False)
class UnitColumns:
    """Holds columns of a table, and the unit of each row."""

    units: Sequence[Any]
    columns: Mapping[str, Any]


def linked_rows(domain: LinkedDomain, people: UnitColumns, events: UnitColumns) -> LinkedRows:
    """Returns rows of both tables as codes; each unit has one person and at most the limit of events.

    Formal guarantee: to take a unit away takes away at most one row of `people` and at most `most` rows of `events`,
    and changes no other; and 1 from the numbers of at most one text of each column of people, and of at most `most`
    texts of each column of events. Rows that are kept, and how many, are functions of the unit's own rows. Events of
    units without a person, and rows without an id, are dropped.
    """
    person, person_texts = _fine(domain.people, people, 1)
    event, event_texts = _fine(domain.events, events, domain.most)
    kept = places_within_limit(people.units, person, 1)
    place = {id_text(people.units[row]): number for number, row in enumerate(kept.tolist())}
    whose = np.array([place.get(id_text(unit), -1) for unit in events.units], dtype=np.int64)
    theirs = np.flatnonzero(whose >= 0)
    units = [events.units[row] for row in theirs.tolist()]
    theirs = theirs[places_within_limit(units, event[theirs], domain.most)]
    owners, person = whose[theirs], person[kept]
    numbers = np.bincount(owners, minlength=len(person)).astype(np.int64)
    inside, outside = domain.person_names, domain.event_names
    texts = {inside[name]: found for name, found in person_texts.items()}
    texts |= {outside[name]: found for name, found in event_texts.items()}
    sizes = {name: column.fine_size for name, column in domain.event_domain.columns.items()}
    sizes |= {name: found.size for name, found in texts.items()}
    alone = {name: sizes[inside[name]] for name in domain.people.columns} | {domain.number: domain.most + 1}
    return LinkedRows(
        CodedRows(alone, np.column_stack([person, numbers])),
        CodedRows(sizes, np.column_stack([person[owners], event[theirs]])),
        texts,
    )


def _fine(domain: Domain, rows: UnitColumns, limit: int) -> tuple[Integers, dict[str, Texts]]:
    """Returns the fine codes of a table, and the texts of columns whose keys are to be found."""
    texts = {name: Texts.of_rows(rows.columns[name], rows.units, limit) for name in unknown_columns(domain)}
    columns = dict(rows.columns) | {name: found.numbers(rows.columns[name]) for name, found in texts.items()}
    return domain.codes(columns, fine=True), texts
