"""Mutants: plausible mistakes that are put into the code on purpose, each with the check that catches it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest


@dataclass(frozen=True)
class Catcher:
    """A check that the code as it is passes, and that fails on a mutant.

    Attributes:
        audit: the name of the tool that it uses.
        run: raises AssertionError if something is wrong.
    """

    audit: str
    run: Callable[[], None]

    @property
    def name(self) -> str:
        return self.run.__name__


def catcher(audit: str) -> Callable[[Callable[[], None]], Catcher]:
    """Returns a decorator that turns a function into a check."""
    return lambda run: Catcher(audit, run)


@dataclass(frozen=True)
class Mutant:
    """A mistake that is put into the code on purpose.

    Attributes:
        name: the mistake in a few words.
        broken: what the broken code does, in one sentence.
        apply: puts the mistake into the code, by means of a MonkeyPatch.
        caught_by: the check that must fail on it.
    """

    name: str
    broken: str
    apply: Callable[[pytest.MonkeyPatch], None]
    caught_by: Catcher

    def applied(self) -> AbstractContextManager[None]:
        return _patched(self.apply)


@contextmanager
def _patched(apply: Callable[[pytest.MonkeyPatch], None]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        apply(patch)
        yield


def setting(owner: Any, name: str, value: Any) -> Callable[[pytest.MonkeyPatch], None]:
    """Returns a patch that replaces one attribute."""
    return lambda patch: patch.setattr(owner, name, value)
