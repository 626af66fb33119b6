"""What a mutant is: a mistake that somebody could make, put into the code on purpose, and the check that sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest


@dataclass(frozen=True)
class Catcher:
    """A check that the honest code passes and a mutant must not.

    Attributes:
        audit: the tool that it uses.
        run: raises AssertionError if something is wrong.
    """

    audit: str
    run: Callable[[], None]

    @property
    def name(self) -> str:
        return self.run.__name__


def catcher(audit: str) -> Callable[[Callable[[], None]], Catcher]:
    """Makes a check of a function."""
    return lambda run: Catcher(audit, run)


@dataclass(frozen=True)
class Mutant:
    """A mistake.

    Attributes:
        name: in a few words.
        broken: what it does, in a sentence.
        apply: puts it into the code, given something that patches.
        caught_by: the check.
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
    """A mutant that is one other attribute."""
    return lambda patch: patch.setattr(owner, name, value)
