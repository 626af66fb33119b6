"""The public domain of a whole table: one of each column, and combinations of values that cannot occur."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.check import assign
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.hint_text import Hint
from discreet.noise import Bits
from discreet.noise.experiment import uniforms
from discreet.synthetic.domain.calendar_parts import Calendar
from discreet.synthetic.domain.column_domains import Bins, Codes, ColumnDomain, Keys
from discreet.synthetic.domain.frame_columns import FrameKind, columns_of, frame_of
from discreet.synthetic.domain.text_keys import FoundKeys, UnknownKeys
from discreet.synthetic.inference.belief_propagation import BeliefPropagation
from discreet.synthetic.inference.factors import Factor
from discreet.synthetic.inference.junction_tree import junction_tree, tree_size

Rule = Mapping[str, frozenset[int]]
"""Codes by column: a row that has one of them in each of these columns cannot occur."""

MOST_COLUMNS = 1 << 10
MOST_RULES = 1 << 10
MOST_FORBIDDEN = 1 << 22
"""Cells of the table of columns that rules are about."""

MOST_TOGETHER = 1 << 24
"""Cells of all cliques of columns that rules connect: a public limit on memory."""

_DOMAIN = "Pass e.g. {domain:dict(sex=['F', 'M'], age=range(0, 100, 5))}; it is public, never read from the data."
_FORBIDDEN = "Pass e.g. forbidden=[{'age': range(0, 15), 'status': ['married']}]."


@dataclass(frozen=True, slots=True, init=False)
class Domain:
    """Declares in public what the rows of a table may be.

    Args:
        columns: by name a list of keys, a `range` of edges, or a `Keys`, `Bins`, `Calendar` or `UnknownKeys`.
        forbidden: combinations that cannot occur, each a dict of values by column: a row that has one of the values in
            every one of these columns. For bins give a range or a pair of edges; None is a missing value.

    Formal guarantee: `encode` is a function of each row alone, total on all values. No refusal depends on a value.

    Raises:
        InvalidParameter: if there are no columns or too many, a declaration is none, or a rule is not about declared
            values, or would leave nothing.

    >>> domain = Domain({"sex": ["F", "M"], "age": range(0, 100, 50)})
    >>> domain.sizes
    {'sex': 3, 'age': 3}
    >>> domain.encode({"sex": ["M", "?"], "age": [10, 70]}).tolist()
    [[1, 0], [2, 1]]
    """

    columns: Mapping[str, ColumnDomain]
    forbidden: tuple[Rule, ...]

    def __init__(self, columns: Mapping[str, Any] | Domain, *, forbidden: Iterable[Mapping[str, Any]] = ()) -> None:
        if isinstance(columns, Domain):
            known, rules = dict(columns.columns), list(columns.forbidden)
        else:
            known, rules = _build_columns(columns), []
        for rule in forbidden:
            rules.append(_rule(rule, known))
        if len(rules) > MOST_RULES:
            raise InvalidParameter("forbidden", f"{len(rules)} rules", f"to be at most {MOST_RULES}", _FORBIDDEN)
        assign(self, columns=MappingProxyType(known), forbidden=tuple(rules))
        for factor in self.zeros():
            if not np.isfinite(factor.logs).any():
                raise InvalidParameter("forbidden", factor.attributes, "to allow some combination", _FORBIDDEN)
        _check_together(self.sizes, self.zeros())

    @classmethod
    def of(cls, domain: Any, *, forbidden: Iterable[Mapping[str, Any]] = ()) -> Domain:
        """Returns the domain itself, or one of a dict, with further rules."""
        return cls(domain, forbidden=forbidden)

    @property
    def sizes(self) -> dict[str, int]:
        """Returns how many codes each column has."""
        return {name: column.size for name, column in self.columns.items()}

    @property
    def fine_sizes(self) -> dict[str, int]:
        """Returns how many fine codes each column has."""
        return {name: column.fine_size for name, column in self.columns.items()}

    def with_columns(self, columns: Mapping[str, ColumnDomain]) -> Domain:
        """Returns the same domain with what was released about some columns; their codes, and rules, stay."""
        made = Domain(dict(self.columns) | dict(columns))
        assign(made, forbidden=self.forbidden)
        return made

    def rename_columns(self, names: Mapping[str, str]) -> Domain:
        """Returns the same domain with other names of columns."""
        made = Domain({names[name]: column for name, column in self.columns.items()})
        rules = tuple({names[name]: codes for name, codes in rule.items()} for rule in self.forbidden)
        assign(made, forbidden=rules)
        return made

    def beside(self, other: Domain) -> Domain:
        """Returns the domain of rows with the columns of both, and the rules of both.

        Raises:
            InvalidParameter: if a column is in both.
        """
        both = [name for name in self.columns if name in other.columns]
        if both:
            raise InvalidParameter("domain", both[0], "to be a column of one table only", Hint(_DOMAIN))
        made = Domain(dict(self.columns) | dict(other.columns))
        assign(made, forbidden=self.forbidden + other.forbidden)
        return made

    @property
    def details(self) -> dict[str, str]:
        """Returns by column how a value is made of a code, in words."""
        return {name: column.detail for name, column in self.columns.items()}

    def encode(self, frame: Any, *, ignore: Sequence[str] = ()) -> Codes:
        """Returns the code of every value, one line for each row.

        Args:
            frame: a frame of pandas, polars or PyArrow, or a dict of lists, with these columns and no other.
            ignore: names of columns that it also has.

        Raises:
            InvalidParameter: if it is no frame, or has other columns.
        """
        return self.codes(columns_of(frame), ignore=ignore)

    def codes(self, columns: Mapping[str, Any], *, ignore: Sequence[str] = (), fine: bool = False) -> Codes:
        """Returns the code of every value of columns that were taken out of a frame, or its fine code."""
        given = [name for name in columns if name not in ignore]
        unknown = [name for name in given if name not in self.columns]
        if unknown:
            hint = Hint(f"Declare its possible values, or leave the column out. {_DOMAIN}")
            raise InvalidParameter("column", unknown[0], "to have a domain", hint)
        absent = [name for name in self.columns if name not in given]
        if absent:
            raise InvalidParameter("domain", absent[0], f"to be a column of the frame, which has {given}")
        rows = len(columns[given[0]])
        found = np.empty((rows, len(self.columns)), dtype=np.int64)
        for place, (name, column) in enumerate(self.columns.items()):
            found[:, place] = (column.fine_codes if fine else column.codes)(columns[name])
        return found

    def decode(self, codes: Codes, kind: FrameKind = FrameKind.DICT, *, bits: Bits | None = None) -> Any:
        """Returns rows of values as a frame; where a code has several values, one is drawn.

        Args:
            codes: one line for each row.
            kind: the library of the frame.
            bits: the source of randomness, which gives no privacy here.

        Raises:
            InvalidParameter: if a code is none of the domain.
        """
        limits = np.array(list(self.sizes.values()))
        if codes.ndim != 2 or codes.shape[1] != limits.size or ((codes < 0) | (codes >= limits)).any():
            raise InvalidParameter("codes", f"of shape {codes.shape}", f"to be codes below {limits.tolist()}")
        made = {
            name: column.values(codes[:, place], uniforms(len(codes), bits=bits))
            for place, (name, column) in enumerate(self.columns.items())
        }
        return frame_of(kind, made)

    def zeros(self) -> list[Factor]:
        """Returns the rules as factors, one for each set of columns: minus infinity where something cannot occur."""
        tables: dict[tuple[str, ...], NDArray[np.float64]] = {}
        sizes = self.sizes
        for rule in self.forbidden:
            names = tuple(name for name in self.columns if name in rule)
            shape = [sizes[name] for name in names]
            if math.prod(shape) > MOST_FORBIDDEN:
                raise InvalidParameter(
                    "forbidden", names, f"to have at most {MOST_FORBIDDEN:,} combinations of values", _FORBIDDEN
                )
            table = tables.setdefault(names, np.zeros(shape))
            table[np.ix_(*(sorted(rule[name]) for name in names))] = -np.inf
        return [Factor(names, table) for names, table in tables.items()]

    def to_json(self) -> str:
        """Returns the declaration as text."""
        rules = [{name: sorted(codes) for name, codes in rule.items()} for rule in self.forbidden]
        columns = {name: column.as_dict() for name, column in self.columns.items()}
        return json.dumps({"columns": columns, "forbidden": rules}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Domain:
        """Returns the domain that a text declares.

        Raises:
            InvalidParameter: if the text is none that `to_json` wrote.

        >>> domain = Domain({"sex": ["F", "M"]}, forbidden=[{"sex": [None]}])
        >>> Domain.from_json(domain.to_json()) == domain
        True
        """
        try:
            found = json.loads(text)
            columns = {name: _from_dict(column) for name, column in found["columns"].items()}
            rules = [{name: frozenset(codes) for name, codes in rule.items()} for rule in found["forbidden"]]
        except (KeyError, TypeError, AttributeError, json.JSONDecodeError):
            raise InvalidParameter(
                "text", "another text", "to be the text of a domain", "Pass what to_json returned."
            ) from None
        domain = cls(columns)
        sizes = domain.sizes
        if any(not 0 <= code < sizes.get(name, 0) for rule in rules for name, codes in rule.items() for code in codes):
            raise InvalidParameter("forbidden", rules, "to be about codes of the domain")
        assign(domain, forbidden=tuple(rules))
        return domain


def _build_columns(columns: Any) -> dict[str, ColumnDomain]:
    if not isinstance(columns, Mapping) or not 1 <= len(columns) <= MOST_COLUMNS:
        raise InvalidParameter("domain", columns, f"to declare 1 to {MOST_COLUMNS} columns", Hint(_DOMAIN))
    wrong = [name for name in columns if not isinstance(name, str) or not name]
    if wrong:
        raise InvalidParameter("domain", wrong, "to name columns by texts", Hint(_DOMAIN))
    return {name: _column(name, declared) for name, declared in columns.items()}


def _column(name: str, declared: Any) -> ColumnDomain:
    if isinstance(declared, ColumnDomain):
        return declared
    if isinstance(declared, range):
        return Bins(declared)
    if isinstance(declared, list | tuple):
        return Keys(declared)
    hint = Hint(f"Pass Keys([...]) for values, or Bins([...]) for edges of numbers. {_DOMAIN}")
    raise InvalidParameter(f"domain of {name}", declared, "to be a list of values or a range of edges", hint)


def _rule(rule: Any, columns: Mapping[str, ColumnDomain]) -> Rule:
    if not isinstance(rule, Mapping) or not rule:
        raise InvalidParameter("forbidden", rule, "to be a dict of values by column", _FORBIDDEN)
    unknown = [name for name in rule if name not in columns]
    if unknown:
        raise InvalidParameter("forbidden", unknown[0], f"to be one of the columns {list(columns)}", _FORBIDDEN)
    found = {name: frozenset(columns[name].members(values)) for name, values in rule.items()}
    if not all(found.values()):
        raise InvalidParameter("forbidden", rule, "to name values of each column", _FORBIDDEN)
    return found


def _check_together(sizes: Mapping[str, int], zeros: Sequence[Factor]) -> None:
    """Refuses rules that each leave something possible, and together nothing: no model has such rows."""
    sets = [zero.attributes for zero in zeros]
    own = {name: size for name, size in sizes.items() if any(name in names for names in sets)}
    if not own:
        return
    if tree_size(own, sets) > MOST_TOGETHER:
        told = f"to have at most {MOST_TOGETHER:,} combinations of values in columns that rules connect"
        raise InvalidParameter("forbidden", list(own), told, _FORBIDDEN)
    try:
        BeliefPropagation(junction_tree(own, sets), (), zeros)
    except InvalidParameter:
        raise InvalidParameter("forbidden", list(own), "to allow some combination together", _FORBIDDEN) from None


def _from_dict(column: Mapping[str, Any]) -> ColumnDomain:
    kind, missing = column["kind"], column["missing"]
    if kind == "keys":
        keys = [date.fromisoformat(key) for key in column["keys"]] if column["days"] else column["keys"]
        return Keys(keys, missing=missing)
    if kind == "bins":
        bins = Bins(column["edges"], missing=missing, whole=column["whole"], within=column.get("within", "uniform"))
        return bins if column.get("shares") is None else bins.with_shares(column["shares"])
    if kind == "unknown keys":
        return UnknownKeys(column["most"], other=column["other"], missing=missing)
    if kind == "found keys":
        return FoundKeys(column["keys"], other=column["other"], missing=missing, paid=tuple(column["paid"]))
    if kind == "calendar":
        return Calendar(column["part"], years=column["years"], missing=missing)
    raise KeyError(kind)
