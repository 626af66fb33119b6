"""A curator behind HTTP: the methods of `Curator` that make sense from elsewhere, with the same answers and errors."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, urlencode

from discreet import check
from discreet.errors import DiscreetError, InvalidParameter, ServiceUnavailable
from discreet.ledger import OWNER, Balance, Caller, Head
from discreet.noise.tokens import token
from discreet.presentation.documents.error_documents import read_error
from discreet.presentation.documents.ledger_documents import BALANCE, HEAD, STANDING
from discreet.presentation.documents.result_documents import result_of
from discreet.progress import Progress
from discreet.remote.http_transport import TIMEOUT, Transport, read_address
from discreet.requests.ledger_requests import GetBudget, GetHistory, only_account
from discreet.requests.request import R, Request, arguments
from discreet.requests.verb_table import VERBS, Queue
from discreet.requests.verbs import Verbs

Document = Mapping[str, Any]
_ENDED = ("done", "failed", "cancelled")
_PAGE = 500


def connect(url: str, *, key: str, timeout: float = TIMEOUT, ca_file: str | Path | None = None) -> RemoteCurator:
    """Returns a curator that is a service elsewhere.

    Args:
        url: of the service, as "https://data.example"; "http://localhost:8642" on this machine.
        key: that a steward gave; it decides who asks.
        timeout: seconds without a word after which a connection is given up.
        ca_file: certificates to trust instead of the system's.

    Raises:
        InvalidParameter: if the address is none, or would send the key unencrypted.

    >>> connect("https://data.example", key="dk_3f9a_5ec7e7")
    RemoteCurator(https://data.example)
    """
    address = read_address(url)
    shown: object = key
    if not (isinstance(shown, str) and shown.isascii() and shown.isprintable() and shown.strip()):
        raise InvalidParameter("key", "this one", "to be a key of the service", "Pass the key that a steward gave you.")
    context = None if ca_file is None else ssl.create_default_context(cafile=str(ca_file))
    waited = float(check.positive(timeout=timeout))
    return RemoteCurator(Transport(address=address, key=key.strip(), timeout=waited, context=context))


class RemoteCurator(Verbs):
    """Asks a service; see `Curator` for what its methods mean. The key decides who asks.

    Args:
        transport: to the service.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __repr__(self) -> str:
        return f"RemoteCurator({self._transport.address.geturl()})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing is held: every request has a connection of its own."""

    def _perform(self, request: Request[R], caller: Caller) -> R:
        """Sends a request as JSON, and reads the result that comes back."""
        if caller.analyst != OWNER:
            hint = "The key decides who asks."
            raise InvalidParameter("analyst", caller.analyst, "to be left out", hint)
        verb = VERBS[request.verb]
        if "http" not in verb.faces:
            hint = "Run it where the ledger is."
            raise InvalidParameter("verb", verb.name, "to be supported by a service", hint)
        if isinstance(request, GetBudget):
            return self._budget(request)  # type: ignore[return-value]  # who sees their own part gets no more than that
        found: R = result_of(verb).read(self.perform_document(request, caller))
        return found

    def perform_document(self, request: Request[Any], caller: Caller | None = None) -> Document:
        """Returns the result of a request as JSON, in which columns have their types."""
        who, verb = Caller() if caller is None else caller, VERBS[request.verb]
        (method, path), body = verb.route, request.document()
        for name in re.findall(r"{(\w+)}", path):
            path = path.replace(f"{{{name}}}", quote(body.pop(name, "") or self._only_account(), safe=""))
        if method == "GET":
            return self._pages(path, body) if isinstance(request, GetHistory) else self._get(path, body)
        if who.project and verb.queue is not Queue.LEDGER:
            body["project"] = who.project
        if not verb.charges:
            sent = body if arguments(verb.request) else None
            found: Document = self._transport.send(method, path, sent, repeatable=verb.repeatable)
        elif verb.queue is Queue.LONG or who.progress is not None:
            found = self._job(path, body, who.key, who.progress)
        else:
            found = self._transport.send(method, path, body, key=_word(who.key))
        return found

    # ---------------------------------------------------------------------------------------------- tables and ledger

    def tables(self) -> dict[str, str]:
        """Returns the account of every protected table that the key is for."""
        return {each["name"]: each["account"] for each in self.table_facts() if each["protected"]}

    def table_facts(self) -> list[Document]:
        """Returns the public facts about all tables: columns with types, bounds and keys, units and limits."""
        return list(self._get("/v1/tables")["tables"])

    def _only_account(self) -> str:
        """Returns the account of all tables that the key is for."""
        return only_account(sorted({*self.tables().values()}))

    def _budget(self, request: GetBudget) -> Balance:
        """Returns the caller's part of an account; a caller who sees all gets a `Standing` with all parts.

        Raises:
            InvalidParameter: if there is no such account that the key is for.
        """
        for each in self.perform_document(request)["budgets"]:
            return STANDING.read(each) if "balance" in each else BALANCE.read(each["own"])
        raise InvalidParameter("name", request.name, "to be a table or an account of yours", "See tables().")

    def _pages(self, path: str, asked: Document) -> Document:
        """Returns all pages of a list as one."""
        found: list[Any] = []
        following: int | None = 0
        while following is not None:
            page = self._get(path, {**asked, "limit": _PAGE, "after": int(following)})
            found += page["entries"]
            following = page["next"]
        return {"entries": found, "next": None}

    def certificate(self, sequence: int) -> Document:
        """Returns what was promised about one charged question, by the number of its entry."""
        found: Document = self._get(f"/v1/certificates/{check.integer(sequence=sequence)}")
        return found

    def anchor(self) -> Head:
        """Returns the head of the ledger, to be kept elsewhere."""
        return HEAD.read(self._get("/v1/anchor"))

    # ---------------------------------------------------------------------------------------------------- requests

    def _get(self, path: str, asked: Document | None = None) -> Any:
        return self._transport.send("GET", f"{path}?{urlencode(asked)}" if asked else path, repeatable=True)

    def _job(self, path: str, body: Document, key: str | None, progress: Progress | None) -> Any:
        """Returns the outcome of long work, which is followed until it has ended; each stage is reported once."""
        begun, stage = self._transport.send("POST", path, {**body, "wait": False}, key=_word(key)), ""
        for last in self._changes(begun):
            if progress is not None and last["stage"] not in ("", stage):
                progress(last["stage"])
            stage = last["stage"]
            if last["state"] in _ENDED:
                break
        if last["state"] == "done":
            return last["document"]
        raise _read_failure(last)

    def _changes(self, job: Document) -> Iterator[Document]:
        """Yields a job now and after each of its events; it is asked for where the stream of events breaks off."""
        place = f"/v1/jobs/{quote(job['id'], safe='')}"
        while True:
            yield job
            try:
                yield from self._transport.events(f"{place}/events")
            except ServiceUnavailable:
                self._transport.pause(1)
            job = self._get(place)


def _read_failure(last: Document) -> DiscreetError:
    if last["error"] is not None:
        return read_error(last["error"])
    return ServiceUnavailable("The job was cancelled", "What was charged stays charged.")


def _word(key: str | None) -> str:
    """Returns the idempotency key of a request; a new random one if none is given."""
    return f"once-{token(16)}" if key is None else key
