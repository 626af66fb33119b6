"""Random questions that are accepted: every function, clause and way of writing that the gates let through.

A rule is a text with places in braces; a place names a kind, and one of the kind's rules is written there. Capital
letters are types (N whole numbers, F doubles, B conditions, T texts, D dates, S timestamps), small ones their literals.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from discreet.audit.queries.recorder import AuditedQuery
from discreet.noise import SeededBits, uniform_below
from discreet.plan.model.schema import Limits
from discreet.plan.model.types import Type

T = TypeVar("T")

TYPES = {
    "patient": Type.INT,
    "ward": Type.TEXT,
    "kind": Type.TEXT,
    "age": Type.INT,
    "charge": Type.FLOAT,
    "debt": Type.FLOAT,
    "weight": Type.FLOAT,
    "before": Type.INT,
    "stars": Type.INT,
    "day": Type.DATE,
    "seen": Type.TIMESTAMP,
    "smoker": Type.BOOL,
}
BOUNDS = {"age": (0, 120), "charge": (0, 1000), "debt": (-10, 10), "stars": (1, 5)}
KEYS = {"ward": ("A", "B", "C"), "smoker": (True, False), "stars": (1, 2, 3)}

DELTAS = (Fraction(1, 10**6), Fraction(1, 100))

_PLACE = re.compile(r"\{(\w+)\}")
_NAME = re.compile(r"[a-z_][a-z0-9_.]*")
_DEEPEST = 3


class Draw:
    """Choices from seeded bits."""

    def __init__(self, seed: int) -> None:
        self.bits = SeededBits(seed)

    def below(self, count: int) -> int:
        return int(uniform_below(count, bits=self.bits))

    def one(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]

    def some(self, options: Sequence[T], most: int) -> list[T]:
        """Between one and so many different ones."""
        left = list(options)
        return [left.pop(self.below(len(left))) for _ in range(1 + self.below(min(most, len(left))))]

    def chance(self, percent: int) -> bool:
        return self.below(100) < percent


_OF_VISITS: dict[str, str] = {
    "N": "age|before|stars|{n}",
    "F": "charge|debt|weight|{f}",
    "B": "smoker|TRUE|({N} > {n})|(ward = {t})|({F} <= {f})|{I}",
    "T": "ward|kind|{t}",
    "D": "day|{d}",
    "S": "seen|{s}",
    "c": "ward|kind",
    "b": "age|charge|debt|stars|age|charge|1|2.5",
}
_LITERALS: dict[str, str] = {
    "n": "0|1|2|(-3)|7|10|40|120|(-9223372036854775808)|9223372036854775807|CAST(NULL AS BIGINT)",
    "f": "0.0|0.5|(-1.5)|2.25|100.0|1e3|1e300|(-1e-300)|1.7976931348623157e308",
    "t": "''|'A'|'b'|' a '|'fever'|'it''s'|'12'|'-0.5'|'2024-02-29'|'%'|'é李'",
    "d": "DATE '2024-02-29'|DATE '0001-01-01'|DATE '9999-12-31'|CAST('1970-01-01' AS DATE)",
    "s": "TIMESTAMP '2024-02-29 12:30:00'|TIMESTAMP '0001-01-01 00:00:00'|TIMESTAMP '1969-12-31 23:59:59.5'",
    "l": "0|1|-2|44|9223372036854775807",
    "p": "'%'|'A%'|'_'|'%e%r'|''|'a_c'|'%''%'",
    "r": "'2024-02-29'|DATE '1970-01-01'|'9999-12-31'",
    "q": "1|2|0.5|-3|0.125",
}
_RULES: dict[str, str] = {
    "N": "({N} + {N})|({N} - {N})|({N} * {N})|({N} // {N})|({N} % {N})|MOD({N}, {N})|-({N})|ABS({N})|"
    "GREATEST({N}, {N}, {N})|LEAST({N}, {N})|COALESCE({N}, {N})|IFNULL({N}, {n})|NULLIF({N}, {N})|CAST({F} AS INT)|"
    "CAST({T} AS BIGINT)|TRY_CAST({B} AS INT)|({F})::INT|YEAR({D})|EXTRACT(MONTH FROM {D})|DATE_PART('hour', {S})|"
    "QUARTER({S})|DAY({D})|ISODOW({D})|EXTRACT(ISODOW FROM {S})|HOUR({S})|LENGTH({T})|IF({B}, {N}, {N})|"
    "CASE WHEN {B} THEN {N} WHEN {B} THEN {N} ELSE {N} END|CASE {N} WHEN {N} THEN {N} WHEN {N} THEN {N} END|"
    "({N} DIV {N})|({D} - {D})|DATE_DIFF('day', {D}, {S})|DATE_DIFF('month', {D}, {D})|DATEDIFF('year', {S}, {D})|"
    "WEEK({D})|EXTRACT(DOW FROM {S})|DAYOFYEAR({D})|STRPOS({T}, {T})|SIGN({F})|DATE_DIFF('week', {D}, {D})|"
    "DATE_DIFF('hour', {S}, {S})|DATE_DIFF('minute', {D}, {S})|EXTRACT(DAY FROM {S} - {S})|"
    "EXTRACT(YEAR FROM AGE({D}, {S}))|DATE_PART('month', AGE({D}, {D}))",
    "F": "({F} + {F})|({F} - {N})|({F} * {F})|({F} / {F})|({N} / {N})|-({F})|ABS({F})|ROUND({F})|ROUND({F}, 2)|"
    "ROUND({F}, -1)|FLOOR({F})|CEIL({N} / {F})|CEILING({F})|GREATEST({F}, {N})|LEAST({F}, {F}, {F})|"
    "COALESCE({F}, {N}, {F})|NULLIF({F}, {F})|CAST({N} AS DOUBLE)|CAST({T} AS DECIMAL(18, 3))|TRY_CAST({T} AS FLOAT)|"
    "CASE WHEN {B} THEN {F} ELSE {N} END|CASE WHEN {B} THEN {F} END|IF({B}, {F}, {F})|SQRT({F})|POWER({F}, 2)|"
    "({N} ^ 3)|POW({F}, -1)|TRUNC({F})|POWER({N}, 0)|({N} / NULLIF({N}, 0))|"
    "LN({F})|LOG({N})|LOG(2, {F})|EXP({F})|POWER({F}, {N})|POWER({F}, 0.3)|SIN({F})|ACOS({F})|ATAN2({F}, {N})|"
    "EPOCH({S} - {S})|EXTRACT(EPOCH FROM {D})",
    "B": "({N} = {N})|({N} < {F})|({F} >= {N})|({F} <> {F})|({T} = {T})|({T} < {T})|({D} <= {D})|({D} > {r})|"
    "({S} > {S})|({S} <> {s})|({B} AND {B})|({B} OR {B})|(NOT {B})|({B} = {B})|({N} IS NULL)|({F} IS NOT NULL)|"
    "({T} IS NULL)|({D} IS NOT NULL)|({S} IS NULL)|({B} IS TRUE)|({B} IS NOT FALSE)|({B} IS NULL)|"
    "({N} BETWEEN {N} AND {N})|({F} NOT BETWEEN {F} AND {F})|({D} BETWEEN {r} AND {D})|({T} BETWEEN {t} AND {T})|"
    "({N} IN ({l}, {l}, {l}))|({T} NOT IN ({t}, {t}))|({D} IN ({r}, {r}))|({T} LIKE {p})|({T} NOT LIKE {p})|"
    "COALESCE({B}, FALSE)|IF({B}, {B}, {B})|NULLIF({B}, {B})|({T} ILIKE {p})|({T} NOT ILIKE {p})|"
    "({T} ~ '^[a-c][0-9]?')|({T} !~* 'B+$')|({T} SIMILAR TO '[ab]%')|({T} LIKE '!%_' ESCAPE '!')|"
    "STARTS_WITH({T}, {T})|ENDS_WITH({T}, {t})|CONTAINS({T}, {T})|({D} < {D} + INTERVAL 7 DAY)|"
    "({N} > '40')|('2.5' <= {F})",
    "T": "UPPER({T})|LOWER({T})|TRIM({T})|SUBSTRING({T}, {N}, {N})|SUBSTRING({T} FROM {N} FOR {N})|SUBSTR({T}, {N})|"
    "CAST({N} AS TEXT)|CAST({B} AS VARCHAR)|CAST({D} AS TEXT)|COALESCE({T}, {T})|GREATEST({T}, {T})|LEAST({T}, {T})|"
    "NULLIF({T}, {T})|CASE WHEN {B} THEN {T} ELSE {T} END|CASE {T} WHEN {T} THEN {T} END|IF({B}, {T}, {T})|"
    "({T} __ {T})|CONCAT({T}, {N}, {T})|LEFT({T}, 2)|RIGHT({T}, 2)|REPLACE({T}, {T}, {T})|SPLIT_PART({T}, {T}, {N})|"
    "REGEXP_EXTRACT({T}, '([a-z]+)[0-9]?', 1)|BTRIM({T}, 'ab')|"
    "LTRIM({T})|RTRIM({T})|LPAD({T}, 3, '0')|RPAD({T}, 4, 'ab')|DAYNAME({D})|MONTHNAME({S})|STRFTIME({D}, '%Y-%m')|"
    "TO_CHAR({S}, 'DD/MM/YYYY')|STRFTIME({D}, '%d %B %Y')",
    "D": "DATE_TRUNC('year', {D})|DATE_TRUNC('quarter', {S})|DATE_TRUNC('month', {D})|DATE_TRUNC('week', {D})|"
    "DATE_TRUNC('day', {S})|CAST({S} AS DATE)|CAST({c} AS DATE)|({c})::DATE|LEAST({D}, {D})|GREATEST({D}, {D})|"
    "COALESCE({D}, {D})|NULLIF({D}, {D})|CASE WHEN {B} THEN {D} END|({D} + {N})|({D} - {N})|({D} + INTERVAL 1 MONTH)|"
    "({D} - INTERVAL '2 weeks')|DATE_ADD({D}, INTERVAL 3 YEAR)|LAST_DAY({D})|({D} + INTERVAL ({N}) DAY)",
    "S": "({S} + INTERVAL 1 QUARTER)|CAST({D} AS TIMESTAMP)|({S} - INTERVAL 30 DAYS)|"
    "COALESCE({S}, {S})|GREATEST({S}, {S})|LEAST({S}, {S})|NULLIF({S}, {S})|CASE WHEN {B} THEN {S} ELSE {S} END",
    "c": "TRIM({c})|SUBSTRING({c}, {N}, {N})|UPPER({c})|COALESCE({c}, {t})",
    "b": "ABS({b})|({b} + {q})|({b} * {q})|({b} / 8)|({b} - {b})|-({b})|ROUND({b})|ROUND({b}, 1)|FLOOR({b})|CEIL({b})|"
    "COALESCE({b}, 0)|NULLIF({b}, {l})|CASE WHEN {B} THEN {b} ELSE 0 END|CASE WHEN {B} THEN {b} END|IF({B}, 1, 0)|"
    "GREATEST(LEAST({F}, 100), -20)|LEAST(GREATEST({N}, 0), 9)|MONTH({D})|HOUR({S})|({N} % 7)|CAST({b} AS INT)|"
    "CAST({B} AS INT)|(CAST({b} AS INT) // 3)|COALESCE({b}, {b})|GREATEST({b}, {b})|POWER({b}, 2)|SIGN({b})|"
    "TRUNC({b})|SQRT(ABS({b}))|DAYOFYEAR({D})|EXTRACT(DOW FROM {D})|({b} / NULLIF(stars, 0))|LN({b})|"
    "LOG10(1 + ABS({b}))|EXP(LEAST({b}, 3))|POWER(ABS({b}), 0.3)|ATAN({b})|COS({F})|CBRT({b})",
    # What is released, and what is made of it.
    "A": "COUNT(*)|COUNT(*)|COUNT(1)|COUNT({c})|COUNT({N})|COUNT({F})|COUNT({D})|SUM({b})|SUM({b})|AVG({b})|AVG({b})|"
    "{U}|COUNT(*) FILTER (WHERE {B})|COUNT_IF({B})|SUM({b}) FILTER (WHERE {B})|AVG({b}) FILTER (WHERE {B})|"
    "COUNT({c}) FILTER (WHERE {B})|COUNT(DISTINCT {c})|COUNT(DISTINCT {N})|COUNT(DISTINCT {D}) FILTER (WHERE {B})|"
    "VARIANCE({b})|STDDEV({b})|VAR_POP({b}) FILTER (WHERE {B})|SKEWNESS({b})|"
    "CORR({b}, {b})|COVAR_POP({b}, {b})|COVAR_SAMP({b}, {b}) FILTER (WHERE {B})|REGR_SLOPE({b}, {b})|"
    "REGR_INTERCEPT({b}, {b})",
    "O": "{A}|{A}|{A}|({A} / {A})|ROUND({A}, 2)|(100 * {A} - 3)|CAST({A} AS INT)|GREATEST({A}, 0)|ABS({A})|-({A})|"
    "COALESCE({A} / {A}, 0)|CASE WHEN {A} > 10 THEN 'many' ELSE 'few' END|({A} - {A})|CASE WHEN {A} > 3 THEN {A} END|"
    "NULLIF({A}, 0)|LEAST({A}, {A} / 2)|({A} > 3)|MODE({B})|MODE(CASE WHEN {B} THEN 'x' WHEN {B} THEN 'y' END)|"
    "MODE(MONTH({D}))",
    "H": "({A} > 1)|({A} / {A} < 2.5)|({A} BETWEEN -5 AND 50)|NOT ({A} < 0)|({A} > 0 OR {A} <= 5)|({A} IS NOT NULL)",
}
_BY_NUMBER = ("(patient = 7)", "(patient <> 7)", "(patient IN (1, 7))", "(patient % 2 = 1)", "(patient IS NULL)")
_BY_TEXT = ("(patient = '7')", "(TRIM(patient) <> '7')", "(patient NOT IN ('1', ' 7 '))", "(patient LIKE '%7%')")
KINDS_OF_KEYS = ("N", "T", "B", "D", "S")


def listed(table: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """The rules of each kind."""
    """Rules by kind; a sign | that is part of a rule is written _."""
    return {kind: tuple(rule.replace(" __ ", " || ") for rule in text.split("|")) for kind, text in table.items()}


LITERALS, RULES = listed(_LITERALS), listed(_RULES)


@dataclass(frozen=True, kw_only=True)
class Question(AuditedQuery):
    """A question with its budget and limits, and what the checks must know of it."""

    private: bool
    grouped: bool
    account: str = "visits"
    refused: bool = False


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What the table declares: a unit column, ids as texts, a budget with delta, private keys that may be selected."""

    unit: bool
    text_ids: bool
    delta: bool
    selects: bool


