"""Synthetic tables as documents: rows with the model that they were drawn from, and what they cost."""

from __future__ import annotations

import json
from typing import Any

from discreet.curator.synthesis.linked_tables import KeptTables
from discreet.curator.synthesis.synthesizer import SynthesisPrice, SyntheticTable, SyntheticTables
from discreet.curator.synthesis.synthetic_table import KeptTable
from discreet.lazy import load, pa
from discreet.presentation.documents.result_documents import PLANNED, RELEASED, Document, DocumentForm, Given


def _write_table(made: SyntheticTable) -> Document:
    """Returns as "released" what the ledger keeps."""
    return {"released": json.loads(KeptTable(made.model, made.table.to_pydict()).to_json())}


def _read_table(document: Given) -> Document:
    kept = KeptTable.from_json(json.dumps(document["released"]))
    return {"table": pa.table(dict(kept.columns)), "model": kept.model}


SYNTHETIC_TABLE = DocumentForm(
    kind="synthetic table",
    about="A synthetic table: `released` has its rows, and the model that generated them.",
    make=SyntheticTable,
    parts={"name": str, "released": dict[str, Any], **RELEASED, "private": bool, "text": str},
    writes=_write_table,
    reads=_read_table,
)


def _write_tables(made: SyntheticTables) -> Document:
    kept = KeptTables(made.model, made.key, made.people.to_pydict(), made.events.to_pydict())
    return {"released": json.loads(kept.to_json())}


def _read_tables(document: Given) -> Document:
    kept = KeptTables.from_json(json.dumps(document["released"]))
    people, events = pa.table(dict(kept.people)), pa.table(dict(kept.events))
    return {"people": people, "events": events, "key": kept.key, "model": kept.model}


SYNTHETIC_TABLES = DocumentForm(
    kind="synthetic tables",
    about="Two linked synthetic tables: `released` has their rows, and the models that generated them.",
    make=SyntheticTables,
    parts={"names": tuple[str, str], "released": dict[str, Any], **RELEASED, "private": bool, "text": str},
    writes=_write_tables,
    reads=_read_tables,
)


def _read_domain(document: Given) -> Document:
    domains = load("discreet.synthetic.domain.table_domain", "A domain")
    return {"domain": domains.Domain.from_json(json.dumps(document["domain"]))}


SYNTHESIS_PLAN = DocumentForm(
    kind="synthesis plan",
    about="What a synthetic table would release and cost.",
    make=SynthesisPrice,
    parts={"generator": str, **PLANNED, "domain": dict[str, Any], "text": str},
    writes=lambda plan: {"domain": json.loads(plan.domain.to_json())},
    reads=_read_domain,
)
