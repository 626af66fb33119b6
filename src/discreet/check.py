"""Parameters made exact and held to their domain, with one error template.

Each function takes one keyword, the parameter's own name, and returns it as an exact number:
``check.positive(epsilon=0.1)`` is ``Fraction(1, 10)``. A float declared by a person means its shortest decimal (0.1 is
one tenth); where a float must be taken as the binary number it is, such as the scale of a sampler, say
``floats="exact"``.
"""

from __future__ import annotations

import datetime as dt
import math
import numbers
import re
import unicodedata
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Literal, TypeVar

from discreet.errors import InvalidParameter
from discreet.hint_text import Hint

Number = int | float | str | Fraction | Decimal
"""The types of a numeric parameter; numpy's real scalars count as int or float."""

Floats = Literal["decimal", "exact"]

T = TypeVar("T")

LARGEST_EXPONENT = 300  # magnitudes outside 1e-300 .. 1e300 are mistakes, and floats could not hold their ratios
LARGEST_BITS = 1 << 13  # of a numerator or denominator; a number longer than that is an attack, not a parameter
LARGEST_DIGITS = LARGEST_BITS * 3 // 10
_LARGEST = 10**LARGEST_EXPONENT
_NUMBER = "a number: int, float, Fraction, Decimal or text like '0.1' or '1/3'"
_RATIO = re.compile(r"\s*[+-]?\d{1,100}\s*/\s*\d{1,100}\s*")


def rational(*, floats: Floats = "decimal", **parameter: object) -> Fraction:
    """Returns the parameter as an exact rational.

    >>> rational(epsilon=0.1), rational(epsilon="1/3"), rational(scale=0.5, floats="exact")
    (Fraction(1, 10), Fraction(1, 3), Fraction(1, 2))

    Raises:
        InvalidParameter: for booleans, NaN, infinities, other types, and magnitudes no budget or scale can have.
    """
    name, value = _only(parameter)
    result = _convert(name, value, floats)
    top, bottom = abs(result.numerator), result.denominator
    if top and not (bottom <= top * _LARGEST and top <= bottom * _LARGEST):  # in integers: fractions are slow
        raise InvalidParameter(name, value, "between 1e-300 and 1e300 in size", "Use a number within this range.")
    if max(top.bit_length(), bottom.bit_length()) > LARGEST_BITS:
        raise InvalidParameter(name, "a fraction of thousands of digits", "to have fewer digits", "Round it first.")
    return result


def positive(*, floats: Floats = "decimal", **parameter: object) -> Fraction:
    """Returns the parameter as a rational above zero.

    >>> positive(epsilon=-1)
    Traceback (most recent call last):
    discreet.errors.InvalidParameter: Expected epsilon=-1 > 0. Pass a positive number, e.g. epsilon=0.1.
    """
    name, value = _only(parameter)
    result = rational(floats=floats, **parameter)
    if result.numerator <= 0:
        raise InvalidParameter(name, value, "> 0", Hint(f"Pass a positive number, e.g. {{{name}:0.1}}."))
    return result


def not_negative(*, floats: Floats = "decimal", **parameter: object) -> Fraction:
    """Returns the parameter as a rational of at least zero; minus zero is refused as a sign mistake."""
    name, value = _only(parameter)
    result = rational(floats=floats, **parameter)
    minus_zero = isinstance(value, float) and value == 0 and math.copysign(1, value) < 0
    if result < 0 or minus_zero:
        raise InvalidParameter(name, value, ">= 0", Hint(f"Pass zero or a positive number, e.g. {{{name}:0.1}}."))
    return result


def probability(*, floats: Floats = "decimal", **parameter: object) -> Fraction:
    """Returns the parameter as a rational strictly between 0 and 1 (a delta, a sampling rate, a confidence)."""
    name, value = _only(parameter)
    result = rational(floats=floats, **parameter)
    if not 0 < result < 1:
        raise InvalidParameter(name, value, "strictly between 0 and 1")
    return result


def share(*, floats: Floats = "decimal", **parameter: object) -> Fraction:
    """Returns the parameter as a rational from 0 to 1, the ends included."""
    name, value = _only(parameter)
    result = rational(floats=floats, **parameter)
    if not 0 <= result <= 1:
        raise InvalidParameter(name, value, "between 0 and 1")
    return result


def integer(*, at_least: int | None = None, at_most: int | None = None, **parameter: object) -> int:
    """Returns the parameter as a Python int within limits; 3.0 and True are refused, numpy integers are taken.

    >>> integer(count=0, at_least=1)
    Traceback (most recent call last):
    discreet.errors.InvalidParameter: Expected count=0 >= 1.
    """
    name, value = _only(parameter)
    if type(value) is not int and (_is_bool(value) or not isinstance(value, numbers.Integral)):
        raise InvalidParameter(
            name, value, "to be a whole number", Hint(f"Pass an int, e.g. {{{name}:{at_least or 1}}}.")
        )
    result = int(value)
    if at_least is not None and result < at_least:
        raise InvalidParameter(name, value, f">= {at_least}")
    if at_most is not None and result > at_most:
        raise InvalidParameter(name, value, f"<= {at_most}")
    return result


_STEERING = ("Cc", "Cs", "Zl", "Zp")  # controls, halves of a surrogate pair, separators of lines and paragraphs
_BIDIRECTIONAL = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_INVISIBLE = (_BIDIRECTIONAL - {"\u061c"}) | {"\ufeff"}  # the one taken out belongs to Arabic texts


