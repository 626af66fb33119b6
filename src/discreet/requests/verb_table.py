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
from typing import Any

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
    VERIFY = "verify the book and export its head"
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
        handler: the function that does it, as "module:name": it takes a curator, the request and the caller.
        document: the kind of its result as JSON; see `documents.RESULTS`.
        permission: what a caller of a service needs.
        queue: where a service does it.
        charges: whether it spends: its result then leaves a service at a tick, and a killed one uses a failure credit.
        faces: which faces offer it.
    """

    request: type[Request[Any]]
    handler: str
    document: str
    permission: Permission
    queue: Queue
    charges: bool = False
    faces: frozenset[str] = FACES

    @property
    def name(self) -> str:
        """Returns its name, as Python spells it."""
        return self.request.verb

    def run(self, curator: Any, request: Request[Any], caller: Any) -> Any:
        """Returns what the handler gives."""
        return _loaded(self.handler)(curator, request, caller)


def _loaded(place: str) -> Callable[..., Any]:
    module, _, name = place.partition(":")
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]  # the table names functions


def _curator(method: str) -> str:
    return f"discreet.curator.curator:Curator._{method}"


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
            Verb(GetBudget, _curator("budget"), "standing", _P.SEE_OWN, _Q.LEDGER),
            Verb(GetHistory, _curator("history"), "entries", _P.SEE_OWN, _Q.LEDGER),
            Verb(Verify, _curator("verify"), "head", _P.VERIFY, _Q.LEDGER),
            Verb(Amend, _curator("amend"), "balance", _P.STEWARD, _Q.LEDGER),
            Verb(Renew, _curator("renew"), "balance", _P.STEWARD, _Q.LEDGER),
            Verb(Unlock, _curator("unlock"), "nothing", _P.STEWARD, _Q.LEDGER),
            Verb(Appoint, _curator("appoint"), "nothing", _P.STEWARD, _Q.LEDGER),
            Verb(Allot, _curator("allot"), "nothing", _P.STEWARD, _Q.LEDGER),
        )
    }
)
