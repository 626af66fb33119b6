"""A curator behind HTTP: the methods of `Curator` that make sense from elsewhere, with the same answers and errors."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from discreet import check
from discreet.errors import DiscreetError, InvalidParameter, ServiceUnavailable
from discreet.ledger import OWNER, Balance, Caller, Entry, Head
from discreet.noise.tokens import token
from discreet.presentation.documents import read_balance, read_entry, read_error, read_standing
from discreet.presentation.documents.result_documents import RESULTS
from discreet.progress import Progress
from discreet.remote.http_transport import TIMEOUT, Address, Transport
from discreet.requests.ledger_requests import GetBudget, GetHistory
from discreet.requests.question_requests import Ask
from discreet.requests.request import R, Request
from discreet.requests.verb_table import VERBS, Queue
from discreet.requests.verbs import Verbs
from discreet.sql.parameters import Parameters

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
        InvalidParameter: if the address is none, or would send the key for everybody to read.

    >>> connect("https://data.example", key="dk_3f9a_5ec7e7")
    RemoteCurator(https://data.example)
    """
    address = Address.of(url)
    shown: object = key
    if not (isinstance(shown, str) and shown.isascii() and shown.isprintable() and shown.strip()):
        raise InvalidParameter("key", "this one", "to be a key of the service", "Pass what a steward gave you.")
    context = None if ca_file is None else ssl.create_default_context(cafile=str(ca_file))
    waited = float(check.positive(timeout=timeout))
    return RemoteCurator(Transport(address=address, key=key.strip(), timeout=waited, context=context))


