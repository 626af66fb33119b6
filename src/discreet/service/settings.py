"""The table [service] of discreet.toml: where to listen, how much a caller may use, and how long anything may take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import Any

from discreet import check
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter

LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a service runs.

    Attributes:
        folder: of discreet.toml; other paths are relative to it.
        host: the address to listen on; beyond loopback it needs TLS, or a proxy that has it.
        port: of the API and the page.
        pg_port: of the PostgreSQL wire; None for none.
        metrics_port: of metrics and durations, on loopback, for stewards; None for none.
        hosts: names by which browsers may call the service; all others are refused, against DNS rebinding.
        tls_certificate, tls_key: files; both or none.
        behind_proxy: whether a proxy on this machine ends TLS and is trusted to name the client.
        identities: the database of people, keys and sessions.
        workers: processes that answer; one more is kept in reserve.
        planners: processes that explain and rehearse.
        queue: requests of all callers that may wait for workers; `queue_per_caller` of one caller.
        deadline: seconds for a question from its admission until it is killed.
        planning_deadline: seconds for planning, which is all that explain and rehearse do.
        fit_deadline: seconds for training, profiles, attacks and files.
        tick: seconds; what is charged leaves at admission + tick x 2^k.
        hold_slots: whether a worker stays busy until its answer leaves.
        memory: bytes that a worker may use; DuckDB gets a part of them.
        questions_per_worker: after which a worker is replaced.
        least_epsilon: the least that a question may ask for: it bounds how many entries a budget can make.
        questions_per_day, requests_per_minute: of one key; `requests_at_once` of one person on HTTP.
        connections: how many HTTP has at once; `wire_connections` the wire, `wire_connections_per_person` one person
            on the wire.
        reserved_connections: how many of HTTP, and of the wire, are kept for clients who have signed in.
        connections_per_address: of clients who have not signed in, from one address.
        header_deadline: seconds from a connection, or the end of its rest, to the end of a request's head.
        body_deadline: seconds for a request's body, and one more for each 64 KiB of it.
        send_deadline: seconds for a client to take what is sent.
        sign_in_deadline: seconds from a connection of the wire to the end of its sign-in.
        roots: folders from which stewards may protect files.
        uploads: the folder of uploaded files; `upload_bytes` of one, `uploads_bytes` of all.
        oidc: a provider to sign in with: issuer, client_id, client_secret_file; empty for none.
    """

    folder: Path = Path()
    host: str = "127.0.0.1"
    port: int = 8642
    pg_port: int | None = None
    metrics_port: int | None = None
    hosts: tuple[str, ...] = LOOPBACK
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    behind_proxy: bool = False
    identities: Path = Path("discreet.identities")
    workers: int = 2
    planners: int = 1
    queue: int = 64
    queue_per_caller: int = 16
    deadline: float = 60.0
    planning_deadline: float = 5.0
    fit_deadline: float = 600.0
    tick: float = 0.25
    hold_slots: bool = False
    memory: int = 2 << 30
    questions_per_worker: int = 200
    least_epsilon: Fraction = Fraction(1, 1000)
    questions_per_day: int = 2000
    requests_per_minute: int = 600
    requests_at_once: int = 64
    connections: int = 400
    wire_connections: int = 200
    wire_connections_per_person: int = 32
    reserved_connections: int = 50
    connections_per_address: int = 64
    header_deadline: float = 10.0
    body_deadline: float = 30.0
    send_deadline: float = 60.0
    sign_in_deadline: float = 10.0
    roots: tuple[Path, ...] = ()
    uploads: Path = Path("uploads")
    upload_bytes: int = 1 << 30
    uploads_bytes: int = 8 << 30
    oidc: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        for name in ("workers", "planners", "queue", "queue_per_caller", "questions_per_worker"):
            check.integer(at_least=1, **{f"service.{name}": getattr(self, name)})
        for name in ("questions_per_day", "requests_per_minute", "memory", "upload_bytes", "uploads_bytes"):
            check.integer(at_least=1, **{f"service.{name}": getattr(self, name)})
        for name in ("deadline", "planning_deadline", "fit_deadline", "tick", "least_epsilon"):
            check.positive(**{f"service.{name}": getattr(self, name)})
        self._check_connections()
        if self.tick > self.deadline:
            hint = "Lower it. With tick = deadline, the time of an answer shows only whether it was answered or failed."
            raise InvalidParameter("service.tick", self.tick, f"at most deadline={self.deadline}", hint)
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise InvalidParameter("service.tls_key", self.tls_key, "to come with tls_certificate", "Give both files.")
        if self.host not in LOOPBACK and not (self.tls_certificate or self.behind_proxy):
            hint = "Set tls_certificate and tls_key, or put a proxy with TLS in front and set behind_proxy = true."
            raise InvalidParameter("service.host", self.host, "to be loopback without TLS", hint)

    def _check_connections(self) -> None:
        for name in ("requests_at_once", "connections_per_address", "wire_connections_per_person"):
            check.integer(at_least=1, **{f"service.{name}": getattr(self, name)})
        for name in ("header_deadline", "body_deadline", "send_deadline", "sign_in_deadline"):
            check.positive(**{f"service.{name}": getattr(self, name)})
        check.integer(at_least=0, **{"service.reserved_connections": self.reserved_connections})
        for name in ("connections", "wire_connections"):
            value = check.integer(at_least=1, **{f"service.{name}": getattr(self, name)})
            if value <= self.reserved_connections:
                hint = "Lower reserved_connections: a client needs an unreserved connection to sign in."
                condition = f"> reserved_connections={self.reserved_connections}"
                raise InvalidParameter(f"service.{name}", value, condition, hint)

    @property
    def secure(self) -> bool:
        """Returns whether browsers come over TLS: then cookies are for TLS only."""
        return self.tls_certificate is not None or self.behind_proxy

    @classmethod
    def read(cls, given: Mapping[str, Any], folder: Path) -> Settings:
        """Returns the settings of a table [service].

        Raises:
            InvalidParameter: naming the key that is unknown or does not fit.

        >>> Settings.read({"port": 9000, "deadline": 30}, Path("/srv")).identities
        PosixPath('/srv/discreet.identities')
        """
        known = {each.name: each for each in fields(cls) if each.name != "folder"}
        for name in given:
            if name not in known:
                hint = f"Known: {', '.join(known)}."
                raise InvalidParameter(f"service.{name}", given[name], "to be a setting of the service", hint)
        made = {name: _read(f"service.{name}", value, str(known[name].type), folder) for name, value in given.items()}
        made.setdefault("identities", folder / "discreet.identities")
        made.setdefault("uploads", folder / "uploads")
        return cls(folder=folder, **made)


