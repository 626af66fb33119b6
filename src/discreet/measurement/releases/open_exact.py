"""The one way to what is sealed: imported by what adds noise, selects, draws, or audits, and by nothing else.

An import contract lists the importers, and a test counts the places where something is opened.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from discreet.errors import QueryFailed
from discreet.measurement.releases.exact_groups import ExactGroups
from discreet.plan.model.group_columns import GroupColumns

P = ParamSpec("P")
Result = TypeVar("Result")


def open_exact(groups: ExactGroups) -> GroupColumns:
    """Returns what was read. It is private: only what met its noise may leave the function that calls this."""
    content: GroupColumns = groups._ExactGroups__content  # type: ignore[attr-defined]
    return content


def opens(method: Callable[P, Result]) -> Callable[P, Result]:
    """Makes errors of a function that opens something lose text, cause, context and frames: all may tell what it read.

    An error becomes `QueryFailed`; an interrupt stays one.

    >>> opens(int)("17 of ward A")
    Traceback (most recent call last):
    discreet.errors.QueryFailed: The question could not be answered. Its charge stays; ask the steward.
    """

    @wraps(method)
    def call_without_leaks(*args: P.args, **kwargs: P.kwargs) -> Result:
        try:
            return method(*args, **kwargs)
        except Exception:  # noqa: BLE001 - whatever it is, its text may be about rows
            failed: BaseException = QueryFailed()
        except BaseException as error:  # noqa: BLE001 - Ctrl-C, or the end of the process
            failed = error
        failed.__cause__ = failed.__context__ = None
        raise failed.with_traceback(None)

    return call_without_leaks