class RemoteCurator(Verbs):
    """Asks a service; see `Curator` for what its methods mean. Who asks is who has the key.

    Args:
        transport: to the service.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __repr__(self) -> str:
        where = self._transport.address
        port = "" if where.port is None else f":{where.port}"
        return f"RemoteCurator({where.scheme}://{where.host}{port}{where.path})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing is held: every request has a connection of its own."""

    def _perform(self, request: Request[R], caller: Caller) -> R:
        """Sends a request as JSON, and reads the result that comes back."""
        if caller.analyst != OWNER:
            hint = "Who asks is who has the key."
            raise InvalidParameter("analyst", caller.analyst, "to be an argument of a service", hint)
        verb = VERBS[request.verb]
        if "http" not in verb.faces:
            hint = "Run it where the ledger is."
            raise InvalidParameter("verb", verb.name, "to be something that a service does", hint)
        own: Callable[[Any], Any] | None = self._own.get(request.verb)
        if own is not None:
            return own(request)  # type: ignore[no-any-return]  # the table of methods is untyped
        found: R = RESULTS[verb.document].read(self.perform_document(request, caller))
        return found

    def ask_document(
        self,
        sql: str,
        *,
        parameters: Parameters = None,
        epsilon: check.Number | None = None,
        delta: check.Number | None = None,
    ) -> Document:
        """Returns what `ask` returns as JSON, in which columns have their types."""
        return self.perform_document(Ask.of(sql=sql, parameters=parameters, epsilon=epsilon, delta=delta))

    def perform_document(self, request: Request[Any], caller: Caller | None = None) -> Document:
        """Returns the result of a request as JSON, in which columns have their types."""
        who, verb = Caller() if caller is None else caller, VERBS[request.verb]
        path, body = f"/v1/{verb.name.replace('_', '-')}", request.document()
        if who.project:
            body["project"] = who.project
        if not verb.charges:
            found: Document = self._transport.send("POST", path, body, repeatable=True)
        elif verb.queue is Queue.LONG or who.progress is not None:
            found = self._job(path, body, who.key, who.progress)
        else:
            found = self._transport.send("POST", path, body, key=_word(who.key))
        return found

    # ---------------------------------------------------------------------------------------------- tables and book

    def tables(self) -> dict[str, str]:
        """Returns the account of every protected table that the key is for."""
        return {each["name"]: each["account"] for each in self.table_facts() if each["protected"]}

    def table_facts(self) -> list[Document]:
        """Returns the public facts about all tables: columns with types, bounds and keys, units and limits."""
        return list(self._get("/v1/tables")["tables"])

    @property
    def _own(self) -> Mapping[str, Callable[[Any], Any]]:
        """The verbs whose routes are not those of work: they read or change the ledger."""
        return {
            "budget": self._budget,
            "history": self._history,
            "verify": lambda _: Head.parse(self._transport.send("POST", "/v1/verify", repeatable=True)["head"]),
            "amend": lambda request: read_balance(self._act(request, "amend")),
            "renew": lambda request: read_balance(self._act(request, "renew")),
            "unlock": lambda request: self._act(request, "unlock") and None,
            "allot": lambda request: self._act(request, "allotments") and None,
            "appoint": lambda request: self._transport.send("POST", "/v1/appointments", request.document()) and None,
        }

    def _budget(self, request: GetBudget) -> Balance:
        """Returns one's own part of an account; who sees all gets a `Standing` with everybody's part.

        Raises:
            InvalidParameter: if there is no such account that the key is for.
        """
        for each in self._get("/v1/budget")["budgets"]:
            if request.name == each["account"] or request.name in each["tables"]:
                return read_standing(each) if "balance" in each else read_balance(each["own"])
        raise InvalidParameter("name", request.name, "to be a table or an account of yours", "See tables().")

    def _history(self, request: GetHistory) -> tuple[Entry, ...]:
        """Returns one's own charges, or all entries for who sees all, page by page."""
        if request.project is not None:
            raise InvalidParameter("project", request.project, "to be left out", "A service lists whole accounts.")
        account = None if request.name is None else self.tables().get(request.name, request.name)
        told = {"account": account, "analyst": request.analyst}
        chosen = "".join(f"&{option}={quote(value, safe='')}" for option, value in told.items() if value is not None)
        found: list[Entry] = []
        following: int | None = 0
        while following is not None:
            page = self._get(f"/v1/history?limit={_PAGE}&after={int(following)}{chosen}")
            found += [read_entry(each) for each in page["entries"]]
            following = page["next"]
        return tuple(found)

    def certificate(self, sequence: int) -> Document:
        """Returns what was promised about one charged question, by the number of its entry."""
        found: Document = self._get(f"/v1/certificates/{check.integer(sequence=sequence)}")
        return found

    def anchor(self) -> Head:
        """Returns the head of the book, to be kept elsewhere."""
        return Head.parse(self._get("/v1/anchor")["head"])

    # ---------------------------------------------------------------------------------------------------- requests

    def _get(self, path: str) -> Any:
        return self._transport.send("GET", path, repeatable=True)

    def _act(self, request: Request[Any], act: str) -> Any:
        body = request.document()
        return self._transport.send("POST", f"/v1/accounts/{quote(body.pop('account'), safe='')}/{act}", body)

    def _job(self, path: str, body: Document, key: str | None, progress: Progress | None) -> Any:
        """The outcome of long work, which is followed until it has ended."""
        begun = self._transport.send("POST", path, {**body, "wait": False}, key=_word(key))
        place, last = f"/v1/jobs/{quote(begun['id'], safe='')}", begun
        told = _Stages(progress)
        while last["state"] not in _ENDED:
            last = self._followed(place, told)
        if last["state"] == "done":
            return last["document"]
        raise _ended(last)

    def _followed(self, place: str, told: _Stages) -> Document:
        """The job after its last event; asked for if the stream broke off before its end."""
        try:
            for each in self._transport.events(f"{place}/events"):
                told.hear(each["stage"])
                if each["state"] in _ENDED:
                    found: Document = each
                    return found
        except ServiceUnavailable:
            self._transport.pause(1)
        asked: Document = self._get(place)
        return asked


class _Stages:
    """Tells each stage that begins, once."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress, self._last = progress, ""

    def hear(self, stage: str) -> None:
        if self._progress is not None and stage not in ("", self._last):
            self._progress(stage)
        self._last = stage


def _ended(last: Document) -> DiscreetError:
    if last["error"] is not None:
        return read_error(last["error"])
    return ServiceUnavailable("The job was cancelled", "What was charged stays charged.")


def _word(key: str | None) -> str:
    """The idempotency key of a request; one that nobody has, if none is given."""
    return f"once-{token(16)}" if key is None else key
