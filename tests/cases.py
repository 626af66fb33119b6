"""Many small cases in one test: all of them are tried, and every one that fails is named."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import pytest

Case = TypeVar("Case")


def try_all(cases: Iterable[Case], check: Callable[[Case], None]) -> None:
    """Runs a check on every case.

    Raises:
        BaseExceptionGroup: with what each failing case raised, and a note that names it.
    """
    failures: list[BaseException] = []
    tried = 0
    for case in cases:
        tried += 1
        try:
            check(case)
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - a test reports whatever goes wrong
            error.add_note(f"in the case {ascii(case)[:500]}")
            failures.append(error)
    assert tried
    if failures:
        raise BaseExceptionGroup(f"{len(failures)} of {tried} cases failed", failures)


def every(names: str | tuple[str, ...], cases: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes one test of a check and many quick cases, where `pytest.mark.parametrize` would make many tests.

    Args:
        names: of the arguments that a case is for; all others are fixtures, which the cases share.
        cases: values, or tuples of them if there are several names.
    """
    single = isinstance(names, str)
    wanted = (names,) if isinstance(names, str) else names
    found = list(cases)
    assert not any(isinstance(case, type(pytest.param())) for case in found), "marks are for tests of their own"

    def decorate(check: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(check)

        def test(**fixtures: Any) -> None:
            def check_one(case: Any) -> None:
                check(**dict(zip(wanted, (case,) if single else case, strict=True)), **fixtures)

            try_all(found, check_one)

        functools.update_wrapper(test, check)
        del test.__wrapped__  # type: ignore[attr-defined]
        kept = [parameter for name, parameter in signature.parameters.items() if name not in wanted]
        test.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        return test

    return decorate
