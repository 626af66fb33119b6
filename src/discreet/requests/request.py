"""A request: what a caller asks for, with normal values, and the kinds of its arguments.

Who asks is a `Caller`, and no field of a request. A kind says how an argument is read from Python or JSON, and how it
is written as JSON. A face (the command line, HTTP, the wire, the page) has one table from these kinds to its own types.
`check_kinds` checks such a table when the face is imported, so that no kind can be forgotten.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import MISSING, Field, field, fields
from enum import Enum
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar, get_args, get_type_hints

from discreet import check
from discreet.dataclass import dataclass
from discreet.errors import InternalError, InvalidParameter
from discreet.hint_text import Hint
from discreet.ledger.serialization import write_budget
from discreet.plan.model.nodes import Question
from discreet.plan.model.schema import Limits
from discreet.privacy import AnyBudget, ApproxDP, Budget, PureDP
from discreet.privacy.amounts import below_one
from discreet.privacy.budget import BUDGET_PARTS
from discreet.requests import FACES
from discreet.requests.domain_arguments import read_domain, read_domains, write_domain, write_domains
from discreet.requests.learner_arguments import PARTS, read_learner, write_learner

Entry = TypeVar("Entry")


class ArgumentKind(Enum):
    """What an argument is, whatever face it came through."""

    SQL = "one SELECT, or a plan of one"
    NAME = "the name of something"
    NAMES = "several names"
    TEXT = "words for people, perhaps none"
    AMOUNT = "an exact number above 0"
    SHARE = "an exact number between 0 and 1"
    DELTA = "an exact number of at least 0 and below 1"
    PRICE = "an epsilon, or a budget"
    COUNT = "a whole number of at least 1"
    LIMITS = "groups and rows per unit, or 'choose'"
    VALUE = "one value of a column"
    VALUES = "values of parameters, listed or by name"
    LEARNER = "a learner that is not fitted"
    GENERATOR = "a generator of synthetic rows"
    DOMAIN = "public values of columns"
    DOMAINS = "public values of columns, by table"
    RULES = "combinations of values that cannot occur"
    BUDGET = "an epsilon, an epsilon and a delta, or a rho"


CANDIDATES = tuple(Fraction(text) for text in ("0.01", "0.03", "0.1", "0.3", "1", "3"))
"""The epsilons that are compared by default: from hardly anything learned to hardly anything hidden."""


@dataclass(frozen=True, slots=True)
class Arg:
    """An argument of a request, as the faces show it.

    Attributes:
        kind: what it is.
        help: one sentence; `{epsilon:0.1}` in it is spelled by the face that prints it.
        faces: which faces offer it.
        many: whether it is a list of that kind.
        most: the largest number that is accepted, of counts.
        example: a value as text, for hints.
        option: what the command line calls it, if not by its own name.
        choices: the words that are accepted, of names.
        spends: whether it says how much may be spent, so that a service holds it to its least epsilon.
    """

    kind: ArgumentKind
    help: str
    faces: frozenset[str] = field(default=FACES, kw_only=True)
    many: bool = field(default=False, kw_only=True)
    most: int | None = field(default=None, kw_only=True)
    example: str = field(default="", kw_only=True)
    option: str = field(default="", kw_only=True)
    choices: tuple[str, ...] = field(default=(), kw_only=True)
    spends: bool = field(default=False, kw_only=True)


def check_kinds(table: Mapping[ArgumentKind, Entry], face: str) -> Mapping[ArgumentKind, Entry]:
    """Returns the table of a face, which has an entry for every kind.

    Raises:
        InternalError: if a kind is missing.
    """
    missing = [kind.name for kind in ArgumentKind if kind not in table]
    if missing:
        raise InternalError(f"The face {face!r} has no type for {', '.join(missing)}.")
    return table


def read_argument(name: str, value: object, arg: Arg) -> Any:
    """Returns an argument as its normal value.

    Raises:
        InvalidParameter: naming the argument, if it is outside its domain.
    """
    if not arg.many:
        return _READ[arg.kind](name, value, arg)
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise InvalidParameter(name, type(value).__name__, f"to be a list of {name}", "Pass it in a list.")
    return tuple(_READ[arg.kind](name, one, arg) for one in value)


def write_argument(name: str, value: Any, arg: Arg) -> Any:
    """Returns a normal value as JSON.

    Raises:
        InvalidParameter: if it cannot leave this process: a plan, or a learner with code in it.
    """
    write = _WRITE.get(arg.kind, _plain)
    return [write(name, one) for one in value] if arg.many else write(name, value)


# -------------------------------------------------------------------------------------------------------- reading


def _sql(name: str, value: object, arg: Arg) -> Any:
    if not arg.many and not isinstance(value, str | Question):  # of many, the curator names the place
        raise InvalidParameter(name, type(value).__name__, "to be a text", "Pass one SELECT, between quotes.")
    return value


def _name(name: str, value: object, arg: Arg) -> str:
    text = getattr(value, "value", value) if isinstance(value, Enum) else value
    if arg.choices and text not in arg.choices:
        raise InvalidParameter(name, value, f"to be one of {', '.join(arg.choices)}")
    return check.instance(str, **{name: text})


def _generator(name: str, value: object, arg: Arg) -> Any:
    """Reads a generator, or the name of one in upper or lower case."""
    return _name(name, value.lower(), arg) if isinstance(value, str) else value


def _names(name: str, value: object, _: Arg) -> tuple[str, ...]:
    listed = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Iterable) else (value,)
    return tuple(check.instance(str, **{name: one}) for one in listed)


def _count(name: str, value: object, arg: Arg) -> int:
    return check.integer(at_least=1, at_most=arg.most, **{name: value})


def _price(name: str, value: object, _: Arg) -> Fraction | PureDP | ApproxDP:
    return value if isinstance(value, PureDP | ApproxDP) else check.positive(floats="decimal", **{name: value})


@contextmanager
def named_within(name: str) -> Iterator[None]:
    """Makes an error about a part of an argument name both, as "cap.epsilon"."""
    try:
        yield
    except InvalidParameter as error:
        raise InvalidParameter(f"{name}.{error.name}", error.value, error.condition, error.hint) from None


def _limits(name: str, value: object, _: Arg) -> Limits | str:
    if isinstance(value, Limits) or value == "choose":
        return value
    if isinstance(value, Mapping) and value.keys() <= {"groups", "rows"}:
        with named_within(name):
            return Limits(**value)
    hint = 'Pass limits of groups and rows, e.g. {"groups": 2, "rows": 5}, or have them chosen: "choose".'
    raise InvalidParameter(name, value, "to be limits of groups and rows, or 'choose'", hint)


def _value(name: str, value: object, _: Arg) -> Any:
    if not isinstance(value, int | float | str | dt.date):
        raise InvalidParameter(name, value, "to be a value of a column", "Pass a text, a number or a date.")
    return value


def _values(name: str, value: object, _: Arg) -> Any:
    if isinstance(value, str | bytes) or not isinstance(value, Mapping | Sequence):
        hint = 'Pass e.g. [40, "A"] for ? and $1, or {"age": 40} for :age.'
        raise InvalidParameter(name, type(value).__name__, "to be a list or an object", hint)
    return read_parameters(value)


def _rules(name: str, value: object, _: Arg) -> Any:
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        hint = 'Pass e.g. [{"sex": ["M"], "pregnant": [true]}].'
        raise InvalidParameter(name, value, "to be a list of combinations", hint)
    return value if isinstance(value, Mapping) else tuple(value)


_LONGEST_AMOUNT = 100  # characters; an exact amount needs fewer


def _budget(name: str, value: object, _: Arg) -> AnyBudget:
    return read_budget(value, name=name) if isinstance(value, Mapping) else _loss(name, value)


def _loss(name: str, value: object) -> AnyBudget:
    if not isinstance(value, AnyBudget):
        raise InvalidParameter(name, value, "to be a budget", "Build it with Budget(...), e.g. Budget(epsilon=1).")
    return value


def read_budget(given: object, *, name: str = "budget") -> AnyBudget:
    """Returns the budget or cap that JSON describes.

    Raises:
        InvalidParameter: if it is no object of exact amounts that go together.

    >>> print(read_budget({"epsilon": "2", "delta": "1e-6"}), "|", read_budget({"rho": 0.5}))
    epsilon=2, delta=1e-06 | rho=0.5
    """
    example = 'Pass e.g. {"epsilon": "2", "delta": "1e-6"} or {"rho": "0.1"}.'
    if not isinstance(given, Mapping) or not given:
        raise InvalidParameter(name, given, "to be an object of amounts", example)
    for key, value in given.items():
        if key not in BUDGET_PARTS:
            raise InvalidParameter(f"{name}.{key}", value, "to be epsilon, delta, rho, per, zone, start or of", example)
        if isinstance(value, str) and len(value) > _LONGEST_AMOUNT:
            raise InvalidParameter(f"{name}.{key}", f"{len(value)} characters", "to be a number", example)
    with named_within(name):
        return Budget(**given)


_READ = check_kinds(
    {
        ArgumentKind.SQL: _sql,
        ArgumentKind.NAME: _name,
        ArgumentKind.NAMES: _names,
        ArgumentKind.TEXT: lambda name, value, _: check.instance(str, **{name: value}),
        ArgumentKind.AMOUNT: lambda name, value, _: check.positive(floats="decimal", **{name: value}),
        ArgumentKind.SHARE: lambda name, value, _: check.probability(floats="decimal", **{name: value}),
        ArgumentKind.DELTA: lambda name, value, _: below_one(**{name: value}),
        ArgumentKind.PRICE: _price,
        ArgumentKind.COUNT: _count,
        ArgumentKind.LIMITS: _limits,
        ArgumentKind.VALUE: _value,
        ArgumentKind.VALUES: _values,
        ArgumentKind.LEARNER: lambda _, value, __: read_learner(value),
        ArgumentKind.GENERATOR: _generator,
        ArgumentKind.DOMAIN: lambda name, value, _: read_domain(name, value),
        ArgumentKind.DOMAINS: lambda name, value, _: read_domains(name, value),
        ArgumentKind.RULES: _rules,
        ArgumentKind.BUDGET: _budget,
    },
    "reading",
)

# -------------------------------------------------------------------------------------------------------- writing


def _plain(_: str, value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        hint = "Plans and objects stay on the machine that made them; pass a text."
        raise InvalidParameter(name, type(value).__name__, "to be a text", hint)
    return value


def _epsilon(name: str, value: Any) -> str:
    if isinstance(value, ApproxDP) and value.delta:
        raise InvalidParameter(name, value, "to have no delta of its own", Hint("Pass epsilons, and {delta}."))
    return str(value.epsilon if isinstance(value, PureDP | ApproxDP) else value)


def _written_limits(_: str, value: Any) -> Any:
    return {"groups": value.groups, "rows": value.rows} if isinstance(value, Limits) else value


_WRITE: Mapping[ArgumentKind, Callable[[str, Any], Any]] = {
    ArgumentKind.SQL: _text,
    ArgumentKind.AMOUNT: lambda _, value: str(value),
    ArgumentKind.SHARE: lambda _, value: str(value),
    ArgumentKind.DELTA: lambda _, value: str(value),
    ArgumentKind.PRICE: _epsilon,
    ArgumentKind.LIMITS: _written_limits,
    ArgumentKind.VALUE: lambda _, value: value.isoformat() if isinstance(value, dt.date) else value,
    ArgumentKind.VALUES: lambda _, value: write_parameters(value),
    ArgumentKind.LEARNER: lambda _, value: write_learner(value),
    ArgumentKind.GENERATOR: _text,
    ArgumentKind.DOMAIN: write_domain,
    ArgumentKind.DOMAINS: write_domains,
    ArgumentKind.BUDGET: lambda _, value: write_budget(value),
}
"""Functions that write the kinds that are not plain data already."""

_TIMES: Mapping[type[dt.date], str] = {dt.datetime: "timestamp", dt.date: "date"}


def write_parameters(given: Sequence[Any] | Mapping[str, Any] | None) -> Any:
    """Returns values of parameters as JSON, in which days and moments say what they are.

    >>> write_parameters([18, dt.date(2026, 3, 1)])
    [18, {'date': '2026-03-01'}]
    """
    return _each(given, lambda value: {_TIMES[type(value)]: value.isoformat()} if type(value) in _TIMES else value)


def read_parameters(written: Sequence[Any] | Mapping[str, Any] | None) -> Any:
    """Returns the values that `write_parameters` wrote.

    Raises:
        InvalidParameter: if something says that it is a day or a moment, and is none.

    >>> read_parameters({"least": 18, "day": {"date": "2026-03-01"}})
    {'least': 18, 'day': datetime.date(2026, 3, 1)}
    """
    return _each(written, _read_parameter)


def _each(given: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(given, Mapping):
        return {name: change(value) for name, value in given.items()}
    return given if given is None else [change(value) for value in given]


def _read_parameter(written: Any) -> Any:
    if not isinstance(written, Mapping):
        return written
    for kind, name in _TIMES.items():
        if set(written) == {name}:
            with suppress(TypeError, ValueError):
                return kind.fromisoformat(written[name])
    hint = 'Pass e.g. {"date": "2026-03-01"} or {"timestamp": "2026-03-01T12:00:00"}.'
    raise InvalidParameter("parameters", "an object", "to be a day or a moment", hint)


R = TypeVar("R")


@dataclass(frozen=True, kw_only=True)
class Request(Generic[R]):
    """A valid request for an R. Its fields hold normal values, so it is built with `of`, or from JSON with `read`."""

    verb: ClassVar[str] = ""

    @classmethod
    def of(cls, **given: object) -> Self:
        """Returns the request of arguments as Python or JSON has them; None is as if it were not given.

        Raises:
            InvalidParameter: if an argument is unknown, missing or outside its domain.
        """
        keyed: Any = cls  # as in `arguments`
        known = _by_name(keyed)
        for name in given:
            if name not in known:
                hint = f"Known: {', '.join(known)}."
                raise InvalidParameter(name, "an argument", f"to be an argument of {cls.verb}", hint)
        values = {n: read_argument(n, v, known[n].arg) for n, v in given.items() if v is not None}
        for argument in known.values():
            if argument.is_required and argument.name not in values:
                raise missing(argument)
        made = cls(**values)
        made.check()
        return made

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Self:
        """Returns the request of a JSON document.

        Raises:
            InvalidParameter: as `of` does.
        """
        given = dict(document)
        for argument in arguments(cls):
            if argument.arg.kind is ArgumentKind.LEARNER:
                given[argument.name] = {part: given.pop(part) for part in PARTS if part in given}
        return cls.of(**given)

    def document(self) -> dict[str, Any]:
        """Returns the arguments that differ from their defaults as JSON.

        Raises:
            InvalidParameter: if one cannot leave this process.
        """
        found: dict[str, Any] = {}
        for argument in arguments(type(self)):
            value = getattr(self, argument.name)
            if value is not None and (argument.is_required or value != argument.default):
                written = write_argument(argument.name, value, argument.arg)
                found |= written if argument.arg.kind is ArgumentKind.LEARNER else {argument.name: written}
        return found

    def check(self) -> None:
        """Refuses combinations of arguments; each argument alone is valid."""


class Argument(NamedTuple):
    """A field of a request, as faces see it.

    Attributes:
        name: of the field.
        arg: its kind and help.
        default: its normal value unless it is given; `MISSING` if it must be.
    """

    name: str
    arg: Arg
    default: Any

    @property
    def is_required(self) -> bool:
        """Returns whether the argument must be given."""
        return self.default is MISSING


def arguments(request: type[Request[Any]]) -> tuple[Argument, ...]:
    """Returns the arguments of a request in their order.

    Raises:
        InternalError: if a field has no kind.
    """
    keyed: Any = request  # mypy doubts that a frozen class is hashable
    return _arguments(keyed)


@cache
def _by_name(request: Any) -> Mapping[str, Argument]:
    return {argument.name: argument for argument in arguments(request)}


@cache
def _arguments(request: Any) -> tuple[Argument, ...]:
    hints = get_type_hints(request, include_extras=True)
    return tuple(_argument(request, each, hints[each.name]) for each in fields(request))


def _argument(request: type[Request[Any]], each: Field[Any], hint: Any) -> Argument:
    found = [arg for arg in get_args(hint) if isinstance(arg, Arg)]
    if len(found) != 1:
        raise InternalError(f"{request.__name__}.{each.name} has no kind.")
    return Argument(each.name, found[0], each.default)


def missing(argument: Argument) -> InvalidParameter:
    """Returns the refusal of a request that lacks an argument."""
    name, example = argument.name, argument.arg.example
    hint = Hint(f"Pass e.g. {{{name}:{example}}}." if example else f"Pass {{{name}}}.")
    return InvalidParameter(name, None, "to be given", hint)
