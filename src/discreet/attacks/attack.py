"""An attack is a function with a companion: `attack(...)` on one release, `attack.compare(...)` beside defences."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Generic, ParamSpec, TypeVar

from discreet.report.finding import Comparison, Finding

Given = ParamSpec("Given")
Raw = ParamSpec("Raw")
Found = TypeVar("Found", bound=Finding)


class Attack(Generic[Given, Found, Raw]):
    """A function that attacks a release, and `compare`, which protects data in several ways and attacks each.

    Attributes:
        compare: takes the data themselves, makes releases of them, and compares the findings.
    """

    def __init__(self, run: Callable[Given, Found], compare: Callable[Raw, Comparison]) -> None:
        update_wrapper(self, run)
        self._run, self.compare = run, compare

    def __call__(self, *given: Given.args, **named: Given.kwargs) -> Found:
        """Attacks one release."""
        return self._run(*given, **named)


def beside(compare: Callable[Raw, Comparison]) -> Callable[[Callable[Given, Found]], Attack[Given, Found, Raw]]:
    """Makes an attack of a function, with this companion."""
    return lambda run: Attack(run, compare)
