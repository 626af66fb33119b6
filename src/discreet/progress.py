"""What is being done, as names of stages, told to whoever listens.

A stage is named when it begins. Which stages there are follows from the question and the declarations; no share of the
work, no size and no duration is told, since those would tell how many rows there are. Nobody listens unless somebody
asks to: `progress=` of the curator's methods, the status line of a terminal, or

>>> with told_to(print):
...     stage("Reading visits")
Reading visits
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

Progress = Callable[[str], object]
"""Takes the name of a stage that begins; what it returns or raises changes nothing."""

P = ParamSpec("P")
Result = TypeVar("Result")

_LISTENER: ContextVar[Progress | None] = ContextVar("listener", default=None)


def stage(name: str) -> None:
    """Tells that a stage begins."""
    listener = _LISTENER.get()
    if listener is not None:
        with suppress(Exception):  # between a charge and its answer, a listener's mistake must cost nothing
            listener(name)


def unheard(name: str) -> None:
    """A listener that says nothing, for what is done hundreds of times inside of one stage."""
    del name


@contextmanager
def told_to(listener: Progress | None) -> Iterator[None]:
    """Has stages of this thread told to a listener; None leaves it to whoever listens already."""
    token = _LISTENER.set(_LISTENER.get() if listener is None else listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def telling(function: Callable[P, Result]) -> Callable[P, Result]:
    """Makes a function with a parameter `progress` tell its stages to it."""

    @wraps(function)
    def told(*args: P.args, **kwargs: P.kwargs) -> Result:
        with told_to(cast("Any", kwargs.get("progress"))):
            return function(*args, **kwargs)

    return told
