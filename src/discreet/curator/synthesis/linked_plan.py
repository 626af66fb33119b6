"""Two synthetic tables of the same people before their charge: which rows of both are read, and what they cost.

Everything here follows from the texts, the declarations and what the caller says in public; nothing is read or spent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from hashlib import sha256
from typing import Any

from discreet.curator.catalog.declarations import declaration
from discreet.curator.paid_release import ChargeRequest
from discreet.curator.synthesis.synthesis_plan import SynthesisPlan, calibrated_event, unit_names
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.measurement.program.execution import Reader, note_rows_without_id
from discreet.measurement.releases.releaser import Releaser
from discreet.noise import Bits
from discreet.plan.model.nodes import ColumnRef
from discreet.plan.model.readings import ContributionBounding, Groups, Reading
from discreet.privacy.events import Event
from discreet.synthetic.domain import Domain, FrameKind
from discreet.synthetic.generator import Generator
from discreet.synthetic.linked.linked_domain import LinkedDomain, LinkedRows, UnitColumns, linked_rows
from discreet.synthetic.linked.linked_generator import LinkedGenerator, check_selections, linked_event
from discreet.synthetic.linked.linked_model import LinkedModel

_ACCOUNT = "Tables of one account are about the same people: declare both under one account."


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedPlan:
    """Two synthetic tables with everything they are made from.

    Args:
        people: the table of people.
        events: the table of their events.
        linked: what rows of both may be.
        event: what will be released.
        key: the name of the synthetic key in both tables.
    """

    people: SynthesisPlan
    events: SynthesisPlan
    linked: LinkedDomain
    event: Event
    key: str = field(default="id")

    @property
    def account(self) -> str:
        """Returns the account that pays."""
        return self.people.account

    @property
    def generator(self) -> Generator:
        """Returns the generator whose budget both models share."""
        return self.people.generator

    @property
    def domain(self) -> Domain:
        """Returns what an event, and whose it is, may be."""
        return self.linked.event_domain

    @property
    def table(self) -> str:
        """Returns the tables that are read."""
        return " and ".join(self.linked.names)

    # ------------------------------------------------------------------------------------------------------- reading

    @property
    def readings(self) -> tuple[Reading, Reading]:
        """Returns what is read of people, one row of each, and of events, each with whose they are."""
        return _reading(self.people, 1), _reading(self.events, self.linked.most)

    def encode_rows(self, people: Groups, events: Groups) -> LinkedRows:
        """Returns the rows of both tables as codes, within the limits of each unit."""
        return linked_rows(self.linked, _columns(self.people, people), _columns(self.events, events))

    def learn_model(self, engine: Reader, releaser: Releaser) -> LinkedModel:
        """Reads what was paid for, and returns models of it."""
        model: LinkedModel = releaser.model(self, [engine.read(reading) for reading in self.readings])
        return model

    def fit(self, groups: Sequence[Groups], bits: Bits) -> LinkedModel:
        """Fits the generator to what was read of people and of events."""
        people, of_events = groups
        coded, learner = self.encode_rows(people, of_events), LinkedGenerator(self.generator)
        return learner.fit_coded(coded, self.linked, bits=bits, kind=FrameKind.PYARROW)

    # ------------------------------------------------------------------------------------------------------ identity

    @property
    def question(self) -> str:
        """Returns what is asked, as the ledger keeps it: the events, and in what is synthesized the people."""
        found, people = json.loads(self.events.question), json.loads(self.people.question)
        found["synthesize"] |= {"people": people, "most": self.linked.most, "key": self.key}
        return json.dumps(found, sort_keys=True, separators=(",", ":"), allow_nan=False)

    @property
    def replay_key(self) -> str:
        """Returns the key under which they are kept: of both tables, their order, the generator and the limit."""
        tables = [[declaration(plan.schemas[name]), plan.schemas[name].version] for plan, name in self._tables]
        parts = [self.question, tables, self.people.replay_key, self.events.replay_key]
        return f"synthesize two:{sha256(json.dumps(parts).encode()).hexdigest()}"

    @property
    def _tables(self) -> list[tuple[SynthesisPlan, str]]:
        return [(self.people, self.people.table), (self.events, self.events.table)]

    @property
    def charge(self) -> Event:
        """Returns what the account is charged with: the noise, and the epsilon and the delta of both tables."""
        return calibrated_event(self.people.generator, self.event)

    @property
    def request(self) -> ChargeRequest:
        """Returns the charge for both."""
        return ChargeRequest(
            accounts=(self.account,),
            event=self.charge,
            question=self.question,
            replay_key=self.replay_key,
            terms="",
            sql=f"{self.people.sql}; {self.events.sql}",
            asked=Fraction(self.people.generator.epsilon),
            periods=tuple(sorted({*self.people.rows.periods, *self.events.rows.periods})),
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Returns what limits and domains mean for the tables; functions of public facts."""
        (people, events), most = self.linked.names, self.linked.most
        unit = self.people.rows.schema.people or "unit"
        said = [f"One row of {people} and at most {most} row(s) of {events} per {unit} are counted."]
        said.append(f"Rows of {events} count if their person has a row of {people}.")
        said.append(note_rows_without_id(unit, "counted"))
        for name, domain in (people, self.linked.people), (events, self.linked.events):
            known = domain.details.items()
            said += [f"{name}.{column}: {detail}." for column, detail in known if detail != "the declared value"]
        said += [
            f"{name}: a key is found if the noisy number of people who have it reaches {threshold}."
            for name, threshold in check_selections(self.generator, self.linked).items()
        ]
        said.append(f"{self.key} is synthetic: it links the rows of the two tables, and means nothing else.")
        said.append("A value that is missing, or not among a column's public values, is None.")
        return tuple(said)


