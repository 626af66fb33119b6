"""What a service asks of a question beyond what the book asks: somebody was appointed, and it is not too small."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from discreet import check
from discreet.errors import InvalidParameter, NotPermitted
from discreet.ledger import OWNER, AccountState, Book
from discreet.privacy import Budget, Loss

_AMOUNTS = ("epsilon", "delta", "rho")
_LONGEST_AMOUNT = 100  # characters; an exact amount needs fewer


def require_listed(book: Book, analyst: str, account: str, project: str = "") -> AccountState:
    """Lets pass who may ask on an account: the owner, and all others only once analysts were appointed on it.

    The book by itself answers every name on an account without appointed analysts, since whoever holds the file in
    their own process is its owner. Behind a service names are other people.

    Returns:
        Where the account stands.

    Raises:
        NotPermitted: for everybody else.
        InvalidParameter: if there is no such account.
    """
    state = book.admit(account, analyst, project)
    if analyst != OWNER and not state.listed:
        hint = "No analysts are appointed on it yet: a steward appoints them, with a cap or without."
        raise NotPermitted(analyst, f"ask on account {account!r}", hint)
    return state


def check_least(arguments: Mapping[str, Any], least: Fraction) -> None:
    """Refuses a question that asks for less than the least epsilon: a budget would last for too many entries.

    It covers what `ask`, `ask_many` (each of its questions), `profile` and `fit` take as JSON. Where `within` is given
    in place of an epsilon, what that comes to is known to the planner only; `max_epsilon` is held to the least.

    Raises:
        InvalidParameter: naming the amount.

    >>> check_least({"question": "SELECT COUNT(*) FROM visits", "epsilon": "0.1"}, Fraction(1, 1000))
    >>> check_least({"questions": ["...", "..."], "epsilon": "0.001"}, Fraction(1, 1000))
    Traceback (most recent call last):
    discreet.errors.InvalidParameter: Expected epsilon=0.0005 of each of 2 questions >= 0.001. Ask for more; ...
    """
    questions = arguments.get("questions")
    count = max(1, len(questions)) if isinstance(questions, list | tuple) else 1
    for name, value in _amounts(arguments):
        amount = check.positive(**{name: value}) / count
        if amount < least:
            shown = f"{float(amount):g}" + (f" of each of {count} questions" if count > 1 else "")
            hint = "Ask for more; what was released before is free whatever it cost."
            raise InvalidParameter(name, _Plain(shown), f">= {float(least):g}", hint)


class _Plain(str):
    """A text that is shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _amounts(arguments: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every epsilon that a request names, also that of a learner."""
    for name in ("epsilon", "max_epsilon", "profile"):
        if arguments.get(name) is not None:
            yield name, arguments[name]
    learner = arguments.get("parameters") if "learner" in arguments else None
    if isinstance(learner, Mapping) and learner.get("epsilon") is not None:
        yield "epsilon", learner["epsilon"]


def read_budget(given: object, *, name: str = "budget") -> Loss:
    """Returns the budget or cap that JSON tells.

    Raises:
        InvalidParameter: if it is no object of exact amounts that go together.

    >>> print(read_budget({"epsilon": "2", "delta": "1e-6"}), "|", read_budget({"rho": 0.5}))
    epsilon=2, delta=1e-06 | rho=0.5
    """
    example = 'Pass e.g. {"epsilon": "2", "delta": "1e-6"} or {"rho": "0.1"}.'
    if not isinstance(given, Mapping) or not given:
        raise InvalidParameter(name, given, "to be an object of amounts", example)
    for key, value in given.items():
        if key not in _AMOUNTS:
            raise InvalidParameter(f"{name}.{key}", value, "to be epsilon, delta or rho", example)
        if isinstance(value, str) and len(value) > _LONGEST_AMOUNT:
            raise InvalidParameter(f"{name}.{key}", f"{len(value)} characters", "to be a number", example)
    return Budget(epsilon=given.get("epsilon"), delta=given.get("delta"), rho=given.get("rho"))