@dataclass(frozen=True, kw_only=True)
class Scope:
    """The rows that a text speaks of.

    Args:
        leaves: the simplest texts of each kind, beside literals.
        columns: names that depend on the row and not on whose it is.
        units: what counts people.
        by_id: conditions on whose row it is.
        rules: how other texts of each kind are made.
    """

    leaves: Mapping[str, Sequence[str]]
    columns: frozenset[str]
    units: str
    by_id: Sequence[str]
    rules: Mapping[str, Sequence[str]]


class Texts:
    """Writes random texts of a kind about the rows of a scope."""

    def __init__(self, draw: Draw, scope: Scope) -> None:
        self.draw, self.scope = draw, scope

    def text(self, kind: str, depth: int = _DEEPEST) -> str:
        """A text of a kind; the deeper, the simpler."""
        rules = self.scope.rules
        deep = kind in rules and depth > 0 and (kind in "AOH" or not self.draw.chance(35))
        simple = LITERALS[kind] if kind in LITERALS else self.scope.leaves.get(kind, ())
        rule = self.draw.one(rules[kind] if deep else simple)
        spent = 0 if kind in "OH" else 1
        return _PLACE.sub(lambda place: self._place(place[1], depth - spent), rule)

    def _place(self, kind: str, depth: int) -> str:
        if kind == "U":
            return self.scope.units
        if kind == "I":
            return self.draw.one(self.scope.by_id)
        return self.text("A", max(depth, 1)) if kind == "A" else self.text(kind, depth)

    def key(self) -> str:
        """An expression that depends on the row and not on whose it is."""
        while True:
            found = self.text(self.draw.one(KINDS_OF_KEYS), 2)
            if self.depends(found):
                return found

    def depends(self, text: str) -> bool:
        """Whether a text depends on the row and not on whose it is."""
        words = set(_NAME.findall(re.sub(r"'[^']*'", "", text)))
        return bool(words & self.scope.columns) and not words & {
            n for by in self.scope.by_id for n in _NAME.findall(by)
        }


