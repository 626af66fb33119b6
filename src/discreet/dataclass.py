"""Dataclasses whose methods are made when they are first needed.

The standard library writes and compiles six functions for each class when its module is imported, which took a third of
the time of a short command. Here fields are those of the standard library (`fields`, `replace` and `asdict` work), the
methods that compare, hash, show and freeze need no compiling, and ``__init__`` is compiled once there are several
instances: a short command makes one or two of most classes.
"""

from __future__ import annotations

import dataclasses
import inspect
from abc import update_abstractmethods
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from functools import partial
from operator import attrgetter
from reprlib import recursive_repr
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # type checkers see the one of the standard library
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - exported
else:

    def dataclass(
        cls: type | None = None,
        /,
        *,
        init: bool = True,
        repr: bool = True,  # noqa: A002 - as the standard library calls it
        eq: bool = True,
        frozen: bool = False,
        kw_only: bool = False,
        slots: bool = False,
    ) -> Any:
        """Makes a dataclass, as `dataclasses.dataclass` does with the same arguments.

        >>> @dataclass(frozen=True, slots=True)
        ... class Point:
        ...     x: int
        ...     y: int = 0
        >>> Point(1), dataclasses.replace(Point(1), y=2), Point(1) == Point(1, 0), len({Point(1), Point(1, 0)})
        (Point(x=1, y=0), Point(x=1, y=2), True, 1)
        """
        if cls is None:
            return partial(dataclass, init=init, repr=repr, eq=eq, frozen=frozen, kw_only=kw_only, slots=slots)
        made = _with_fields(cls, frozen=frozen, kw_only=kw_only, slots=slots)
        if init:
            _add(made, "__init__", _first_init(made, frozen=frozen))
        if repr:
            _add(made, "__repr__", _repr(made))
        if eq:
            _add_comparison(made, frozen=frozen)
        if frozen:
            _freeze(made, slots=slots)
        return made


# --------------------------------------------------------------------------------------------------------------- fields


def _with_fields(cls: type, *, frozen: bool, kw_only: bool, slots: bool) -> Any:
    """Gives a class its fields, as the standard library does, which looks longer at each of them."""
    kinds = vars(cls).get("__annotations__", {})
    if any("InitVar" in str(kind) or "KW_ONLY" in str(kind) for kind in kinds.values()):
        raise TypeError(f"The fields of {cls.__name__} are of kinds that only the standard library's dataclass knows.")
    every: dict[str, Any] = {}
    for base in cls.__mro__[-1:0:-1]:
        inherited = vars(base).get("__dataclass_fields__")
        if inherited is not None and base.__dataclass_params__.frozen and not frozen:  # type: ignore[attr-defined]
            raise TypeError(f"The class {cls.__name__} is non-frozen, and {base.__name__}, above it, is frozen.")
        every |= inherited or {}
    every |= {name: _own_field(cls, name, kind, kw_only=kw_only) for name, kind in kinds.items()}
    unknown = [name for name, value in vars(cls).items() if isinstance(value, Field) and name not in kinds]
    if unknown:
        raise TypeError(f"The field {unknown[0]!r} of {cls.__name__} has no type.")
    cls.__dataclass_fields__ = every  # type: ignore[attr-defined]
    cls.__dataclass_params__ = _PARAMETERS[frozen]  # type: ignore[attr-defined]
    _add_names(cls)
    made = _add_slots(cls) if slots else cls
    return update_abstractmethods(made)


def _own_field(cls: type, name: str, kind: Any, *, kw_only: bool) -> Any:
    """Returns a field of a class, and puts its default, or nothing, where it was written."""
    default = getattr(cls, name, MISSING)
    if isinstance(default, Field):
        one: Any = default
        if one.default is MISSING:
            delattr(cls, name)
        else:
            setattr(cls, name, one.default)
    else:
        one = dataclasses.field(default=MISSING if isinstance(default, MemberDescriptorType) else default)
    one.name, one.type = name, kind
    one._field_type = _OF_CLASS if str(kind).startswith(("ClassVar", "typing.ClassVar")) else _OF_INSTANCE
    if one.kw_only is MISSING:
        one.kw_only = kw_only
    if one.default.__class__.__hash__ is None:
        raise ValueError(f"The default of {cls.__name__}.{name} can change: use a default_factory.")
    return one


def _add_names(cls: type) -> None:
    """Gives a class the description of its fields that `match` and documentation use."""
    if "__match_args__" not in vars(cls):
        cls.__match_args__ = tuple(one.name for one in fields(cls) if one.init and not one.kw_only)  # type: ignore[attr-defined, misc]
    if not cls.__doc__:
        cls.__doc__ = f"{cls.__name__}()"


