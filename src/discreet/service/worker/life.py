"""A worker's life: bound first, then a curator of the declared tables, then one request after another."""

from __future__ import annotations

import socket
from typing import Any

from discreet.curator.curator import Curator
from discreet.curator.served import open_curator, restrict_curator, table_facts
from discreet.engines.abstract_engine import BySource
from discreet.engines.by_source import KINDS
from discreet.engines.duckdb.engine import DuckDB
from discreet.errors import DeclarationChanged, DiscreetError
from discreet.presentation.documents.error_documents import error_document
from discreet.progress import told_to
from discreet.service.request_executor import OPERATIONS
from discreet.service.worker import limits
from discreet.service.worker.ledger_client import LedgerClient
from discreet.service.worker.messages import Channel
from discreet.service.worker.operations import perform, protect


def live(file: int) -> None:
    """Serves the owner, at the other end of a socket, until it is gone; everything else it says by messages."""
    connection = socket.socket(fileno=file)
    channel = Channel(connection)
    try:
        start = channel.receive()
        limits.bind(start["memory"], start["seconds"])
        curator = _curator(channel, start)
        while curator is not None:
            _serve(channel, curator, channel.receive())
    except (EOFError, OSError):
        pass


def _curator(channel: Channel, start: dict[str, Any]) -> Curator | None:
    """Returns a curator of the tables; None if it cannot be made, after sending the owner the reason."""
    ledger = LedgerClient(channel, steward=start["steward"])
    engine = BySource(DuckDB(threads=1, memory_limit=start["database_memory"]), KINDS)
    try:
        curator = open_curator(start["config"], ledger, engine=engine)
        for declared in start["tables"]:
            _protect(curator, declared)
    except Exception as error:  # noqa: BLE001 - whatever it is, the owner hears its kind
        channel.send({"failed": error_document(error)})
        return None
    channel.send({"ready": table_facts(curator)})
    return curator


def _protect(curator: Curator, declared: dict[str, Any]) -> None:
    try:
        protect(curator, declared)
    except DeclarationChanged as error:  # the service stopped between the ledger and its own file
        hint = "Declare it in discreet.tables.json as in the ledger; `discreet history` shows the change."
        raise DeclarationChanged(error.table, error.differences, hint) from None


def _serve(channel: Channel, curator: Curator, request: dict[str, Any]) -> None:
    tables = request["tables"]
    whole = curator if tables is None else restrict_curator(curator, frozenset(tables))
    try:
        with told_to(lambda name: channel.send({"stage": name})):
            done = perform(whole, OPERATIONS[request["do"]], request["with"], request["who"])
    except DiscreetError as error:
        channel.send({"failed": error_document(error)})
    except (EOFError, OSError):
        raise
    except Exception as error:  # noqa: BLE001 - its message could hold data; the document drops it
        channel.send({"failed": error_document(error)})
    else:
        channel.send({"done": done})