def linked_plan(people: SynthesisPlan, events: SynthesisPlan) -> LinkedPlan:
    """Returns two synthetic tables before their charge, made of one of each.

    Raises:
        InvalidParameter: if the tables are not of the same people, or of one account, or the generator is refused.
    """
    for role, plan in (("people", people), ("events", events)):
        if plan.rows.schema.unit is None:
            hint = "Each of its rows is a separate person. Declare its unit, which says whose rows they are."
            raise InvalidParameter(role, plan.table, "to have a column that says whose row it is", hint)
    if people.account != events.account:
        told = f"to be of account {people.account!r}, like {people.table}"
        raise InvalidParameter("events", events.table, told, _ACCOUNT)
    if _unit(people).type is not _unit(events).type:
        told = f"to have ids of type {_unit(people).type.value}, like {people.table}"
        raise InvalidParameter("events", events.table, told, "Declare the same type for both.")
    names = (people.table, events.table)
    linked = LinkedDomain(people=people.domain, events=events.domain, names=names, most=events.rows_per_unit)
    found = LinkedPlan(
        people=people,
        events=events,
        linked=linked,
        event=linked_event(people.generator, linked),
        key=_key(people, events),
    )
    check_selections(found.generator, linked)  # a limit that is too large for the budget is refused now
    return found


def _key(people: SynthesisPlan, events: SynthesisPlan) -> str:
    """Returns the name of the unit's own column, or another that no column has."""
    taken = {*people.domain.columns, *events.domain.columns}
    own = people.schemas[people.table].unit or ""
    names = [*([own] if own.isidentifier() else []), "id"]
    while names[-1] in taken:
        names.append(f"{names[-1]}_")
    return next(name for name in names if name not in taken)


def _unit(plan: SynthesisPlan) -> ColumnRef:
    unit = plan.rows.schema.unit or ""
    return ColumnRef(unit, plan.rows.schema.columns[unit].type)


def _reading(plan: SynthesisPlan, most: int) -> Reading:
    """Returns all rows that a unit may have, with whose they are, as the engine counts ids."""
    whose = _unit(plan)
    limit = ContributionBounding(unit=whose.name, groups=most, rows=most, salt=plan.salt)
    keys = (whose, *(column.key for column in plan.columns))
    return replace(plan.reading, keys=keys, bounding=limit)


def _columns(plan: SynthesisPlan, groups: Groups) -> UnitColumns:
    """Returns the rows that were read, one by one."""
    lines = [line for line, (count,) in groups.items() for _ in range(count)]
    whose, *values = list(zip(*lines, strict=True)) if lines else [()] * (len(plan.columns) + 1)
    columns: Mapping[str, Any] = {
        column.name: column.decode(each) for column, each in zip(plan.columns, values, strict=True)
    }
    return UnitColumns(unit_names(whose, plan.salt).tolist(), columns)
