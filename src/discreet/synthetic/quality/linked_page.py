"""A page on two synthetic tables, of people and of their events: what each is good for, and what it is not."""

from __future__ import annotations

from collections.abc import Sequence

from discreet.report import page
from discreet.report.display import printable
from discreet.synthetic.linked.linked_model import LinkedModel
from discreet.synthetic.quality.quality_page import FOLLOWS, ModelPart

_PEOPLE = "Finding real people: each person is synthetic, and so are all of their events."
_EVENTS = (
    "What the events of one person have in common, and their order: events are generated one by one, given the "
    "attributes of their person and nothing else."
)


def linked_page(model: LinkedModel, *, rows: tuple[int, int] | None = None, notes: Sequence[str] = ()) -> str:
    """Returns the page on the models of people and of events, and on rows that were drawn from them.

    Formal guarantee: a function of the released models and of the other arguments, which are public: the same for
    tables that were replayed.

    Args:
        model: of people and of their events.
        rows: how many people and events were drawn; None for a page on the models alone.
        notes: what limits and domains mean for the rows.

    Raises:
        MissingExtra: if charts cannot be drawn here.
    """
    people, events = model.domain.names
    first, second = rows if rows is not None else (None, None)
    parts = [
        ModelPart(model=model.people, rows=first, notes=notes, name=people, no_person=_PEOPLE),
        ModelPart(model=model.events, rows=second, notes=(), name=events, no_person=_EVENTS),
    ]
    named = f"{printable(people)} and {printable(events)}"
    lead = (
        f"Drawn from models of both that were learned together under differential privacy, linked by a key. {FOLLOWS}"
    )
    return page.document(
        f"Synthetic tables {named}",
        *(section for part in parts for section in part.sections()),
        lead=lead,
        contents={anchor: heading for part in parts for anchor, heading in part.contents.items()},
    )