def _add_slots(cls: type) -> type:
    """Returns a class anew, with a slot for each field that has none in its bases."""
    if "__slots__" in vars(cls):
        raise TypeError(f"{cls.__name__} has slots already.")
    names = [one.name for one in fields(cls)]
    held = {name for base in cls.__mro__[1:-1] for name in vars(base).get("__slots__", ())}
    without = {*names, "__dict__", "__weakref__"}
    body = {name: value for name, value in vars(cls).items() if name not in without}
    made = type(cls)(cls.__name__, cls.__bases__, {**body, "__slots__": tuple(n for n in names if n not in held)})
    made.__qualname__ = cls.__qualname__
    return made


@dataclasses.dataclass(init=False, repr=False, eq=False)
class _Open:
    """Has the parameters of classes whose instances may change."""


@dataclasses.dataclass(init=False, repr=False, eq=False, frozen=True)
class _Frozen:
    """Has the parameters of classes whose instances never change."""


_KINDS: tuple[Any, Any] = _Open, _Frozen
_PARAMETERS = {kind.__dataclass_params__.frozen: kind.__dataclass_params__ for kind in _KINDS}
_OF_INSTANCE: Any = dataclasses._FIELD  # type: ignore[attr-defined]
_OF_CLASS: Any = dataclasses._FIELD_CLASSVAR  # type: ignore[attr-defined]


def _add(made: type, name: str, method: Any) -> None:
    """Gives a class a method that it does not define itself."""
    if name not in vars(made):
        method.__qualname__ = f"{made.__qualname__}.{name}"
        setattr(made, name, method)


# ------------------------------------------------------------------------------------------------------- first instance


_UNCOMPILED = 8  # instances that take less time together than to compile


def _first_init(made: type, *, frozen: bool) -> Callable[..., None]:
    """Returns what replaces ``__init__`` until it is compiled: for a class of many instances, or a faulty call."""
    known: list[Any] = []
    left = _UNCOMPILED

    def __init__(self: Any, *given: Any, **named: Any) -> None:  # noqa: N807 - it is one
        nonlocal left
        left -= 1
        if not known:
            known.append(_Layout(made, frozen=frozen))
        values = known[0].values(given, named) if left > 0 else None
        if values is None:
            _compile_init(made, frozen=frozen)(self, *given, **named)
        else:
            known[0].fill(self, values)

    __init__.__wrapped__ = _Signed(made, frozen=frozen)  # type: ignore[attr-defined]
    return __init__


class _Layout:
    """Computes what the fields of an instance become, as a compiled ``__init__`` does."""

    def __init__(self, made: type, *, frozen: bool) -> None:
        self._set = object.__setattr__ if frozen else setattr
        self._names = [one.name for one in fields(made) if one.init and not one.kw_only]
        slots = "__slots__" in vars(made)
        self._fields = [one for one in fields(made) if one.init or _value(one, slots=slots) is not None]
        self._needed = {one.name for one in fields(made) if one.init and _argument(one) == one.name}
        self._taken = {one.name for one in fields(made) if one.init}
        self._is_checked = hasattr(made, "__post_init__")

    def values(self, given: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any] | None:
        """Returns the values that are given, by name; None where the compiled function has to refuse them."""
        placed = dict(zip(self._names, given, strict=False))
        if len(placed) < len(given) or placed.keys() & named.keys() or not named.keys() <= self._taken:
            return None
        placed |= named
        return placed if self._needed <= placed.keys() else None

    def fill(self, instance: Any, values: dict[str, Any]) -> None:
        """Sets the fields in their order."""
        for one in self._fields:
            if one.name in values:
                value = values[one.name]
            else:
                value = one.default if one.default_factory is MISSING else one.default_factory()
            self._set(instance, one.name, value)
        if self._is_checked:
            instance.__post_init__()


class _Signed:
    """Gives `inspect` the signature of an ``__init__`` that is not compiled yet."""

    def __init__(self, made: type, *, frozen: bool) -> None:
        self._made, self._frozen = made, frozen

    def __call__(self) -> None:
        """Never runs: `inspect` requires a callable."""

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(_compile_init(self._made, frozen=self._frozen))


