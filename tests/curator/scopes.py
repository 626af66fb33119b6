"""Columns in scope of a question over several tables, and the texts that may be written about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from discreet.plan.model.types import Type
from tests.curator.families import Column
from tests.curator.fuzz import RULES, Scope, listed

LETTERS = {Type.INT: "N", Type.FLOAT: "F", Type.TEXT: "T", Type.BOOL: "B", Type.DATE: "D", Type.TIMESTAMP: "S"}
_RELEASED = (
    "COUNT(*)|COUNT(*)|COUNT({c})|COUNT({N})|COUNT(DISTINCT {c})|COUNT(DISTINCT {N})|{U}|{U}|SUM({b})|"
    "SUM({b})|SUM({b})|AVG({b})|COUNT(*) FILTER (WHERE {B})|SUM({b}) FILTER (WHERE {B})|COUNT_IF({B})|MEDIAN({b})|"
    "QUANTILE({b}, 0.9)|QUANTILE({b}, 0.25)|MIN({b})|MAX({b})|MEDIAN({b}) FILTER (WHERE {B})|{V}"
)
_SPREADS = (
    "VARIANCE({b})|STDDEV({b})|COVAR_POP({b}, {b})|CORR({b}, {b})|REGR_SLOPE({b}, {b})|VAR_POP({b})|SKEWNESS({b})|"
    "COUNT({F})"
)
_OVER_RELEASED = (
    "{A}|{A}|{A}|{A}|{A}|ROUND({A}, 2)|(100 * {A} - 3)|GREATEST({A}, 0)|CASE WHEN {A} > 10 THEN 'many' ELSE 'few' END|"
    "NULLIF({A}, 0)|({A} / {A})|({A} > 3)|MODE({B})|MODE(QUARTER({D}))|"
    "RANK() OVER (ORDER BY {A} DESC)|SUM({A}) OVER ()|"
    "({A} - LAG({A}) OVER (ORDER BY {A}))|AVG({A}) OVER (ORDER BY {A} ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)|"
    "({A} / {Z})"
)
_BOUNDED = {"b": tuple(rule for rule in RULES["b"] if "stars" not in rule)}  # a column of one table
RELEASED = {**RULES, **listed({"A": _RELEASED, "O": _OVER_RELEASED}), **_BOUNDED}


@dataclass(frozen=True)
class Col:
    """A column in scope: how it is written, and what is public about it."""

    ref: str
    type: Type
    bounded: bool = False
    limited: bool = False  # by limits, which are no public range of keys
    keyed: bool = False
    free: bool = False  # a number without declared bounds, which are chosen privately
    origin: Column | None = None


@dataclass(frozen=True)
class Rows:
    """Rows in scope: what stands after FROM, its columns, and those of them that say whose row it is."""

    text: str
    columns: tuple[Col, ...]
    ids: tuple[Col, ...] = ()

    def of(self, *kinds: Type) -> list[Col]:
        return [column for column in self.columns if column.type in kinds]

    @property
    def bounded(self) -> list[Col]:
        return [column for column in self.columns if column.bounded]

    def scope(self, beside: Sequence[str] = ("2",)) -> Scope:
        """What texts may say about a row, and which numbers may stand beside released ones."""
        leaves = {letter: [c.ref for c in self.of(kind)] for kind, letter in LETTERS.items()}
        for letter in "NFTDS":
            leaves[letter] = leaves[letter] * 6 + [f"{{{letter.lower()}}}"]
        leaves["B"] += ["TRUE", "({N} > {n})", "({F} <= {f})", "({T} = {t})", "{I}"]
        leaves["c"] = [c.ref for c in self.of(Type.TEXT)] or ["{t}"]
        leaves["V"], leaves["Z"] = _SPREADS.split("|"), list(beside)
        leaves["b"] = [c.ref for c in self.bounded] * 3 + [c.ref for c in self.columns if c.free] * 3 + ["1", "2.5"]
        by_id = [f"({c.ref} {test})" for c in self.ids if c.type is Type.TEXT for test in _OF_IDS] or ["TRUE"]
        units = f"COUNT(DISTINCT {self.ids[0].ref})" if len(self.ids) == 1 else "COUNT(*)"
        if len(self.ids) > 1:
            units = f"COUNT(DISTINCT ({', '.join(c.ref for c in self.ids)}))"
        refs = frozenset(c.ref for c in self.columns)
        return Scope(leaves=leaves, columns=refs, units=units, by_id=by_id, rules=RELEASED)


_OF_IDS = ("= 'p9'", "<> 'c9'", "LIKE '%9%'", "IS NOT NULL", "NOT IN ('x', ' p9')")
