"""Two fitted models as one: people are drawn with the number of their events, and events given whose they are."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from discreet import check
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.lazy import load
from discreet.noise import Bits, source_of
from discreet.noise.experiment import uniforms
from discreet.privacy import events as privacy_events
from discreet.privacy.events import Event
from discreet.synthetic.coded_rows import Integers
from discreet.synthetic.domain import Domain
from discreet.synthetic.fitted_model import Model
from discreet.synthetic.inference.conditional_sampler import sample_given
from discreet.synthetic.linked.linked_domain import LinkedDomain

FORMAT = "discreet linked models 1"

Columns = dict[str, list[Any]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinkedModel:
    """Holds what was learned of people and of their events, all of it released: drawing from it is free.

    Attributes:
        people: the model of people, with the number of their events.
        events: the model of events, with the attributes of whose they are.
        domain: what both may be, as it was found.
        event: what was released for both, for accounting.
    """

    people: Model
    events: Model
    domain: LinkedDomain
    event: Event

    @property
    def private(self) -> bool:
        """Returns whether the noise was secure: False if it was seeded."""
        return self.people.private and self.events.private

    def sample_codes(
        self, people: int | None = None, *, bits: Bits | None = None
    ) -> tuple[Integers, Integers, Integers]:
        """Returns synthetic people as codes, for each event the place of its person, and events as codes.

        Args:
            people: how many; None is the private estimate of how many there were.
            bits: the source of randomness, which gives no privacy here.
        """
        source = source_of(bits)
        persons = self.people.sample_codes(people, bits=source)
        owners = np.repeat(np.arange(len(persons)), persons[:, -1])
        inside, model = list(self.domain.person_names.values()), self.events
        evidence = {
            name: model.merges[name].places[persons[owners, place]] if name in model.merges else persons[owners, place]
            for place, name in enumerate(inside)
        }
        drawn = sample_given(model.law, evidence, bits=source)
        columns = [
            model.merges[name].split(drawn[name], uniforms(owners.size, bits=source))
            if name in model.merges
            else drawn[name]
            for name in self.domain.event_names.values()
        ]
        return persons[:, :-1], owners, np.stack(columns, axis=1)

    def sample(
        self, people: int | None = None, *, key: str = "id", bits: Bits | None = None
    ) -> tuple[Columns, Columns]:
        """Returns synthetic people, and their events, as columns; a new key, 1, 2, ..., says whose an event is.

        Args:
            people: how many; None is the private estimate of how many there were.
            key: the name of the key in both tables.
            bits: the source of randomness, which gives no privacy here.

        Raises:
            InvalidParameter: if the key has the name of a column.
        """
        if key in self.domain.people.columns or key in self.domain.events.columns:
            raise InvalidParameter("key", key, "to be no column of the tables")
        count = None if people is None else check.integer(people=people, at_least=0)
        source = source_of(bits)
        persons, owners, events = self.sample_codes(count, bits=source)
        first = {key: list(range(1, len(persons) + 1))} | self.domain.people.decode(persons, bits=source)
        second = {key: (owners + 1).tolist()} | _decode_events(self.events.domain, self.domain, events, source)
        return first, second

    def to_html(self) -> str:
        """Returns a page on what tables of these models are good for; it costs nothing and reads nothing.

        Raises:
            MissingExtra: if charts cannot be drawn here.
        """
        pages = load("discreet.synthetic.quality.linked_page", "A page")
        text: str = pages.linked_page(self)
        return text

    def to_json(self) -> str:
        """Returns both models as text, without anything that was not released."""
        found = {
            "format": FORMAT,
            "names": list(self.domain.names),
            "most": self.domain.most,
            "event": json.loads(privacy_events.to_json(self.event)),
            "people": json.loads(self.people.to_json()),
            "events": json.loads(self.events.to_json()),
        }
        return json.dumps(found, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> LinkedModel:
        """Returns the models that a text holds.

        Raises:
            InvalidParameter: if the text is none that `to_json` wrote.
        """
        try:
            found = json.loads(text)
            if found["format"] != FORMAT:
                raise KeyError("format")
            people, events = (Model.from_json(json.dumps(found[name])) for name in ("people", "events"))
            first, second = found["names"]
            event = privacy_events.from_json(json.dumps(found["event"]))
            domain = _domain(people, events, (first, second), found["most"])
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            if isinstance(error, InvalidParameter):
                raise
            raise InvalidParameter(
                "text", "another text", "to be the text of linked models", "Pass what to_json returned."
            ) from None
        return cls(people=people, events=events, domain=domain, event=event)


def _decode_events(whole: Domain, domain: LinkedDomain, codes: Integers, bits: Bits) -> Columns:
    """Returns the values of events, under their own names; places within bins are those of the events' model."""
    own = Domain({name: whole.columns[long] for name, long in domain.event_names.items()})
    found: Columns = own.decode(codes, bits=bits)
    return found


def _domain(people: Model, events: Model, names: tuple[str, str], most: int) -> LinkedDomain:
    """Returns the domain of both, from those of the models; rules are those that the models have."""
    mine = dict(list(people.domain.columns.items())[:-1])
    start = len(f"{names[1]}.")
    theirs = {name[start:]: column for name, column in list(events.domain.columns.items())[len(mine) :]}
    return LinkedDomain(people=Domain(mine), events=Domain(theirs), names=names, most=most)