def of_visits(setting: Setting) -> Scope:
    """The rows of the one table."""
    return Scope(
        leaves=listed(_OF_VISITS),
        columns=frozenset(TYPES) - {"patient"},
        units="COUNT(DISTINCT patient)" if setting.unit else "COUNT(*)",
        by_id=_BY_TEXT if setting.text_ids else _BY_NUMBER,
        rules=RULES,
    )


class Writer(Texts):
    """Writes a question about rows."""

    def __init__(self, draw: Draw, setting: Setting, scope: Scope, source: str = "visits") -> None:
        super().__init__(draw, scope)
        self.setting, self.source = setting, source

    def question(self) -> Question:
        """A whole question."""
        draw = self.draw
        private = self.setting.selects and draw.chance(35)
        keys = self._keys(private)
        outputs = [f"{self.text('O', 2)} AS o{i}" for i in range(1 + (draw.below(3) if draw.chance(50) else 0))]
        shown = [f"{key} AS k{i}" for i, key in enumerate(keys)] if not keys or draw.chance(85) else []
        select = f"SELECT {', '.join(shown + outputs)} FROM {self.source}"
        clauses = [select, self._where(), self._group(keys, bool(shown))]
        if draw.chance(20):
            clauses.append(f"HAVING {self.text('H', 1)}")
        sql = " ".join(clause for clause in clauses if clause)
        sql = self._around(sql) if draw.chance(15) else sql + self._end(len(shown), len(outputs))
        return Question(
            sql=self._spelt(sql),
            epsilon=draw.one((Fraction(1), Fraction(1, 10), Fraction(1, 3), Fraction(40))),
            delta=draw.one(DELTAS) if self.setting.delta and (private or draw.chance(50)) else Fraction(0),
            limits=self._limits() if draw.chance(50) else None,
            private=private,
            grouped=bool(keys),
        )

    def _limits(self) -> Limits:
        if self.draw.chance(40):
            return Limits(total=self.draw.one((1, 2, 3, 5, 40)))
        return Limits(self.draw.one((1, 2, 3, 40)), 1 + self.draw.below(3))

    def _keys(self, private: bool) -> list[str]:
        if private:
            return list(
                dict.fromkeys(self.key() if self.draw.chance(70) else "kind" for _ in range(1 + self.draw.below(2)))
            )
        return self.draw.some(tuple(KEYS), 2) if self.draw.chance(50) else []

    def _where(self) -> str:
        return f"WHERE {self.text('B', self.draw.one((1, 1, 2, 3)))}" if self.draw.chance(60) else ""

    def _group(self, keys: list[str], shown: bool) -> str:
        if not keys:
            return ""
        ways = (keys, [str(i + 1) for i in range(len(keys))], [f"k{i}" for i in range(len(keys))])
        return f"GROUP BY {', '.join(self.draw.one(ways) if shown else keys)}"

    def _end(self, keys: int, outputs: int) -> str:
        names = [*(f"k{i}" for i in range(keys)), *(f"o{i}" for i in range(outputs)), str(keys + outputs)]
        order = ", ".join(name + self.draw.one(("", " DESC", " ASC NULLS LAST")) for name in self.draw.some(names, 2))
        return (f" ORDER BY {order}" if self.draw.chance(25) else "") + (
            f" LIMIT {self.draw.below(4)}" if self.draw.chance(10) else ""
        )

    def _around(self, inner: str) -> str:
        """A SELECT over the released columns."""
        kept = self.draw.one(("", " WHERE o0 IS NOT NULL", " WHERE NOT (t.o0 IS NULL) ORDER BY whole LIMIT 3"))
        return f"SELECT o0 AS whole, COALESCE(t.o0, o0) AS other FROM ({inner}) AS t{kept}"

    def _spelt(self, sql: str) -> str:
        """The same in other letters, or with more space."""
        if self.draw.chance(10) and "'" not in sql and "n" in sql:
            sql = sql.lower()
        return sql.replace(" FROM visits ", "\n  FROM  Visits\n") if self.draw.chance(10) else sql


def question(seed: int, setting: Setting) -> Question:
    """The question of a seed."""
    return Writer(Draw(seed), setting, of_visits(setting)).question()
