"""How the ledger writes amounts, units and everything else: one canonical JSON text for each thing, for ever.

Keys are sorted, there are no spaces, and only ASCII is written, so no text holds a line break. A rational is "p/q". A
loss is an object that names its amounts, and the names say which kind it is.

A charge is made while every other process waits, so its sums are kept in the form in which they are written: "p/q" is
the pair (p, q) of whole numbers in lowest terms, added and compared many times faster than a `Fraction`. Everywhere
else an amount is a `Fraction`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache, wraps
from math import gcd
from typing import Any, TypeVar

from discreet import check
from discreet.errors import InternalError, InvalidParameter
from discreet.privacy import ZCDP, AnyBudget, ApproxDP, Loss, PureDP, RenewalSchedule, RenewingBudget, Unit
from discreet.privacy.amounts import LONGEST_SUM, short
from discreet.privacy.budget import split

LONGEST_NAME = 200  # characters of an account, a table, an analyst or a key
LONGEST_TEXT = 1 << 20  # characters of a question, a declaration or a note
SHOWN_DIGITS = 6
NAMES: dict[type[Loss], tuple[str, ...]] = {
    PureDP: ("epsilon",),
    ApproxDP: ("epsilon", "delta"),
    ZCDP: ("rho", "delta"),
}
"""The amounts of a loss in the order of its class."""

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
_DECODER = json.JSONDecoder()


Thing = TypeVar("Thing")
Result = TypeVar("Result")

_MOST_REMEMBERED = 256  # objects that one function remembers


def by_identity(work: Callable[[Thing], Result]) -> Callable[[Thing], Result]:
    """Returns the function, worked out once for each object; objects must not change.

    Each object is kept with its result, so no other can get its identity while it is remembered.
    """
    known: dict[int, tuple[Thing, Result]] = {}

    @wraps(work)
    def find(thing: Thing) -> Result:
        found = known.get(id(thing))
        if found is None:
            if len(known) >= _MOST_REMEMBERED:
                known.clear()
            found = known[id(thing)] = thing, work(thing)
        return found[1]

    return find


def canonical(content: object) -> str:
    """Returns the one JSON text of plain dictionaries, lists, texts, booleans and whole numbers.

    >>> canonical({"b": [1, True], "a": "x"})
    '{"a":"x","b":[1,true]}'
    """
    return _ENCODER.encode(content)


quoted: Callable[[str], str] = json.encoder.encode_basestring_ascii
"""The canonical JSON of a text."""


def parse_canonical(text: str) -> Any:
    """Reads what `canonical` wrote; the text has no space around it to skip.

    >>> parse_canonical('{"a":"x","b":[1,true]}')
    {'a': 'x', 'b': [1, True]}
    """
    return _DECODER.raw_decode(text)[0]


def with_body(header: Mapping[str, Any], body: Mapping[str, Any]) -> str:
    """Returns an answer of two lines, its header and its body, that together are one JSON object.

    >>> print(with_body({"version": 1}, {"noisy": [[7]]}))
    {"version": 1,
    "noisy": [[7]]}
    """
    return f"{json.dumps(header)[:-1]},\n{json.dumps(body)[1:]}"


def read_header(payload: bytes | str) -> dict[str, Any]:
    """Reads the header of an answer, and nothing else of it; of an answer in one line, as all once were, the whole.

    >>> read_header(with_body({"version": 1}, {"noisy": [[7]]}))
    {'version': 1}
    >>> read_header('{"version": 1, "noisy": [[7]]}')
    {'version': 1, 'noisy': [[7]]}
    """
    first, line_break, _ = payload.partition("\n") if isinstance(payload, str) else payload.partition(b"\n")
    text = first if isinstance(first, str) else first.decode()
    return dict(json.loads(_close_header(text) if line_break else text))


def read_body(payload: bytes | str) -> dict[str, Any]:
    """Reads the body of an answer, and nothing else of it; of an answer in one line the whole.

    >>> read_body(with_body({"version": 1}, {"noisy": [[7]]}))
    {'noisy': [[7]]}
    """
    first, line_break, rest = (payload if isinstance(payload, str) else payload.decode()).partition("\n")
    return dict(json.loads("{" + rest if line_break else first))


def _close_header(header: str) -> str:
    return header.removesuffix(",") + "}"


def write_loss(loss: Loss) -> dict[str, str]:
    """Writes a loss as its amounts, by name.

    >>> write_loss(ApproxDP(2, 1e-6))
    {'epsilon': '2/1', 'delta': '1/1000000'}
    """
    if type(loss) not in NAMES:
        raise InvalidParameter("loss", loss, "to be a PureDP, ApproxDP or ZCDP", "Build it with Budget(...).")
    return {name: write_ratio(getattr(loss, name)) for name in NAMES[type(loss)]}


def read_loss(fields: dict[str, str]) -> Loss:
    """Reads the loss that `write_loss` wrote.

    >>> read_loss({"epsilon": "1/10"}) == PureDP("0.1")
    True
    """
    return _loss(fields.get("epsilon"), fields.get("rho"), fields.get("delta"))


def write_budget(budget: AnyBudget) -> dict[str, str]:
    """Writes a budget as its amounts, and the calendar by which it renews if it has one.

    >>> from discreet.privacy import Budget
    >>> write_budget(Budget(epsilon=2, per="month"))
    {'epsilon': '2/1', 'per': 'month', 'start': '2001-01-01', 'zone': 'UTC'}
    """
    amount, schedule = split(budget)
    return {**write_loss(amount), **({} if schedule is None else schedule.write())}


def read_budget(fields: dict[str, str]) -> AnyBudget:
    """Reads the budget that `write_budget` wrote."""
    amount = read_loss(fields)
    return RenewingBudget(amount, RenewalSchedule.read(fields)) if "per" in fields else amount


@lru_cache(maxsize=256)
def _loss(epsilon: str | None, rho: str | None, delta: str | None) -> Loss:
    """Budgets are read with every charge, and are mostly the same."""
    if rho is not None and delta is not None:
        return ZCDP(ratio(rho), ratio(delta))
    if epsilon is None:
        raise InternalError("A loss in the ledger names no amount.")
    return PureDP(ratio(epsilon)) if delta is None else ApproxDP(ratio(epsilon), ratio(delta))


@by_identity
def loss_text(loss: Loss) -> str:
    """Returns the canonical JSON of `write_loss`; written out for speed, since every charge writes several.

    >>> loss_text(ApproxDP(2, 1e-6)) == canonical(write_loss(ApproxDP(2, 1e-6)))
    True
    """
    return amounts_text(type(loss), [getattr(loss, name).as_integer_ratio() for name in NAMES[type(loss)]])


def amounts_text(currency: type[Loss], amounts: Sequence[tuple[int, int]]) -> str:
    """Returns the canonical JSON of the loss with these amounts, in the order of its class."""
    top, bottom = amounts[0]
    first = f'"{NAMES[currency][0]}":"{top}/{bottom}"'
    if len(amounts) == 1:
        return f"{{{first}}}"
    return f'{{"delta":"{amounts[1][0]}/{amounts[1][1]}",{first}}}'


def write_unit(unit: Unit) -> dict[str, Any]:
    """Writes a unit of privacy as JSON fields."""
    return {"name": unit.name, "columns": list(unit.columns)}


def read_unit(fields: dict[str, Any]) -> Unit:
    """Reads the unit that `write_unit` wrote."""
    return Unit(fields["name"], fields["columns"])


def name(**parameter: object) -> str:
    """Checks a name of an account, table, analyst or key: short, printable, on one line.

    Raises:
        InvalidParameter: otherwise; the message shows no more than the kind of mistake, since a key may be a secret.

    >>> name(account="patients")
    'patients'
    """
    ((what, value),) = parameter.items()
    if not isinstance(value, str):
        raise InvalidParameter(what, type(value).__name__, "to be a text")
    if not 0 < len(value) <= LONGEST_NAME or not value.isprintable() or value != value.strip():
        raise InvalidParameter(
            what,
            f"{len(value)} characters",
            f"to be 1 to {LONGEST_NAME} printable characters without spaces around them",
        )
    return value


def text(**parameter: object) -> str:
    """Checks a longer text, such as a question in canonical form.

    Raises:
        InvalidParameter: if it is no text or absurdly long; the message never repeats it.
    """
    ((what, value),) = parameter.items()
    if not isinstance(value, str):
        raise InvalidParameter(what, type(value).__name__, "to be a text")
    if len(value) > LONGEST_TEXT:
        raise InvalidParameter(what, f"{len(value)} characters", f"to have at most {LONGEST_TEXT} characters")
    return value


def at_most(amount: Fraction) -> str:
    """Returns an amount that may still be asked for, in six digits at most and never above the true one.

    >>> at_most(Fraction(1, 5)), at_most(Fraction(2, 3))
    ('0.2', '0.666666')
    """
    rounding = Context(prec=SHOWN_DIGITS, rounding=ROUND_FLOOR)
    return f"{rounding.divide(Decimal(amount.numerator), Decimal(amount.denominator)):g}"


def write_ratio(amount: Fraction) -> str:
    """Returns an amount as 'p/q'."""
    return f"{amount.numerator}/{amount.denominator}"


def ratio(text: str) -> Fraction:
    """Returns the rational that is written as "p/q".

    >>> ratio("1/10")
    Fraction(1, 10)
    """
    top, bar, bottom = text.partition("/")
    if not bar:
        raise InternalError("An amount in the ledger is not written as 'p/q'.")
    return Fraction(int(top), int(bottom))


Amount = tuple[int, int]
"""Numerator and denominator in lowest terms; no amount is negative."""

Amounts = tuple[Amount, ...]
"""A loss as its amounts in the order of its class: (epsilon,), (epsilon, delta) or (rho, delta)."""

ZERO: Amount = (0, 1)
_SMALLEST = 10**check.LARGEST_EXPONENT  # the inverse of the smallest amount there is


def pair_of(number: Fraction) -> Amount:
    """Returns a rational as a pair.

    >>> pair_of(Fraction(3, 6))
    (1, 2)
    """
    return number.numerator, number.denominator


def add_pairs(one: Amount, other: Amount) -> Amount:
    """Returns the sum, exact, or a little more if the numbers have become absurdly long (`privacy.amounts.short`).

    >>> add_pairs((1, 6), (1, 3))
    (1, 2)
    """
    more, bottom = other
    if not more:
        return one
    top, below = one
    if bottom == below:
        top += more
    else:
        top, bottom = top * bottom + more * below, below * bottom
    common = gcd(top, bottom)
    if common != 1:
        top, bottom = top // common, bottom // common
    return (top, bottom) if bottom.bit_length() <= LONGEST_SUM else pair_of(short(Fraction(top, bottom)))


def repeat_pair(one: Amount, count: int) -> Amount:
    """Returns so many times an amount.

    >>> repeat_pair((1, 6), 3)
    (1, 2)
    """
    return pair_of(Fraction(*one) * count)


def is_at_most(one: Amount, limit: Amount) -> bool:
    """Returns whether an amount is within a limit.

    >>> is_at_most((1, 3), (1, 3)), is_at_most((1, 3), (1, 4))
    (True, False)
    """
    return one[0] * limit[1] <= limit[0] * one[1]


def are_within(spent: Amounts, limits: Amounts) -> bool:
    """Returns whether each amount is within its limit.

    >>> are_within(((1, 3), (0, 1)), ((1, 3), (0, 1))), are_within(((1, 3), (1, 9)), ((1, 2), (1, 10)))
    (True, False)
    """
    (top, bottom), (most, below) = spent[0], limits[0]
    return top * below <= most * bottom and (len(spent) == 1 or is_at_most(spent[1], limits[1]))


def remainder(limit: Amount, spent: Amount) -> Amount:
    """Returns the rest of a limit; never negative, and less than the smallest amount there is counts as nothing.

    >>> remainder((1, 2), (1, 3)), remainder((1, 3), (1, 2))
    ((1, 6), (0, 1))
    """
    if not spent[0] and limit[1] <= _SMALLEST:
        return limit
    top, bottom = limit[0] * spent[1] - spent[0] * limit[1], limit[1] * spent[1]
    if top <= 0 or (bottom > _SMALLEST and top * _SMALLEST < bottom):
        return ZERO
    common = gcd(top, bottom)
    return top // common, bottom // common


def remainders(limits: Amounts, spent: Amounts) -> Amounts:
    """Returns the rest of each limit.

    >>> remainders(((1, 2), (1, 9)), ((1, 3), (0, 1)))
    ((1, 6), (1, 9))
    """
    first = remainder(limits[0], spent[0])
    return (first,) if len(limits) == 1 else (first, remainder(limits[1], spent[1]))


def write_pairs(amounts: Amounts) -> str:
    """Writes amounts with spaces between them.

    >>> write_pairs(((1, 2), (0, 1)))
    '1/2 0/1'
    """
    top, bottom = amounts[0]
    if len(amounts) == 1:
        return f"{top}/{bottom}"
    return f"{top}/{bottom} {amounts[1][0]}/{amounts[1][1]}"


def read_pairs(text: str) -> Amounts:
    """Reads the amounts that `write_pairs` wrote.

    Raises:
        InternalError: if the text was written by something else.
    """
    try:
        return tuple([_pair(*part.split("/")) for part in text.split()])
    except (TypeError, ValueError):
        raise InternalError("An amount in the ledger is not written as 'p/q'.") from None


def _pair(top: str, bottom: str) -> Amount:
    return int(top), int(bottom)
