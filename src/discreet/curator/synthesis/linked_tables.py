"""Two synthetic tables as they are given and kept: people, their events, and the models that both were drawn from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet import check
from discreet.curator.synthesis.synthetic_table import MOST_KEPT, plain_values, read_values, write_text
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.lazy import load, pa
from discreet.ledger import RemainingBudget
from discreet.ledger.cost import Cost
from discreet.noise import SeededBits, source_of
from discreet.privacy.events import Event

if TYPE_CHECKING:
    from discreet.noise import Bits
    from discreet.synthetic.linked.linked_domain import LinkedDomain
    from discreet.synthetic.linked.linked_model import LinkedModel

FORMAT = "discreet synthetic tables 1"

Columns = Mapping[str, list[Any]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SyntheticTables:
    """Synthetic people and their events, to hand on; a synthetic key says whose an event is.

    Attributes:
        people: the rows of people, as a pyarrow table.
        events: the rows of events, as a pyarrow table.
        key: the column that both have, 1, 2, ...
        names: of the two protected tables.
        model: which they were drawn from; all of it was released.
        cost: what was charged; nothing if they were replayed.
        remaining: what the account can still spend.
        event: what was released.
        replayed: whether stored tables were given again, for free.
        notes: what limits and domains mean for the rows; functions of public facts only.
        private: False if the noise was seeded, for tests.
    """

    people: Any = field(repr=False)
    events: Any = field(repr=False)
    key: str
    names: tuple[str, str]
    model: LinkedModel = field(repr=False)
    cost: Cost
    remaining: RemainingBudget
    event: Event = field(repr=False)
    replayed: bool
    notes: tuple[str, ...]
    private: bool

    def sample(self, people: int | None = None, *, random_state: int | None = None) -> tuple[Any, Any]:
        """Returns other people with their events, for nothing: any number of them, any number of times.

        Args:
            people: how many; None is the private estimate of how many there were.
            random_state: a seed that repeats the sample; drawing from released models needs no privacy.
        """
        bits = source_of(None) if random_state is None else SeededBits(check.integer(random_state=random_state))
        first, second = self.model.sample(people, key=self.key, bits=bits)
        return pa.table(first), pa.table(second)

    def to_html(self) -> str:
        """Returns a page on what both tables are good for: their columns, the worst pairs, and what was not measured.

        It follows from the released models: nothing looks at private rows again, and nothing is spent. The same for
        tables that were replayed.

        Raises:
            MissingExtra: if charts cannot be drawn here.
        """
        pages = load("discreet.synthetic.quality.linked_page", "A page")
        rows = self.people.num_rows, self.events.num_rows
        text: str = pages.linked_page(self.model, rows=rows, notes=self.notes)
        return text

    def report(self, path: str | Path) -> None:
        """Writes the page of `to_html` to a file, over an older one.

        Raises:
            MissingExtra: if charts cannot be drawn here; nothing is written.
            InvalidParameter: if the file cannot be written.
        """
        write_text(self.to_html(), path)

    def __str__(self) -> str:
        paid = "nothing, it was stored" if self.replayed else str(self.cost)
        seeded = [] if self.private else ["Not private: the noise was seeded, for tests."]
        made = [
            f"{table.num_rows:,} of {name}" for table, name in zip((self.people, self.events), self.names, strict=True)
        ]
        lines = [f"Synthetic rows: {', '.join(made)}.", f"cost: {paid}; remaining: {self.remaining}", *seeded]
        return "\n".join([*lines, *(f"- {note}" for note in self.notes)])


@dataclass(frozen=True, slots=True, eq=False)
class KeptTables:
    """Models, and people and events drawn from them, as the ledger keeps them: plain text."""

    model: LinkedModel
    key: str
    people: Columns
    events: Columns

    def to_json(self) -> str:
        """Returns all of it as text."""
        found = {"format": FORMAT, "key": self.key, "model": json.loads(self.model.to_json())}
        found |= {"people": plain_values(self.people), "events": plain_values(self.events)}
        return json.dumps(found)

    @classmethod
    def from_json(cls, text: bytes | str) -> KeptTables:
        """Returns what a text holds.

        Raises:
            InvalidParameter: if the text is none that `to_json` wrote.
        """
        try:
            found = json.loads(text)
            if found["format"] != FORMAT:
                raise KeyError("format")
            models = load("discreet.synthetic.linked.linked_model", "A synthetic table").LinkedModel
            model, key = models.from_json(json.dumps(found["model"])), found["key"]
            people, events = (
                {key: list(found[name][key])} | read_values(domain.columns, found[name])
                for name, domain in (("people", model.domain.people), ("events", model.domain.events))
            )
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, InvalidParameter):
                raise
            raise InvalidParameter("text", "another text", "to be the text of synthetic tables") from None
        return cls(model, key, people, events)

    @classmethod
    def sample_from(cls, model: LinkedModel, key: str, people: int | None, bits: Bits) -> KeptTables:
        """Returns models with so many people, or as many as were estimated, but no more than a ledger keeps."""
        count = min(model.people.rows, most_people(model.domain)) if people is None else people
        first, second = model.sample(count, key=key, bits=bits)
        return cls(model, key, first, second)

    @property
    def rows(self) -> int:
        """Returns the number of people."""
        return len(self.people[self.key])


def most_people(domain: LinkedDomain) -> int:
    """Returns how many people are kept at most, if each has as many events as they may."""
    return MOST_KEPT // (len(domain.people.columns) + 1 + domain.most * (len(domain.events.columns) + 1))
