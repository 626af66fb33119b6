"""One budget for two models: of people with the number of their events, and of events given whose they are.

Both models are made by the same generator, each with half of the budget in zCDP or GDP, in which parts add up. A unit
has one row in the people's model, and at most k in that of events: each log knows its own limit. Keys are found for
both tables first, as for one: a tenth of epsilon and delta in all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.mechanisms import PartitionSelection
from discreet.noise import Bits
from discreet.privacy import ApproxDP
from discreet.privacy.events import Composed, Event
from discreet.progress import stage
from discreet.synthetic.aim import AIM
from discreet.synthetic.coded_rows import CodedRows
from discreet.synthetic.domain import ColumnDomain, FrameKind
from discreet.synthetic.found_keys import (
    found_keys,
    found_rows,
    key_selection,
    selection_event,
    selection_terms,
    unknown_columns,
)
from discreet.synthetic.generator import Generator
from discreet.synthetic.linked.linked_domain import LinkedDomain, LinkedRows
from discreet.synthetic.linked.linked_model import LinkedModel

PEOPLE = Fraction(1, 2)
"""The part of the budget for people and the number of their events; the rest is for events."""


def linked_event(generator: Generator, domain: LinkedDomain) -> Event:
    """Returns what both models cost together, from public facts alone.

    Raises:
        InvalidParameter: if the generator cannot work on such domains.
    """
    return Composed([*_selection_events(generator, domain), *_model_events(generator, domain)])


def check_selections(generator: Generator, domain: LinkedDomain) -> dict[str, int]:
    """Returns for each column whose keys are to be found which noisy number of units finds one.

    Raises:
        InvalidParameter: if the limit is too large for the budget.
    """
    return {name: selection.threshold for name, selection in _selections(generator, domain).items()}


def fit_linked(
    generator: Generator, rows: LinkedRows, domain: LinkedDomain, *, kind: FrameKind, bits: Bits
) -> LinkedModel:
    """Returns models of both tables.

    Formal guarantee: all that is released is as `linked_event` says, for units as `rows` has them: keys, then the
    people's model, then that of events, which knows what the others released.

    Args:
        generator: whose budget pays for all.
        rows: within the limits, as `linked_rows` gives them.
        domain: whose fine codes they are.
        kind: the library of frames that are drawn.
        bits: the source of noise.
    """
    promise = ApproxDP(generator.epsilon, generator.delta)
    selections, found = _selections(generator, domain), dict[str, ColumnDomain]()
    for name, column in unknown_columns(domain.event_domain).items():
        stage(f"Finding keys of {name}")
        found[name] = found_keys(column, rows.texts[name], selections[name], bits)
    inside, outside = domain.person_names, domain.event_names
    known = domain.with_columns(_own(found, inside), _own(found, outside))
    first, second = _generators(generator, domain)
    charged = _model_events(generator, domain)
    how: dict[str, Any] = {"kind": kind, "bits": bits, "total": None, "promise": promise}
    texts = {name: rows.texts[inside[name]] for name in _own(found, inside)}
    alone = found_rows(rows.people, known.person_domain, texts) if texts else rows.people
    stage(f"Learning {domain.names[0]}")
    people = first.fit_known(alone, known.person_domain, charged[0], rows_per_unit=1, **how)
    told = known.with_columns({name: people.domain.columns[name] for name in domain.people.columns}, {})
    whole = found_rows(rows.events, told.event_domain, rows.texts) if rows.texts else rows.events
    whole = _people_coarse(whole, known)
    stage(f"Learning {domain.names[1]}")
    events = second.fit_known(whole, told.event_domain, charged[1], rows_per_unit=domain.most, **how)
    return LinkedModel(people=people, events=events, domain=told, event=linked_event(generator, domain))


def _people_coarse(rows: CodedRows, domain: LinkedDomain) -> CodedRows:
    """Returns rows of events in which columns of people have codes: their places within bins were measured before."""
    inside = domain.person_names
    fine = {inside[name]: column for name, column in domain.people.columns.items() if column.fine_size != column.size}
    sizes = dict(rows.sizes) | {name: column.size for name, column in fine.items()}
    return rows.recode_columns({name: column.code_of_fine for name, column in fine.items()}, sizes)


def _generators(generator: Generator, domain: LinkedDomain) -> tuple[Generator, Generator]:
    """Returns the generator of people and that of events, each with its part of what selections leave."""
    rest = generator.rest(domain.event_domain)
    first, second = replace(rest, share=PEOPLE), replace(rest, share=1 - PEOPLE)
    if isinstance(second, AIM):
        if second.workload is not None:
            hint = "Leave it out: pairs with a column of events are looked at."
            raise InvalidParameter("workload", second.workload, "to be None for two tables", hint)
        second = replace(second, workload=_event_sets(domain, second.degree))
    return first, second


def _event_sets(domain: LinkedDomain, degree: int) -> tuple[tuple[str, ...], ...]:
    """Sets of columns with one of events among them: what people are like is known from their own model."""
    names, own = tuple(domain.event_domain.columns), set(domain.event_names.values())
    return tuple(each for each in combinations(names, min(degree, len(names))) if own.intersection(each))


def _model_events(generator: Generator, domain: LinkedDomain) -> list[Event]:
    """Returns what the two models cost; by their sums, if their prices depend on keys that are found."""
    pairs = zip(_generators(generator, domain), (domain.person_domain, domain.event_domain), strict=True)
    if unknown_columns(domain.event_domain):
        return [each.promised_event(whole) for each, whole in pairs]
    return [each.model_event(whole) for each, whole in pairs]


def _selection_events(generator: Generator, domain: LinkedDomain) -> list[Event]:
    terms = selection_terms(domain.event_domain, generator.epsilon, generator.delta)
    return [selection_event(each) for each in terms.values()]


def _selections(generator: Generator, domain: LinkedDomain) -> dict[str, PartitionSelection]:
    """Returns how keys are found, by columns in the events' model: a person has one text, or one in each event."""
    terms = selection_terms(domain.event_domain, generator.epsilon, generator.delta)
    people = set(domain.person_names.values())
    return {
        name: key_selection(each, neighbours=generator.neighbours, rows_per_unit=1 if name in people else domain.most)
        for name, each in terms.items()
    }


def _own(found: Mapping[str, ColumnDomain], names: Mapping[str, str]) -> dict[str, ColumnDomain]:
    """Returns what was found of one table's columns, by their own names."""
    return {name: found[long] for name, long in names.items() if long in found}


@dataclass(frozen=True, slots=True)
class LinkedGenerator:
    """A generator that learns two tables at once, as `fit_linked` does."""

    generator: Generator

    def fit_coded(self, rows: LinkedRows, domain: LinkedDomain, *, kind: FrameKind, bits: Bits) -> LinkedModel:
        """Returns models of both tables."""
        return fit_linked(self.generator, rows, domain, kind=kind, bits=bits)
