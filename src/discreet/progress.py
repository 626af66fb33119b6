"""Reports what is being done, as names of stages, to a listener.

A stage is named when it begins. Which stages there are is planned: it follows from the question and the declarations,
and never from what was drawn. No share of the work, no size and no duration is reported, since those would reveal how
many rows there are. Between a charge and the storage of its answer one stage is reported, before anything is read, and
stages of what is called there are `unheard`: a run that is stopped must have revealed nothing that was drawn
(`run_charge` of `curator.paid_release`). There is no listener by default. One is `progress=` of the curator's methods,
the status line of a terminal, or

>>> with told_to(print):
...     stage("Reading visits")
Reading visits
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, Self, TypeVar, cast

Progress = Callable[[str], object]
"""Takes the name of a stage that begins; what it returns or raises changes nothing."""


class Stage(str):
    """The name of a stage, which says in words how much of a budget is spent, where that is known.

    Attributes:
        spent: the same as a number from 0 to 1, for a progress bar; None if it is not known.

    >>> Stage("Measuring age", 0.25)
    'Measuring age (25 % of the budget spent)'
    """

    __slots__ = ("spent",)
    spent: float | None

    def __new__(cls, name: str, spent: float | None = None) -> Self:
        """Returns the name, with the share in words."""
        made = super().__new__(cls, name if spent is None else f"{name} ({100 * spent:.0f} % of the budget spent)")
        made.spent = spent
        return made

    def __getnewargs__(self) -> tuple[str]:
        return (str(self),)


P = ParamSpec("P")
Result = TypeVar("Result")

_LISTENER: ContextVar[Progress | None] = ContextVar("listener", default=None)


def stage(name: str, *, spent: float | None = None) -> None:
    """Reports that a stage begins.

    Args:
        name: what begins.
        spent: how much of its budget is spent, from 0 to 1, where it is spent in steps whose number is planned.
    """
    listener = _LISTENER.get()
    if listener is not None:
        with suppress(Exception):  # between a charge and its answer, a listener's mistake must cost nothing
            listener(Stage(name, spent))


def unheard(name: str) -> None:
    """Ignores a stage: for what is drawn and not stored, and what is done hundreds of times in a stage."""
    del name


@contextmanager
def told_to(listener: Progress | None) -> Iterator[None]:
    """Reports the stages of this thread to a listener; None keeps the present listener."""
    token = _LISTENER.set(_LISTENER.get() if listener is None else listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def telling(function: Callable[P, Result]) -> Callable[P, Result]:
    """Makes a function with a parameter `progress` report its stages to it."""

    @wraps(function)
    def call_with_progress(*args: P.args, **kwargs: P.kwargs) -> Result:
        with told_to(cast("Any", kwargs.get("progress"))):
            return function(*args, **kwargs)

    return call_with_progress
