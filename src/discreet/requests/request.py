"""A request: what a caller asks for, with normal values; who asks is a `Caller`, and no field of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from functools import cache
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar, get_args, get_type_hints

from discreet.dataclass import dataclass
from discreet.errors import InternalError, InvalidParameter
from discreet.hint_text import Hint
from discreet.requests.argument_kinds import Arg, ArgumentKind, read_argument, write_argument
from discreet.requests.learner_arguments import PARTS

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
        known = {argument.name: argument for argument in arguments(cls)}
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
