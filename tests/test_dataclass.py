"""Our dataclasses behave as those of the standard library, and compile nothing before there are several instances."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from discreet.dataclass import _UNCOMPILED, dataclass
from discreet.engines.spark import python_functions

Maker = Callable[..., Any]
MAKERS: dict[str, Maker] = {"ours": dataclass, "the standard library's": dataclasses.dataclass}


@dataclass(frozen=True, slots=True)
class Pair:
    """At module level, so that it can be pickled."""

    x: int
    y: list[int] = dataclasses.field(default_factory=list, compare=False)


def classes(make: Maker) -> list[tuple[str, Any]]:
    """Classes with every kind of field and option that the library uses."""

    @make(frozen=True, slots=True)
    class Base:
        """A base."""

        x: int
        y: str = "why"
        shared: ClassVar[int] = 3

    @make(frozen=True, slots=True)
    class Below(Base):
        """A class below it, which checks itself."""

        z: tuple[int, ...] = ()

        def __post_init__(self) -> None:
            object.__setattr__(self, "z", tuple(sorted(self.z)))

    @make(frozen=True, kw_only=True)
    class Named:
        """With keywords, a factory, and fields that are not compared, shown or given."""

        a: int
        made: dict[str, int] = dataclasses.field(default_factory=dict, hash=False)
        hidden: str = dataclasses.field(default="h", repr=False, compare=False)
        later: int = dataclasses.field(default=7, init=False)

    @make(slots=True)
    class Open:
        """It can be changed."""

        a: int = 0
        b: list[int] = dataclasses.field(default_factory=list, init=False)
        c: int = dataclasses.field(default=5, init=False)

    @make(frozen=True, eq=False)
    class Same:
        """Compared by identity."""

        a: int = 0

    @make(frozen=True, slots=True, init=False, repr=False)
    class Own:
        """With methods of its own."""

        a: int

        def __init__(self, text: str) -> None:
            object.__setattr__(self, "a", len(text))

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own) and self.a % 2 == other.a % 2

        def __hash__(self) -> int:
            return self.a % 2

    @make(frozen=True, slots=True)
    class Empty:
        """Without fields."""

    return [(each.__name__, each) for each in (Base, Below, Named, Open, Same, Own, Empty)]


CALLS: dict[str, list[tuple[tuple[Any, ...], dict[str, Any]]]] = {
    "Base": [((1,), {}), ((1, "b"), {}), ((), {"y": "b", "x": 2}), ((), {}), ((1, 2, 3), {}), ((1,), {"q": 2})],
    "Below": [((1,), {"z": (3, 1, 2)}), ((1, "b", (2,)), {}), ((), {"z": ()})],
    "Named": [((), {"a": 1}), ((1,), {}), ((), {"a": 1, "made": {"k": 1}, "hidden": "x"}), ((), {"a": 1, "later": 2})],
    "Open": [((), {}), ((4,), {}), ((4, [1]), {})],
    "Same": [((), {}), ((1,), {})],
    "Own": [(("four",), {}), (("odd",), {})],
    "Empty": [((), {}), ((1,), {})],
}


def told(make: Maker) -> list[Any]:
    """Everything that can be seen of the classes."""
    found: list[Any] = []
    for name, cls in classes(make):
        found.append((name, str(inspect.signature(cls)), [f.name for f in dataclasses.fields(cls)], cls.__match_args__))
        made = [_made(cls, *call) for call in CALLS[name]]
        found.append([str(one).rpartition("<locals>.")[2] for one in made])
        whole = [one for one in made if isinstance(one, cls)]
        found.append([[one == other for other in whole] for one in whole])
        found.append([cls.__hash__ is None, [len({one, copy.copy(one)}) for one in whole if cls.__hash__ is not None]])
        for one in whole:
            found.append([_values(each) for each in (one, copy.copy(one), copy.deepcopy(one))])
            names = [field.name for field in dataclasses.fields(cls)]
            found.append([(_tried(setattr, one, each, 9), _tried(delattr, one, each)) for each in names])
    return found


def _values(one: Any) -> list[Any]:
    return [getattr(one, field.name, "none") for field in dataclasses.fields(one)]


def _made(cls: Any, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    try:
        return cls(*given, **named)
    except TypeError as error:
        return str(error)


def _tried(act: Callable[..., None], *given: Any) -> str:
    try:
        act(*given)
    except AttributeError as error:
        return f"{type(error).__name__}: {error}"
    return "done"


def test_all_that_can_be_seen_is_the_same() -> None:
    assert told(dataclass) == told(dataclasses.dataclass)


def test_instances_are_replaced_and_pickled() -> None:
    one = dataclasses.replace(Pair(1), y=[4])
    assert (one, one.y, Pair(1).y) == (Pair(1), [4], [])
    assert pickle.loads(pickle.dumps(one)).y == [4]
    assert Pair(1).y is not Pair(1).y
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.x = 3  # type: ignore[misc]


@pytest.mark.parametrize("first", MAKERS)
@pytest.mark.parametrize("second", MAKERS)
def test_classes_of_both_kinds_stand_below_each_other(first: str, second: str) -> None:
    @MAKERS[first](frozen=True, slots=True)
    class Above:
        a: int

    @MAKERS[second](frozen=True, slots=True)
    class Below(Above):
        b: int = 2

    made: Any = Below
    assert (made(1), made(1).b, len({made(1), made(1, 2)})) == (made(1, 2), 2, 1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        made(1).a = 2
    with pytest.raises(TypeError, match="non-frozen"):
        MAKERS[second]()(type("Open", (Above,), {"__annotations__": {"c": int}}))


def test_nothing_is_compiled_before_there_are_several_instances() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Late:
        a: int

    before = vars(Late)["__init__"]
    assert [Late(a=place).a for place in range(1, _UNCOMPILED)] == list(range(1, _UNCOMPILED))
    assert vars(Late)["__init__"] is before
    assert Late(a=1).a == 1
    after = vars(Late)["__init__"]
    assert before is not after
    assert Late(a=2).a == 2
    assert vars(Late)["__init__"] is after


def test_instances_are_alike_before_and_after_their_init_is_compiled() -> None:
    for name, cls in classes(dataclass):
        for given, named in CALLS[name]:
            made = [_made(cls, given, named) for _ in range(_UNCOMPILED + 2)]
            assert len({_shown(one) for one in made}) == 1


def _shown(one: Any) -> str:
    return one if isinstance(one, str) else repr((one, _values(one)))


def test_an_init_that_was_put_in_later_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass
    class Late:
        a: int = 1

    first = Late.__init__
    monkeypatch.setattr(Late, "__init__", lambda self, a=1: first(self, a + 1))
    assert [Late().a, Late(5).a] == [2, 6]


def test_a_class_that_holds_itself_can_be_shown() -> None:
    @dataclass
    class Loop:
        other: Any = None

    loop = Loop()
    loop.other = loop
    assert repr(loop).endswith("Loop(other=...)")


def test_fields_without_a_type_or_with_one_default_for_all_are_refused() -> None:
    for make in MAKERS.values():
        with pytest.raises(TypeError):
            make()(type("Untyped", (), {"__annotations__": {}, "a": dataclasses.field(default=1)}))
        with pytest.raises(ValueError, match="default_factory"):
            make()(type("Shared", (), {"__annotations__": {"a": "list[int]"}, "a": []}))
    with pytest.raises(TypeError, match="only the standard library"):
        dataclass()(type("Passing", (), {"__annotations__": {"a": "dataclasses.InitVar[int]"}}))


def test_what_is_sent_to_workers_has_the_standard_dataclasses() -> None:
    """Workers of Spark have no library of ours, and make classes anew of what is sent: late methods would be lost."""
    for module in python_functions._SENT:
        assert "discreet.dataclass" not in Path(str(module.__file__)).read_text(encoding="utf-8"), module.__name__