def steers(character: str) -> bool:
    r"""Returns whether a character controls a terminal or the direction of text, instead of being read.

    >>> steers("\x1b"), steers("\u202e"), steers("\u00e9")
    (True, True, False)
    """
    return character in _BIDIRECTIONAL or unicodedata.category(character) in _STEERING


def is_hidden(character: str) -> bool:
    r"""Returns whether a character cannot be seen: none may stand in a question or in its values, but for white space.

    >>> is_hidden("\u202e"), is_hidden("\n"), is_hidden("\u00e9")
    (True, False, False)
    """
    odd = character in _INVISIBLE or unicodedata.category(character) in ("Cc", "Cs", "Cn", "Co")
    return odd and character not in "\t\r\n"


def spelled_out(text: str) -> str:
    r"""Returns a text with characters that steer a terminal spelled out.

    >>> spelled_out("A\x1b[31m")
    'A\\x1b[31m'
    """
    return "".join(ascii(c)[1:-1] if steers(c) else c for c in text)


def label(**parameter: object) -> str:
    r"""Returns the parameter as a text that is shown as it is: without control characters and marks of direction.

    >>> label(name="visits\x1b[2J")
    Traceback (most recent call last):
    discreet.errors.InvalidParameter: Expected name='visits\x1b[2J' to have no control characters. Delete them.
    """
    name, value = _only(parameter)
    text = instance(str, **{name: value})
    if any(map(steers, text)):
        raise InvalidParameter(name, value, "to have no control characters", "Delete them.")
    return text


def limits(**parameter: object) -> tuple[Fraction, Fraction]:
    """Returns the parameter as public limits (low, high), low below high.

    >>> limits(bounds=None)
    Traceback (most recent call last):
    discreet.errors.InvalidParameter: Expected bounds=None to be a pair (low, high). Pass public limits, e.g. \
bounds=(0, 100); they are never read from the data.
    """
    name, value = _only(parameter)
    hint = f"Pass public limits, e.g. {name}=(0, 100); they are never read from the data."
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise InvalidParameter(name, value, "to be a pair (low, high)", hint)
    low, high = (rational(**{name: bound}) for bound in value)
    if low >= high:
        raise InvalidParameter(name, f"({value[0]}, {value[1]})", "to have low < high", hint)
    return low, high


def instance(kind: type[T], **parameter: object) -> T:
    """Returns the parameter, if it is of the wanted class."""
    name, value = _only(parameter)
    if not isinstance(value, kind):
        raise InvalidParameter(name, value, f"to be a {kind.__name__}")
    return value


def day(**parameter: object) -> dt.date | None:
    """Returns the parameter, if it is a date without a time, or None.

    >>> day(today=dt.date(2026, 1, 31))
    datetime.date(2026, 1, 31)
    """
    name, value = _only(parameter)
    if value is None or (isinstance(value, dt.date) and not isinstance(value, dt.datetime)):
        return value
    raise InvalidParameter(name, value, "to be a date", "Pass datetime.date(2026, 1, 31), without a time.")


def _only(parameter: dict[str, object]) -> tuple[str, object]:
    ((name, value),) = parameter.items()
    return name, value


def _is_bool(value: object) -> bool:
    return isinstance(value, bool) or type(value).__name__ in ("bool_", "bool")


def _convert(name: str, value: object, floats: Floats) -> Fraction:
    if type(value) is Fraction:
        return value
    if _is_bool(value):
        raise InvalidParameter(name, value, f"to be {_NUMBER}", "True and False are not amounts.")
    if isinstance(value, numbers.Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, str) and _RATIO.fullmatch(value):
        return _ratio(name, value)
    if isinstance(value, numbers.Real | Decimal | str):
        return _finite(name, value, floats)
    raise InvalidParameter(name, value, f"to be {_NUMBER}")


def _ratio(name: str, text: str) -> Fraction:
    top, bottom = text.split("/")
    if int(bottom) == 0:
        raise InvalidParameter(name, text, "to have a denominator other than 0")
    return Fraction(int(top), int(bottom))


def _finite(name: str, value: numbers.Real | Decimal | str, floats: Floats) -> Fraction:
    if isinstance(value, numbers.Real) and floats == "exact":
        number = float(value)
        if math.isfinite(number):
            return Fraction(number)
    try:
        decimal = Decimal(repr(float(value)) if isinstance(value, numbers.Real) else value)
    except (InvalidOperation, OverflowError):
        raise InvalidParameter(name, value, f"to be {_NUMBER}") from None
    if not decimal.is_finite():
        raise InvalidParameter(name, value, "to be finite", "NaN and infinity are not amounts.")
    if decimal and abs(decimal.adjusted()) > LARGEST_EXPONENT:  # before the exponent is written out as digits
        raise InvalidParameter(name, value, "between 1e-300 and 1e300 in size", "Use a number within this range.")
    if len(decimal.as_tuple().digits) > LARGEST_DIGITS:  # before the time for a common divisor is spent
        raise InvalidParameter(name, "a number of thousands of digits", "to have fewer digits", "Round it first.")
    return Fraction(decimal)


def assign(target: object, **fields: object) -> None:
    """Sets the fields of a frozen object while it is being built, and never later.

    Our frozen classes write their own ``__init__`` because it takes any `check.Number` and keeps a Fraction: the
    signature then says what may be passed and the field says what is kept.
    """
    for name, value in fields.items():
        object.__setattr__(target, name, value)
