"""What a service requires of a question beyond the ledger's rules: an appointment, and an epsilon that is not tiny."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from discreet import check
from discreet.errors import InvalidParameter, NotPermitted
from discreet.ledger import OWNER, AccountState, Ledger
from discreet.requests.request import arguments
from discreet.requests.verb_table import VERBS


def require_listed(
    ledger: Ledger, analyst: str, account: str, project: str = "", periods: Sequence[str] = ()
) -> AccountState:
    """Checks that a name may ask on an account: the owner may, all others only once analysts were appointed on it.

    The ledger alone answers every name on an account without appointed analysts, since a process that holds the file
    is its owner's. Behind a service, names are other people.

    Returns:
        The state of the account; with periods of rows, as the one of them sees it that has least left.

    Raises:
        NotPermitted: for all other names.
        InvalidParameter: if there is no such account.
    """
    state = ledger.admit(account, analyst, project, periods)
    if analyst != OWNER and not state.listed:
        hint = "No analysts are appointed on this account yet. Ask a steward to appoint you."
        raise NotPermitted(analyst, f"ask on account {account!r}", hint)
    return state


def check_least(given: Mapping[str, Any], least: Fraction) -> None:
    """Refuses a question that asks for less than the least epsilon: a budget would last for too many entries.

    It covers every argument that says how much may be spent, and the epsilon of a learner; several questions share one.
    Where an error is asked for in place of an epsilon, only the planner knows what that costs; its limit is checked.

    Raises:
        InvalidParameter: naming the amount.

    >>> check_least({"question": "SELECT COUNT(*) FROM visits", "epsilon": "0.1"}, Fraction(1, 1000))
    >>> check_least({"questions": ["...", "..."], "epsilon": "0.001"}, Fraction(1, 1000))
    Traceback (most recent call last):
    discreet.errors.InvalidParameter: Expected epsilon=0.0005 of each of 2 questions >= 0.001. Ask for a larger ...
    """
    questions = given.get("questions")
    count = max(1, len(questions)) if isinstance(questions, list | tuple) else 1
    for name, value in _amounts(given):
        amount = check.positive(**{name: value}) / count
        if amount < least:
            shown = f"{float(amount):g}" + (f" of each of {count} questions" if count > 1 else "")
            hint = "Ask for a larger epsilon. Stored answers are free, whatever they cost at first."
            raise InvalidParameter(name, _Plain(shown), f">= {float(least):g}", hint)


class _Plain(str):
    """A text that is shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _amounts(given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yields every epsilon that a request names, also that of a learner."""
    for name in sorted(_SPENDING):
        if given.get(name) is not None:
            yield name, given[name]
    learner = given.get("parameters") if "learner" in given else None
    if isinstance(learner, Mapping) and learner.get("epsilon") is not None:
        yield "epsilon", learner["epsilon"]


_SPENDING = {each.name for verb in VERBS.values() for each in arguments(verb.request) if each.arg.spends}
