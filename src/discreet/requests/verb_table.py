"""The table of all verbs: request, handler, document, permission, queue, and whether it charges.

A verb is a file with its request and one line here. Handlers and documents are named and loaded when they are first
needed, since both are in rooms above this one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from types import MappingProxyType
from typing import Any, get_args

from discreet.requests.argument_kinds import FACES
from discreet.requests.ledger_requests import Allot, Amend, Appoint, GetBudget, GetHistory, Renew, Unlock, Verify
from discreet.requests.question_requests import Ask, AskMany, ChooseEpsilon, Explain, Rehearse
from discreet.requests.request import Request
from discreet.requests.table_requests import (
    BuyProfile,
    Fit,
    OpenStream,
    PlanFit,
    PlanSynthesize,
    PlanSynthesizeTables,
    Synthesize,
    SynthesizeTables,
)


class Permission(Enum):
    """What a caller of a service needs for something."""

    SEE_TABLES = "see tables"
    PLAN = "plan questions"
    ASK = "ask questions"
    SEE_OWN = "see their own budget, history and certificates"
    SEE_ALL = "see everybody's budgets and history"
    VERIFY = "verify the ledger and export its head"
    STEWARD = "act as a steward"
    MANAGE_PEOPLE = "manage people and keys"
    PROTECT = "protect tables"
    ATTACK = "run the attack lab"


class Queue(Enum):
    """Where a service does it."""

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
        request: its arguments.
        handler: the function that does it, as "module:name": it takes a curator, or in the ledger's queue the ledger,
            the request and the caller.
        document: the kind of its result as JSON; see `documents.RESULTS`. "" for a plain result, by its type alone.
        permission: what a caller of a service needs.
        queue: where a service does it.
        charges: whether it spends: its result then leaves a service at a tick, and a killed one uses a failure credit.
        faces: which faces offer it.
        http: the method and the path below /v1, with arguments in braces; POST and its name unless given.
    """

    request: type[Request[Any]]
    handler: str
    document: str
    permission: Permission
    queue: Queue
    charges: bool = False
    faces: frozenset[str] = FACES
    http: str = ""

    @property
    def name(self) -> str:
        """Returns its name, as Python spells it."""
        return self.request.verb

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
        """Tells whether doing it twice is doing it once: it spends nothing, and enters nothing into the ledger."""
        return not self.charges and self.permission is not Permission.STEWARD

    def run(self, place: Any, request: Request[Any], caller: Any) -> Any:
        """Returns what the handler gives, for a curator, or the ledger of one."""
        return _loaded(self.handler)(place, request, caller)


def _loaded(place: str) -> Callable[..., Any]:
    module, _, name = place.partition(":")
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]  # the table names functions


def _curator(method: str) -> str:
    return f"discreet.curator.curator:Curator._{method}"


def _ledger(function: str) -> str:
    return f"discreet.requests.ledger_requests:{function}"


_HERE = frozenset({"python", "cli"})
_LEARNED = frozenset({"python", "http"})  # a learner is an object, or its name with parameters: no option holds it
_P, _Q = Permission, Queue

VERBS: Mapping[str, Verb] = MappingProxyType(
    {
        verb.name: verb
        for verb in (
            Verb(Ask, _curator("ask"), "answer", _P.ASK, _Q.ASKING, charges=True),
            Verb(AskMany, _curator("ask_many"), "answers", _P.ASK, _Q.ASKING, charges=True),
            Verb(Explain, _curator("explain"), "explanation", _P.PLAN, _Q.PLANNING),
            Verb(Rehearse, _curator("rehearse"), "answer", _P.PLAN, _Q.PLANNING),
            Verb(ChooseEpsilon, _curator("choose_epsilon"), "choices", _P.PLAN, _Q.PLANNING),
            Verb(BuyProfile, _curator("profile"), "profile", _P.ASK, _Q.LONG, charges=True),
            Verb(Fit, _curator("fit"), "model", _P.ASK, _Q.LONG, charges=True, faces=_LEARNED),
            Verb(PlanFit, _curator("plan_fit"), "fit plan", _P.PLAN, _Q.PLANNING, faces=_LEARNED),
            Verb(Synthesize, _curator("synthesize"), "synthetic table", _P.ASK, _Q.LONG, charges=True),
            Verb(SynthesizeTables, _curator("synthesize_tables"), "synthetic tables", _P.ASK, _Q.LONG, charges=True),
            Verb(PlanSynthesize, _curator("plan_synthesize"), "synthesis plan", _P.PLAN, _Q.PLANNING),
            Verb(PlanSynthesizeTables, _curator("plan_synthesize_tables"), "synthesis plan", _P.PLAN, _Q.PLANNING),
            Verb(OpenStream, _curator("stream"), "stream", _P.ASK, _Q.NONE, charges=True, faces=_HERE),
            Verb(GetBudget, _ledger("get_budget"), "standing", _P.SEE_OWN, _Q.LEDGER, http="GET /budget"),
            Verb(GetHistory, _ledger("get_history"), "entries", _P.SEE_OWN, _Q.LEDGER, http="GET /history"),
            Verb(Verify, _ledger("verify"), "head", _P.VERIFY, _Q.LEDGER),
            Verb(Amend, _ledger("amend"), "balance", _P.STEWARD, _Q.LEDGER, http="POST /accounts/{account}/amend"),
            Verb(Renew, _ledger("renew"), "balance", _P.STEWARD, _Q.LEDGER, http="POST /accounts/{account}/renew"),
            Verb(Unlock, _ledger("unlock"), "nothing", _P.STEWARD, _Q.LEDGER, http="POST /accounts/{account}/unlock"),
            Verb(Appoint, _ledger("appoint"), "nothing", _P.STEWARD, _Q.LEDGER, http="POST /appointments"),
            Verb(Allot, _ledger("allot"), "nothing", _P.STEWARD, _Q.LEDGER, http="POST /accounts/{account}/allotments"),
        )
    }
)
