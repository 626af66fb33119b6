"""Synthetic tables as documents: rows with the model that they were drawn from, and what they cost."""

from __future__ import annotations

import json

from discreet.curator.synthesis.linked_tables import KeptTables
from discreet.curator.synthesis.synthesizer import SynthesisPrice, SyntheticTable, SyntheticTables
from discreet.curator.synthesis.synthetic_table import KeptTable
from discreet.lazy import load, pa
from discreet.presentation.documents.json_values import (
    Document,
    Given,
    read_any_loss,
    read_event,
    read_remaining,
    read_some_loss,
    reader,
    write_event,
    write_loss_text,
    write_remaining,
)


def synthetic_table_document(made: SyntheticTable) -> Document:
    """Returns a synthetic table; "released" is the text that the ledger keeps, as JSON."""
    kept = KeptTable(made.model, made.table.to_pydict())
    return {"kind": "synthetic table", "name": made.name, "released": json.loads(kept.to_json()), **_told(made)}


def synthetic_tables_document(made: SyntheticTables) -> Document:
    """Returns two linked synthetic tables; "released" is the text that the ledger keeps, as JSON."""
    kept = KeptTables(made.model, made.key, made.people.to_pydict(), made.events.to_pydict())
    names = list(made.names)
    return {"kind": "synthetic tables", "names": names, "released": json.loads(kept.to_json()), **_told(made)}


def _told(made: SyntheticTable | SyntheticTables) -> Document:
    return {
        "cost": write_loss_text(made.cost),
        "remaining": write_remaining(made.remaining),
        "event": write_event(made.event),
        "replayed": made.replayed,
        "notes": list(made.notes),
        "private": made.private,
        "text": str(made),
    }


@reader("synthetic table")
def read_synthetic_table(document: Given) -> SyntheticTable:
    """Returns the synthetic table of a document.

    Raises:
        InvalidParameter: if it is the document of none.
    """
    kept = KeptTable.from_json(json.dumps(document["released"]))
    return SyntheticTable(
        table=pa.table(dict(kept.columns)),
        model=kept.model,
        cost=read_some_loss(document["cost"]),
        remaining=read_remaining(document["remaining"]),
        event=read_event(document["event"]),
        replayed=bool(document["replayed"]),
        notes=tuple(map(str, document["notes"])),
        private=bool(document["private"]),
        name=str(document["name"]),
    )


@reader("pair of synthetic tables")
def read_synthetic_tables(document: Given) -> SyntheticTables:
    """Returns the synthetic tables of a document.

    Raises:
        InvalidParameter: if it is the document of none.
    """
    kept = KeptTables.from_json(json.dumps(document["released"]))
    people, events = map(str, document["names"])
    return SyntheticTables(
        people=pa.table(dict(kept.people)),
        events=pa.table(dict(kept.events)),
        key=kept.key,
        names=(people, events),
        model=kept.model,
        cost=read_some_loss(document["cost"]),
        remaining=read_remaining(document["remaining"]),
        event=read_event(document["event"]),
        replayed=bool(document["replayed"]),
        notes=tuple(map(str, document["notes"])),
        private=bool(document["private"]),
    )


def synthesis_plan_document(plan: SynthesisPrice) -> Document:
    """Returns what a synthetic table would release and cost."""
    return {
        "kind": "synthesis plan",
        "generator": plan.generator,
        "domain": json.loads(plan.domain.to_json()),
        "event": write_event(plan.event),
        "cost": write_loss_text(plan.cost),
        "remaining": write_loss_text(plan.remaining),
        "notes": list(plan.notes),
        "free": plan.free,
        "caps": {who: write_loss_text(left) for who, left in plan.caps.items()},
        "refusal": plan.refusal,
        "text": str(plan),
    }


@reader("account of a synthetic table")
def read_synthesis_plan(document: Given) -> SynthesisPrice:
    """Returns the plan of a synthetic table of a document.

    Raises:
        InvalidParameter: if it is the document of none.
    """
    domains = load("discreet.synthetic.domain.table_domain", "A domain")
    return SynthesisPrice(
        generator=str(document["generator"]),
        domain=domains.Domain.from_json(json.dumps(document["domain"])),
        event=read_event(document["event"]),
        cost=read_any_loss(document["cost"]),
        remaining=read_some_loss(document["remaining"]),
        notes=tuple(map(str, document["notes"])),
        free=bool(document["free"]),
        caps={who: read_some_loss(left) for who, left in document["caps"].items()},
        refusal=document["refusal"],
    )