def _compile_init(made: type, *, frozen: bool) -> Callable[..., None]:
    """Writes ``__init__`` as the standard library does, puts it into its class, and returns it."""
    known: dict[str, Any] = {"_set": object.__setattr__, "_MADE_HERE": _MADE_HERE}
    known |= {f"_default_{one.name}": one.default for one in fields(made)}
    known |= {f"_make_{one.name}": one.default_factory for one in fields(made)}
    chosen = [one for one in fields(made) if one.init]
    by_place, by_name = ([_argument(one) for one in chosen if bool(one.kw_only) is kind] for kind in (False, True))
    values = {one.name: _value(one, slots="__slots__" in vars(made)) for one in fields(made)}
    body = [
        f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}"
        for name, value in values.items()
        if value is not None
    ]
    body += ["self.__post_init__()"] if hasattr(made, "__post_init__") else []
    arguments, lines = (
        ", ".join(["self", *by_place, *(["*", *by_name] if by_name else [])]),
        "\n ".join(body or ["pass"]),
    )
    exec(f"def __init__({arguments}):\n {lines}", known)  # noqa: S102 - of names in our own sources
    compiled: Callable[..., None] = known["__init__"]
    compiled.__qualname__, compiled.__module__ = f"{made.__qualname__}.__init__", made.__module__
    compiled.__annotations__ = {one.name: one.type for one in chosen} | {"return": None}
    if isinstance(getattr(vars(made).get("__init__"), "__wrapped__", None), _Signed):  # no other was put there
        made.__init__ = compiled  # type: ignore[misc]
    return compiled


class _MadeHere:
    """Marks a default that a factory makes for each instance."""

    def __repr__(self) -> str:
        return "<factory>"


_MADE_HERE = _MadeHere()


def _argument(one: Field[Any]) -> str:
    if one.default_factory is not MISSING:
        return f"{one.name}=_MADE_HERE"
    return one.name if one.default is MISSING else f"{one.name}=_default_{one.name}"


def _value(one: Field[Any], *, slots: bool) -> str | None:
    """Returns what a field is set to; None if it has no value yet, or its class has it."""
    if one.default_factory is not MISSING:
        return f"_make_{one.name}() if {one.name} is _MADE_HERE else {one.name}" if one.init else f"_make_{one.name}()"
    if one.init:
        return one.name
    return f"_default_{one.name}" if slots and one.default is not MISSING else None


# -------------------------------------------------------------------------------------------------------- other methods


def _values(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """Returns what reads some attributes, as a tuple also where there are fewer than two."""
    if len(names) > 1:
        return attrgetter(*names)
    return (lambda thing: (getattr(thing, names[0]),)) if names else lambda _: ()


def _repr(made: type) -> Callable[[Any], str]:
    names = [one.name for one in fields(made) if one.repr]

    @recursive_repr()
    def __repr__(self: Any) -> str:  # noqa: N807
        return f"{type(self).__qualname__}({', '.join([f'{name}={getattr(self, name)!r}' for name in names])})"

    return __repr__


def _add_comparison(made: type, *, frozen: bool) -> None:
    """Gives a class equality by its fields, and a hash that fits it if it is frozen."""
    own_hash = vars(made).get("__hash__", MISSING)
    is_own = not (own_hash is MISSING or (own_hash is None and "__eq__" in vars(made)))
    compared = tuple(one.name for one in fields(made) if one.compare)
    hashed = tuple(one.name for one in fields(made) if (one.compare if one.hash is None else one.hash))
    values, key = _values(compared), _values(hashed)

    def __eq__(self: Any, other: object) -> Any:  # noqa: N807
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: Any) -> int:  # noqa: N807
        return hash(key(self))

    _add(made, "__eq__", __eq__)
    if not is_own:
        __hash__.__qualname__ = f"{made.__qualname__}.__hash__"
        made.__hash__ = __hash__ if frozen else None  # type: ignore[assignment, method-assign]


def _freeze(made: type, *, slots: bool) -> None:
    names = frozenset(one.name for one in fields(made))

    def __setattr__(self: Any, name: str, value: Any) -> None:  # noqa: N807
        if type(self) is made or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(made, self).__setattr__(name, value)  # type: ignore[arg-type]

    def __delattr__(self: Any, name: str) -> None:  # noqa: N807
        if type(self) is made or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(made, self).__delattr__(name)  # type: ignore[arg-type]

    _add(made, "__setattr__", __setattr__)
    _add(made, "__delattr__", __delattr__)
    if slots:
        _add(made, "__getstate__", lambda self: [getattr(self, one.name) for one in fields(self)])
        _add(made, "__setstate__", _set_state)


def _set_state(self: Any, state: list[Any]) -> None:
    for one, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)
