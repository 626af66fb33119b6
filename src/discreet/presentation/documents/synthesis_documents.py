"""Synthetic tables as documents: rows with the model that they were drawn from, and what they cost."""

from __future__ import annotations

import json

from discreet.curator.synthesis.linked_tables import KeptTables
from discreet.curator.synthesis.synthesizer import SynthesisPrice, SyntheticTable, SyntheticTables
from discreet.curator.synthesis.synthetic_table import KeptTable
from discreet.lazy import load, pa
from discreet.ledger import Remaining
from discreet.presentation.documents.json_values import Document, Given, reader
from discreet.presentation.documents.plain_results import read_parts, write_plain
from discreet.privacy import Loss
from discreet.privacy.events import Event


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
    return {**{name: write_plain(getattr(made, name)) for name in _TOLD}, "text": str(made)}


_TOLD = {
    "cost": Loss,
    "remaining": Remaining,
    "event": Event,
    "replayed": bool,
    "notes": tuple[str, ...],
    "private": bool,
}
"""What every release tells."""

_PRICED = {
    "generator": str,
    "event": Event,
    "cost": Loss | None,
    "remaining": Loss,
    "notes": tuple[str, ...],
    "free": bool,
    "caps": dict[str, Loss],
    "refusal": str | None,
}
"""What every price tells."""


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
        name=str(document["name"]),
        **read_parts(_TOLD, document),
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
        **read_parts(_TOLD, document),
    )


def synthesis_plan_document(plan: SynthesisPrice) -> Document:
    """Returns what a synthetic table would release and cost."""
    told = {name: write_plain(getattr(plan, name)) for name in _PRICED}
    return {"kind": "synthesis plan", **told, "domain": json.loads(plan.domain.to_json()), "text": str(plan)}


@reader("account of a synthetic table")
def read_synthesis_plan(document: Given) -> SynthesisPrice:
    """Returns the plan of a synthetic table of a document.

    Raises:
        InvalidParameter: if it is the document of none.
    """
    domains = load("discreet.synthetic.domain.table_domain", "A domain")
    domain = domains.Domain.from_json(json.dumps(document["domain"]))
    return SynthesisPrice(domain=domain, **read_parts(_PRICED, document))
