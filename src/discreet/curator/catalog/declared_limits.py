"""How a steward says how much one person counts: as numbers, or as something that one release finds for a price."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from hashlib import sha256
from typing import Any

from discreet import check
from discreet.check import Number
from discreet.errors import InvalidParameter
from discreet.exact import root_below
from discreet.ledger import Ledger
from discreet.ledger.outcomes import MOST_RUNS
from discreet.ledger.serialization import at_most, canonical, parse_canonical
from discreet.plan.model.schema import Limits, PrivateLimits
from discreet.privacy import ZCDP, AnyBudget, ApproxDP, Loss, PureDP
from discreet.privacy.budget import split

PRIVATE = "private"

SUPPOSED = Limits(total=10)
"""Limits by which questions are explained and rehearsed while private ones are not known."""

DeclaredLimits = Limits | str | None
"""Limits as they are declared: numbers, or "private" for those that one paid release finds."""

Held = tuple[Limits, PrivateLimits | None]


def limits_of(limits: DeclaredLimits, epsilon: Number | None, groups: int | None, rows: int | None) -> Held | None:
    """Returns limits as they are given, in one of their ways; None if they are not.

    >>> limits_of(None, None, 3, None), limits_of("private", "0.05", None, None)
    ((Limits(groups=3, rows=1, total=None), None), (Limits(groups=10, rows=10, total=10), \
PrivateLimits(epsilon=Fraction(1, 20), found=False)))

    Raises:
        InvalidParameter: if they are given in several ways, or in none that is known.
    """
    counted = groups is not None or rows is not None
    if limits is not None and counted:
        hint = "Leave out max_groups and max_rows, or leave out limits."
        raise InvalidParameter("limits", limits, "without max_groups and max_rows", hint)
    if epsilon is not None and limits != PRIVATE:
        raise InvalidParameter("limits_epsilon", epsilon, 'with limits="private"', "Leave it out, or add that.")
    if limits is None:
        return (Limits(1 if groups is None else groups, 1 if rows is None else rows), None) if counted else None
    if isinstance(limits, Limits):
        return limits, None
    if limits != PRIVATE:
        hint = 'Write limits="private", or declare max_rows and max_groups.'
        raise InvalidParameter("limits", limits, 'to be "private", or numbers', hint)
    return SUPPOSED, PrivateLimits(None if epsilon is None else check.positive(limits_epsilon=epsilon))


def limits_in(declaration: str) -> Held:
    """Returns the limits of a declaration in a ledger."""
    limits: Any = parse_canonical(declaration)["limits"]
    if not isinstance(limits, dict):
        return Limits(*limits), None
    price = limits["private"]
    return SUPPOSED, PrivateLimits(None if price is None else Fraction(price))


def known_limits(ledger: Ledger, table: str, account: str, budget: AnyBudget | None, unit: str | None) -> Held:
    """Returns the limits of a table that is in the ledger: what was declared stays as it is.

    Raises:
        InvalidParameter: if it is new and has units, with both ways to say how much one person counts.
    """
    if unit is None:
        return Limits(), None
    known = ledger.declaration(table)
    if known is not None:
        return limits_in(known)
    opened = account in ledger.accounts()
    amount = None if budget is None else split(budget)[0]
    raise missing_limits(ledger.account(account).budget if opened else amount)


def missing_limits(budget: Loss | None) -> InvalidParameter:
    """Returns the refusal of a table of people's rows without limits, with both ways to give them."""
    price = "" if budget is None else f", epsilon {float(limits_epsilon(budget)):g}"
    hint = (
        "Declare how many rows of one person count, max_rows=20, and in how many groups, max_groups=5. These numbers "
        'are public, so they must not be read from the data. Or write limits="private": the limits are then found '
        f"before the first query, for 2 % of the budget{price}. limits_epsilon= is another price."
    )
    return InvalidParameter("limits", None, "to be given: one person can have several rows", hint)


# ------------------------------------------------------------------------------------- the release that finds limits
#
# The owner of a ledger can tell from the ledger alone which release that is and at which price, so that a process which
# reads data cannot have another one charged in its place.

SHARE = Fraction(1, 50)
"""Of an account's budget, for limits whose price a steward does not name."""


LIMITS = "limits:"
"""How the replay keys of limits begin; those of answers begin otherwise."""


def limits_epsilon(budget: Loss) -> Fraction:
    """Returns the epsilon of limits that are found for a fiftieth of a budget.

    >>> limits_epsilon(PureDP(10)), limits_epsilon(ZCDP("0.5"))
    (Fraction(1, 5), Fraction(141421, 1000000))
    """
    if isinstance(budget, PureDP | ApproxDP):
        return Fraction(at_most(SHARE * budget.epsilon))
    rho = budget.rho if isinstance(budget, ZCDP) else Fraction(0)
    return Fraction(at_most(root_below(2 * SHARE * rho)))  # epsilon-DP is epsilon^2 / 2-zCDP


def declared_price(declaration: str, budget: Loss) -> Fraction | None:
    """Returns the epsilon of limits that a declaration leaves to a release; None if it declares them.

    >>> declared_price('{"limits":{"private":"1/10"}}', PureDP(1)), declared_price('{"limits":[3,1]}', PureDP(1))
    (Fraction(1, 10), None)
    """
    limits: Any = parse_canonical(declaration).get("limits")
    if not isinstance(limits, dict):
        return None
    return limits_epsilon(budget) if limits["private"] is None else Fraction(limits["private"])


def limits_place(declaration: str, version: str, neighbours: str) -> str:
    """Returns the replay key of the limits of a table: other bounds or keys leave them as they are."""
    declared = parse_canonical(declaration)
    about = [declared.get("name"), declared.get("unit"), declared.get("limits"), version, neighbours]
    return f"{LIMITS}{sha256(canonical(about).encode()).hexdigest()}"


def attempts(place: str) -> tuple[str, ...]:
    """Returns the idempotency keys under which the limits of a place may be charged, one after the other fails."""
    return (place, *(f"{place}:{again}" for again in range(1, MOST_RUNS)))


def is_limits_place(place: str, declaration: str, versions: Iterable[str], neighbours: str) -> bool:
    """Returns whether a replay key is that of the limits of a table, in one of its versions."""
    return any(place == limits_place(declaration, version, neighbours) for version in versions)
