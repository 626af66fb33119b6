"""What clients send: rows of whole numbers, and the public parameters of the oracle that they are for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.check import assign
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.hint_text import Hint

_HINT = "Make reports with `privatize` of the same oracle, or read them with Reports.from_json."


@dataclass(frozen=True, slots=True, init=False, eq=False)
class Reports:
    """Reports of many people, one row for each, with the parameters that an aggregator compares with its own.

    Args:
        parameters: the canonical JSON text of an oracle's public parameters.
        rows: whole numbers, one row for each report; what a row means, its oracle says.
        private: False if the randomness was seeded, so that a reader can repeat it.

    >>> reports = Reports('{"oracle":"x"}', [[1, 2], [3, 4]])
    >>> len(reports + reports), reports[1:].rows.tolist()
    (4, [[3, 4]])
    >>> Reports.from_json(reports.to_json()).rows.tolist()
    [[1, 2], [3, 4]]
    """

    parameters: str
    rows: NDArray[Any]
    private: bool

    def __init__(self, parameters: str, rows: Any, *, private: bool = True) -> None:
        assign(
            self,
            parameters=check.instance(str, parameters=parameters),
            rows=whole_rows(rows),
            private=check.instance(bool, private=private),
        )

    def __len__(self) -> int:
        return len(self.rows)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.rows, dtype=dtype) if copy else np.asarray(self.rows, dtype=dtype)

    def __getitem__(self, some: slice | NDArray[Any]) -> Reports:
        if not isinstance(some, slice | np.ndarray):
            raise InvalidParameter("index", some, "to be a slice or an array", "One report is reports[i : i + 1].")
        return Reports(self.parameters, self.rows[some], private=self.private)

    def __add__(self, other: Reports) -> Reports:
        return Reports.combine([self, other])

    @classmethod
    def combine(cls, parts: Iterable[Reports]) -> Reports:
        """Returns the reports of several clients, or of several files, as one.

        Raises:
            InvalidParameter: if there are none, or they are for different oracles.
        """
        found = [check.instance(Reports, reports=part) for part in parts]
        if not found:
            raise InvalidParameter("reports", "an empty list", "to hold at least one")
        if any(part.parameters != found[0].parameters or _width(part) != _width(found[0]) for part in found):
            raise InvalidParameter("reports", "a mixture", "to be for one oracle and one domain", _HINT)
        rows = np.concatenate([part.rows for part in found])
        return cls(found[0].parameters, rows, private=all(part.private for part in found))

    def to_json(self) -> str:
        """Returns the reports as a JSON text."""
        content = {"parameters": json.loads(self.parameters), "private": self.private, "rows": self.rows.tolist()}
        return json.dumps(content, separators=(",", ":"), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Reports:
        """Returns the reports that a text holds; who sent it is not trusted, and only whole numbers are read.

        Raises:
            InvalidParameter: if it is no text of `to_json`.
        """
        try:
            content = json.loads(check.instance(str, text=text))
            parameters, private, rows = content["parameters"], content["private"], content["rows"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise InvalidParameter("text", "a text", "to hold reports as JSON", _HINT) from None
        return cls(canonical(check.instance(dict, parameters=parameters)), rows, private=private)


def canonical(parameters: dict[str, Any]) -> str:
    """Returns public parameters as the one text by which they are compared."""
    return json.dumps(parameters, sort_keys=True, separators=(",", ":"))


def whole_rows(rows: Any) -> NDArray[Any]:
    """Returns rows of whole numbers as an array.

    Raises:
        InvalidParameter: if they are anything else.
    """
    try:
        found = np.asarray(rows)
    except (ValueError, OverflowError):
        raise InvalidParameter("reports", "rows", "to be of one length", _HINT) from None
    if found.size == 0 and found.dtype.kind == "f":
        found = found.astype(np.int64)  # an empty list
    if found.dtype.kind not in "iub" or not found.ndim:
        raise InvalidParameter("reports", "rows", "to hold whole numbers only", _HINT)
    return found


def accept_reports(
    reports: Any,
    parameters: str,
    columns: tuple[int, ...],
    valid: Callable[[NDArray[Any]], NDArray[np.bool_]],
    *,
    drop: bool,
) -> tuple[NDArray[Any], int, bool]:
    """Returns the rows that count, the number of those that do not, and whether their randomness was secure.

    Args:
        reports: rows with their tag, or rows alone.
        parameters: the tag of the aggregator.
        columns: the shape of one row.
        valid: returns which rows a client can have made.
        drop: whether others are left out, instead of being refused.

    Raises:
        InvalidParameter: for another tag or shape, for rows that no client makes, and if no row remains.
    """
    if isinstance(reports, Reports) and reports.parameters != parameters:
        hint = f"This is {parameters}; they are for {reports.parameters}."
        raise InvalidParameter("reports", "reports", "to be for this oracle and this domain", hint)
    rows = reports.rows if isinstance(reports, Reports) else whole_rows(reports)
    if len(rows) and rows.shape[1:] != columns:
        condition, hint = f"to have rows of shape {columns}", "They are for another oracle."
        raise InvalidParameter("reports", f"rows of shape {rows.shape[1:]}", condition, hint)
    good = valid(rows) if len(rows) else np.ones(0, dtype=bool)
    dropped = len(rows) - int(np.count_nonzero(good))
    if dropped and not drop:
        hint = Hint("Some rows were not made by a client of this oracle. Leave them out with {drop:True}.")
        raise InvalidParameter("reports", f"{dropped} impossible rows", "to be rows that a client can make", hint)
    if len(rows) == dropped:
        raise InvalidParameter("reports", "no reports", "to hold at least one report")
    return (rows[good] if dropped else rows), dropped, not isinstance(reports, Reports) or reports.private


def _width(reports: Reports) -> tuple[int, ...]:
    return reports.rows.shape[1:]
