"""What a refused charge proposes, changed so that its request takes it: a ledger knows no arguments."""

from __future__ import annotations

from typing import Any

from discreet.errors import DiscreetError, InsufficientBudget
from discreet.hint_text import Hint
from discreet.requests.request import Request, arguments

NO_DELTA = " and {delta:0}"
"""What a ledger adds to the largest epsilon, because a query without a delta may have most of it."""
_OR_REPEAT = ", or repeat"


def propose_arguments(refused: InsufficientBudget, request: Request[Any]) -> None:
    """Changes the hint of a refused charge to arguments that its request has.

    A profile has no delta, and generators, which add normal noise, do not take 0. The epsilon that is proposed is for
    all of a charge, so a question that also buys a profile is asked without it.
    """
    if isinstance(refused.hint, Hint):
        change_hint(refused, _fit_arguments(refused.hint.template, request))


def change_hint(refused: InsufficientBudget, template: str) -> None:
    """Gives a refused charge another hint, in its message too."""
    reason = str(refused).removesuffix(refused.hint)
    refused.hint = Hint(template)
    refused.args = (f"{reason}{refused.hint}",)


def refusal_text(refusal: DiscreetError | None, *, pure: bool = True) -> str | None:
    """Returns why a request would be refused, as a text in which every face spells the arguments.

    Args:
        refusal: the error; None if it would not be refused.
        pure: whether the request takes a delta of 0.
    """
    hint = getattr(refusal, "hint", "")
    if refusal is None or not isinstance(hint, Hint):
        return None if refusal is None else str(refusal)
    template = hint.template if pure else hint.template.replace(NO_DELTA, "")
    return Hint(str(refusal).removesuffix(hint) + template)


def _fit_arguments(template: str, request: Request[Any]) -> str:
    names = {argument.name for argument in arguments(type(request))}
    pure = "delta" in names and "generator" not in names
    found = template if pure else template.replace(NO_DELTA, "")
    alone = getattr(request, "profile", None) is None
    return found if alone else found.replace(_OR_REPEAT, f" and without {{profile}}{_OR_REPEAT}")
