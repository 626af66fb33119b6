"""The table of all verbs: request, handler, document, permission, queue, and whether it charges.

A verb is a file with its request and one line here. Requests, handlers and documents are named and loaded when they
are first needed: handlers and documents are in rooms above this one, and a list of commands needs names alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, get_args

from discreet.dataclass import dataclass
from discreet.requests import FACES

if TYPE_CHECKING:
    from discreet.requests.request import Request


class Permission(Enum):
    """A permission that a caller of a service needs for an action."""

    SEE_TABLES = "see tables"
    PLAN = "plan questions"
    ASK = "ask questions"
    SEE_OWN = "see their own budget, history and certificates"
    SEE_ALL = "see the budgets and history of all people"
    VERIFY = "verify the ledger and export its head"
    STEWARD = "act as a steward"
    MANAGE_PEOPLE = "manage people and keys"
    PROTECT = "protect tables"
    ATTACK = "run the attack lab"


class Queue(Enum):
    """The queue in which a service runs a request."""

    ASKING = "workers that answer"
    PLANNING = "workers that only plan"
    LONG = "one worker, for long work"
    STEWARD = "one worker, which may change declarations"
    LEDGER = "the process that owns the ledger"
    NONE = "not in a service"


@dataclass(frozen=True, slots=True)
class Verb:
    """Something that a caller can ask for.

    Attributes:
        name: as Python spells it.
        place: the class of its requests, as "module:name".
        document: the kind of its result as JSON; see `documents.RESULTS`. "" for a plain result, by its type alone.
        permission: what a caller of a service needs.
        queue: where a service does it.
        handler: the function that does it, in the module of its request: it takes a curator, or in the ledger's queue
            the ledger, the request and the caller. Unless given, the curator's method that is called like the verb.
        charges: whether it spends: its result then leaves a service at a tick, and a killed one uses a failure credit.
        faces: which faces offer it.
        http: the method and the path below /v1, with arguments in braces; POST and its name unless given.
    """

    name: str
    place: str
    document: str
    permission: Permission
    queue: Queue
    handler: str = ""
    charges: bool = False
    faces: frozenset[str] = FACES
    http: str = ""

    @property
    def request(self) -> type[Request[Any]]:
        """Returns the class of its requests."""
        found: type[Request[Any]] = _load_object(self.place)
        return found

    def read_request(self, document: Mapping[str, Any]) -> Request[Any]:
        """Returns the request of a JSON document.

        Raises:
            InvalidParameter: if an argument is missing, unknown or malformed.
        """
        return self.request.read(document)

    @property
    def result(self) -> Any:
        """Returns the type of its result, as the request names it."""
        bases = getattr(self.request, "__orig_bases__", ())
        return next((part for base in bases for part in get_args(base)), Any)

    @property
    def route(self) -> tuple[str, str]:
        """Returns the method and the path of HTTP, in which arguments stand in braces.

        >>> VERBS["ask_many"].route, VERBS["amend"].route
        (('POST', '/v1/ask-many'), ('POST', '/v1/accounts/{account}/amend'))
        """
        method, _, path = (self.http or f"POST /{self.name.replace('_', '-')}").partition(" ")
        return method, f"/v1{path}"

    @property
    def repeatable(self) -> bool:
        """Returns whether doing it twice is the same as once: it spends nothing, and enters nothing into the ledger."""
        return not self.charges and self.permission is not Permission.STEWARD

    @property
    def implementation(self) -> Callable[[Any, Any, Any], Any]:
        """Returns its handler, for a curator or the ledger of one, a request and a caller."""
        found: Callable[[Any, Any, Any], Any] = _load_object(f"{self.place.partition(':')[0]}:{self.handler}")
        return found


def _load_object(place: str) -> Any:
    module, _, name = place.partition(":")
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _question(name: str) -> str:
    return f"discreet.requests.question_requests:{name}"


def _table(name: str) -> str:
    return f"discreet.requests.table_requests:{name}"


def _ledger(name: str) -> str:
    return f"discreet.requests.ledger_requests:{name}"


def _caps(name: str) -> str:
    return f"discreet.requests.cap_requests:{name}"


def _versions(name: str) -> str:
    return f"discreet.requests.version_requests:{name}"


def _on_caps(
    name: str,
    request: str,
    document: str,
    permission: Permission = Permission.STEWARD,
    http: str = "",
    *,
    done: str = "",
) -> Verb:
    """Returns a verb about caps, which needs the ledger alone."""
    return Verb(name, _caps(request), document, permission, Queue.LEDGER, done or name, http=http)


def _on_ledger(
    name: str, request: str, document: str, permission: Permission, http: str = "", *, done: str = ""
) -> Verb:
    """Returns a verb that needs the ledger alone."""
    return Verb(name, _ledger(request), document, permission, Queue.LEDGER, done or name, http=http)


_HERE = frozenset({"python", "cli"})
_LEARNED = frozenset({"python", "http"})  # a learner is an object, or its name with parameters: no option holds it
_P, _Q = Permission, Queue
_ERASE_CHECK = "discreet.requests.erasure_requests:EraseCheck"

VERBS: Mapping[str, Verb] = MappingProxyType(
    {
        verb.name: verb
        for verb in (
            Verb("ask", _question("Ask"), "answer", _P.ASK, _Q.ASKING, charges=True),
            Verb("ask_many", _question("AskMany"), "answers", _P.ASK, _Q.ASKING, charges=True),
            Verb("explain", _question("Explain"), "explanation", _P.PLAN, _Q.PLANNING),
            Verb("rehearse", _question("Rehearse"), "answer", _P.PLAN, _Q.PLANNING),
            Verb("choose_epsilon", _question("ChooseEpsilon"), "choices", _P.PLAN, _Q.PLANNING),
            Verb("profile", _table("BuyProfile"), "profile", _P.ASK, _Q.LONG, charges=True),
            Verb("fit", _table("Fit"), "model", _P.ASK, _Q.LONG, charges=True, faces=_LEARNED),
            Verb("plan_fit", _table("PlanFit"), "fit plan", _P.PLAN, _Q.PLANNING, faces=_LEARNED),
            Verb("synthesize", _table("Synthesize"), "synthetic table", _P.ASK, _Q.LONG, charges=True),
            Verb("synthesize_tables", _table("SynthesizeTables"), "synthetic tables", _P.ASK, _Q.LONG, charges=True),
            Verb("plan_synthesize", _table("PlanSynthesize"), "synthesis plan", _P.PLAN, _Q.PLANNING),
            Verb("plan_synthesize_tables", _table("PlanSynthesizeTables"), "synthesis plan", _P.PLAN, _Q.PLANNING),
            Verb("stream", _table("OpenStream"), "stream", _P.ASK, _Q.NONE, charges=True, faces=_HERE),
            _on_ledger("budget", "GetBudget", "standing", _P.SEE_OWN, "GET /budget", done="get_budget"),
            _on_ledger("history", "GetHistory", "entries", _P.SEE_OWN, "GET /history", done="get_history"),
            _on_ledger("verify", "Verify", "head", _P.VERIFY),
            _on_ledger("amend", "Amend", "balance", _P.STEWARD, "POST /accounts/{account}/amend"),
            _on_ledger("renew", "Renew", "balance", _P.STEWARD, "POST /accounts/{account}/renew"),
            Verb("advance", _versions("Advance"), "", _P.STEWARD, _Q.LEDGER, "advance"),
            Verb("erase_check", _ERASE_CHECK, "", _P.STEWARD, _Q.LEDGER, "erase_check"),
            _on_ledger("unlock", "Unlock", "balance", _P.STEWARD, "POST /accounts/{account}/unlock"),
            _on_ledger("appoint", "Appoint", "appointment", _P.STEWARD, "POST /appointments"),
            Verb("request_approval", _caps("RequestApproval"), "approval", _P.ASK, _Q.PLANNING),
            _on_caps("approve", "Approve", "approval"),
            Verb(
                "approvals",
                _caps("GetApprovals"),
                "approvals",
                _P.SEE_OWN,
                _Q.LEDGER,
                "get_approvals",
                http="GET /approvals",
            ),
            Verb(
                "require_approvals", _caps("RequireApprovals"), "approvals", _P.STEWARD, _Q.LEDGER, "require_approvals"
            ),
            Verb("set_team", _caps("SetTeam"), "share", _P.STEWARD, _Q.LEDGER, "set_team"),
            Verb("set_aside", _caps("SetAside"), "balance", _P.STEWARD, _Q.LEDGER, "set_aside"),
            Verb("give_back", _caps("GiveBack"), "balance", _P.STEWARD, _Q.LEDGER, "give_back"),
            _on_ledger("allot", "Allot", "share", _P.STEWARD, "POST /accounts/{account}/allotments"),
        )
    }
)