def require_anchor(anchor: str | None) -> None:
    """Refuses to serve a ledger whose anchor has no declared place: a service is moved, restored and started anew.

    Raises:
        InvalidParameter: if none is declared.

    >>> require_anchor("/var/lib/discreet/ledger.anchor")
    """
    if not anchor:
        hint = (
            'Add `anchor = "/var/lib/discreet/ledger.anchor"` at the top of discreet.toml. Use a file on another disk '
            "than the ledger's, and in none of its backups."
        )
        raise InvalidParameter("anchor", anchor, "to be declared for a service", hint)


def _read(place: str, value: Any, kind: str, folder: Path) -> Any:
    """Returns a value of TOML as the kind that a field has."""
    if kind.startswith("tuple"):
        inner = kind.removeprefix("tuple[").partition(",")[0]
        parts = _of_kind(place, value, list, 'a list, like ["a", "b"]')
        return tuple(_read(f"{place}[{i}]", each, inner, folder) for i, each in enumerate(parts))
    if kind.startswith("Path"):
        return folder / _of_kind(place, value, str, "a path in quotes")
    return _READERS[kind.partition(" ")[0].partition("[")[0]](place, value)


def _of_kind(place: str, value: Any, kind: type, words: str) -> Any:
    if not isinstance(value, kind):
        raise InvalidParameter(place, value, f"to be {words}", "See docs/serving.md for an example.")
    return value


def _texts(place: str, value: Any) -> dict[str, str]:
    given = _of_kind(place, value, dict, "a table")
    return {name: _of_kind(f"{place}.{name}", text, str, "a text") for name, text in given.items()}


_READERS: Mapping[str, Callable[[str, Any], Any]] = {
    "str": lambda place, value: _of_kind(place, value, str, "a text in quotes"),
    "bool": lambda place, value: _of_kind(place, value, bool, "true or false"),
    "int": lambda place, value: check.integer(**{place: value}),
    "float": lambda place, value: float(check.rational(**{place: value})),
    "Fraction": lambda place, value: check.rational(**{place: value}),
    "Mapping": _texts,
}
