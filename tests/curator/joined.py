"""Random questions over several tables: joins, SELECTs inside SELECTs, folds and windows, one person's rows at a time.

What stands after FROM is put together step by step; each step knows the columns of its rows, so that nearly all
questions are accepted. Texts about those columns are those of the fuzzer of one table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from discreet.plan.model.types import Type
from tests.curator.fuzz import Draw, Question, Texts, Writer
from tests.curator.scopes import LETTERS, Col, Rows
from tests.curator.states import Joined

REFUSED = 4  # per cent of questions that must be refused
ORDERED = ("ROW_NUMBER()", "RANK()", "DENSE_RANK()")
_PLAIN = {
    Type.INT: ("> 0", "IS NOT NULL", "<= 120", "<> 5", "BETWEEN 0 AND 1000"),
    Type.FLOAT: ("> 50", "< 500", ">= 0", "IS NOT NULL", "<> 7.5"),
    Type.TEXT: ("<> 'B'", "IN ('A', 'a', 'x', 'X', 'p', 'own')", "IS NOT NULL", "NOT LIKE '%z%'"),
    Type.DATE: ("> DATE '2026-01-01'", "IS NOT NULL"),
}


class Author:
    """Writes what stands after FROM, and the question about it."""

    def __init__(self, draw: Draw, world: Joined) -> None:
        self.draw, self.world, self.family = draw, world, world.family
        self.made = 0
        self.named: dict[str, Rows] = {}  # SELECTs under names of WITH

    def question(self) -> Question:
        """A whole question; a few must be refused."""
        refused = self.draw.chance(REFUSED)
        rows, condition = self.rows(2, top=True)
        found = _Asker(self.draw, self.world, rows, condition).question()
        if refused:
            return replace(found, sql=self.draw.one(self.family.refused), account=self.family.account, refused=True)
        sql = found.sql
        used: list[str] = []
        for name, select in reversed(self.named.items()):
            if re.search(rf"(FROM|JOIN|from|join)\s+{name}\b", " ".join([sql, *used])):
                used.insert(0, f"{name} AS ({select.text})")
        return replace(found, sql=f"WITH {', '.join(used)} {sql}" if used else sql, account=self.family.account)

    def alias(self) -> str:
        self.made += 1
        return f"a{self.made}"

    def texts(self, rows: Rows) -> Texts:
        return Texts(self.draw, rows.scope())

    def condition(self, rows: Rows) -> str:
        """A condition on columns of a row: mostly one that some rows satisfy."""
        texts = self.texts(rows)
        simple = [f"({c.ref} {test})" for c in rows.columns for test in _PLAIN.get(c.type, ())]
        if simple and self.draw.chance(65):
            return self.draw.one(simple)
        return next(text for text in iter(lambda: texts.text("B", 1), None) if texts.depends(text))

    # ------------------------------------------------------------------------------------------------------------ items

    def table(self, name: str) -> Rows:
        """A declared table under a name of its own."""
        alias, family = self.alias(), self.family
        columns = [
            Col(
                f"{alias}.{column}",
                kind,
                bounded=column in family.bounds and name not in family.public and column != self.world.undeclared,
                free=column == self.world.undeclared and name in family.own,
                keyed=column in family.keys and name not in family.public,
                origin=(name, column),
            )
            for column, kind in family.types[name].items()
        ]
        own = [f"{alias}.{column}" for column in family.ids.get(name, ())]
        ids = [next(c for c in columns if c.ref == ref) for ref in own]
        return Rows(f"{name} AS {alias}", tuple(c for c in columns if c not in ids), tuple(ids))

    def item(self, depth: int, *, identified: bool = False) -> Rows:
        """A table of the family's people, or a SELECT of their rows; perhaps one that says whose they are."""
        tables = [name for name in self.family.own if self.family.ids[name] or not identified]
        known = [name for name, select in self.named.items() if select.ids or not identified]
        if known and self.draw.chance(40):
            name, alias = self.draw.one(known), self.alias()
            return _as(self.named[name], alias, f"{name} AS {alias}")
        if depth > 0 and self.draw.chance(60):
            found = self.nested(depth - 1)
            if found.ids or not identified:
                return self._under_a_name(found)
        return self.table(self.draw.one(tables))

    def _under_a_name(self, select: Rows) -> Rows:
        alias = self.alias()
        if not self.draw.chance(30):
            return _as(select, alias, f"({select.text}) AS {alias}")
        self.named[alias] = select
        return _as(select, alias, alias)

    # ------------------------------------------------------------------------------------------------ joins and filters

    def rows(self, depth: int, *, top: bool = False) -> tuple[Rows, str]:
        """What stands after FROM, and after WHERE."""
        found = self.item(depth)
        joins = self.draw.one((0, 1, 1, 2) if top else (0, 0, 0, 1)) if self.world.setting.unit else 0
        for _ in range(joins):
            found = self.joined(found, depth)
        parts = [self.condition(found)] if found.columns and self.draw.chance(30) else []
        member = self.member(found, depth) if self.draw.chance(35) else ""
        if member and found.columns and self.draw.chance(35):
            member = self._inside(member, self.condition(found))
        parts += [member] if member else []
        return found, f"WHERE {' AND '.join(parts)}" if parts else ""

    def joined(self, left: Rows, depth: int) -> Rows:
        """With a public table, with other rows of the same people on their ids, or along a declared way."""
        ways: list[Callable[[], Rows | None]] = [
            lambda: self._looked_up(left),
            lambda: self._on_ids(left, depth) if left.ids else None,
            lambda: self._lateral(left, depth) if left.ids else None,
            lambda: self._linked(left),
        ]
        return self.draw.one(ways)() or left

    def _looked_up(self, left: Rows) -> Rows | None:
        pairs = [(c, there) for c in left.columns for here, there in self.family.lookups if c.origin == here]
        if not pairs:
            return None
        column, (name, other) = self.draw.one(pairs)
        right = self.table(name)
        return self._pair(left, right, [(column, _named(right, other))])

    def _on_ids(self, left: Rows, depth: int) -> Rows | None:
        right = self.item(depth - 1, identified=True)
        return self._pair(left, right, list(zip(left.ids, right.ids, strict=True)))

    def _lateral(self, left: Rows, depth: int) -> Rows | None:
        """The first of the same person's rows, or all of them, or what they add up to, for each row before."""
        inner, alias = self.item(depth - 1, identified=True), self.alias()
        on = [f"{b.ref} = {a.ref}" for a, b in zip(left.ids, inner.ids, strict=True)]
        on += self._across(left, inner)
        word = self.draw.one(("JOIN", "LEFT JOIN"))
        if self.draw.chance(30):
            columns, end = self.draw.some(self._folds(inner), 2), ""
        else:
            columns = self._some(inner, 2)
            order = ", ".join(c.ref + self.draw.one(("", " DESC")) for c in columns)
            end = self.draw.one((f" ORDER BY {order} LIMIT 1", f" ORDER BY {order} LIMIT 2", ""))
        listed = ", ".join(f"{c.ref} AS c{n}" for n, c in enumerate(columns))
        text = f"{word} LATERAL (SELECT {listed} FROM {inner.text} WHERE {' AND '.join(on)}{end}) AS {alias} ON TRUE"
        made = tuple(replace(c, ref=f"{alias}.c{n}", origin=None) for n, c in enumerate(columns))
        return Rows(f"{left.text} {text}", left.columns + made, left.ids)

    def _across(self, outside: Rows, inside: Rows) -> list[str]:
        """Perhaps a condition on columns of a row outside and of a row inside."""
        pairs = [(a, b) for a in outside.columns for b in inside.columns if a.type is b.type is not Type.BOOL]
        if not pairs or not self.draw.chance(60):
            return []
        a, b = self.draw.one(pairs)
        return [
            f"({b.ref} {self.draw.one(('<', '>=', '<>', '='))} {a.ref}{self.draw.one(('', f' OR {a.ref} IS NULL'))})"
        ]

    def _linked(self, left: Rows) -> Rows | None:
        ends = [*self.family.links, *((b, a) for a, b in self.family.links), *((a, a) for a, _ in self.family.links)]
        pairs = [(c, there) for c in left.columns for here, there in ends if c.origin == here]
        if not pairs:
            return None
        column, (name, other) = self.draw.one(pairs)
        right = self.table(name)
        return self._pair(left, right, [(column, _named(right, other))])

    def _pair(self, left: Rows, right: Rows, pairs: Sequence[tuple[Col, Col]]) -> Rows:
        outer = self.draw.chance(30)
        on = [f"{a.ref} = {b.ref}" for a, b in pairs]
        inside = Rows("", left.columns + right.columns)
        if not outer and inside.columns and self.draw.chance(15):
            on.append(self.condition(inside))
        text = f"{left.text} {'LEFT JOIN' if outer else 'JOIN'} {right.text} ON {' AND '.join(on)}"
        return Rows(text, inside.columns, left.ids or (() if outer else right.ids))

    def member(self, rows: Rows, depth: int) -> str:
        """IN or EXISTS over a public table or over rows of the same person; nothing where there is no way to."""
        links = [*self.family.links, *((b, a) for a, b in self.family.links)]
        ends = [*links, *links, *links, *self.family.lookups]
        pairs = [(mine, there) for mine in rows.columns for here, there in ends if mine.origin == here]
        if not pairs and not rows.ids:
            return ""
        if pairs and (not rows.ids or self.draw.chance(60)):
            column, (name, other) = self.draw.one(pairs)
            inner = self.table(name)
            mine, theirs = [column], [_named(inner, other)]
        else:
            inner = self.item(min(depth - 1, 1), identified=True)
            mine, theirs = list(rows.ids), list(inner.ids)
        kept = self.condition(inner) if self.draw.chance(75) and inner.columns else ""
        if len(mine) == 1 and self.draw.chance(50):
            where = f" WHERE {kept}" if kept else ""
            word = self.draw.one(("IN", "IN", "NOT IN"))
            return f"{mine[0].ref} {word} (SELECT {theirs[0].ref} FROM {inner.text}{where})"
        equal = [f"{b.ref} = {a.ref}" for a, b in zip(mine, theirs, strict=True)]
        across = self._across(rows, inner) if self.world.setting.unit else []  # a row that is a person has no others
        on = " AND ".join([*equal, *([kept] if kept else []), *across])
        if self.draw.chance(40) and self.world.setting.unit:
            call = self.draw.one(("COUNT(*)", f"COUNT(DISTINCT {theirs[0].ref})", f"COUNT({theirs[0].ref})"))
            return f"(SELECT {call} FROM {inner.text} WHERE {on}) {self.draw.one(('= 0', '= 1', '> 1', '< 3'))}"
        return f"{self.draw.one(('', '', 'NOT '))}EXISTS (SELECT 1 FROM {inner.text} WHERE {on})"

    def _inside(self, member: str, other: str) -> str:
        """IN or EXISTS inside an expression."""
        ways = (f"({other} OR {member})", f"CASE WHEN {member} THEN {other} ELSE TRUE END", f"(({member}) IS NOT TRUE)")
        return self.draw.one(ways)

    # ------------------------------------------------------------------------------------------------------ SELECTs

    def nested(self, depth: int) -> Rows:
        """A SELECT whose rows are one person's each."""
        rows, where = self.rows(depth)
        ways = [self._projected]
        if rows.ids:
            ways += [self._folded, self._folded, self._windowed, self._once, self._qualified, self._first_of_each]
        if len(rows.ids) == 1:
            ways += [self._in_both]
        if self._owned(rows):
            ways += [self._by_owned]
        if self.world.setting.unit and self.draw.chance(15):
            return self._union(rows, where)
        return self.draw.one(ways)(rows, where)

    def _select(self, rows: Rows, where: str, columns: Sequence[Col], *, word: str = "SELECT", end: str = "") -> Rows:
        """A SELECT of ids, where there are some, and of columns under new names."""
        ids = tuple(replace(c, ref=f"i{n}") for n, c in enumerate(rows.ids))
        named = tuple(replace(c, ref=f"c{n}") for n, c in enumerate(columns))
        listed = [f"{c.ref} AS i{n}" for n, c in enumerate(rows.ids)] + [
            f"{c.ref} AS c{n}" for n, c in enumerate(columns)
        ]
        clauses = [f"{word} {', '.join(listed)} FROM {rows.text}", where, end]
        return Rows(" ".join(clause for clause in clauses if clause), named, ids)

    def _some(self, rows: Rows, most: int = 4) -> list[Col]:
        return self.draw.some(rows.columns, most) if rows.columns else [Col("1", Type.INT, bounded=True)]

    def _projected(self, rows: Rows, where: str) -> Rows:
        return self._select(rows, where, [*self._some(rows), *self._computed(rows)])

    def _once(self, rows: Rows, where: str) -> Rows:
        return self._select(rows, where, self._some(rows, 2), word="SELECT DISTINCT")

    def _computed(self, rows: Rows) -> list[Col]:
        texts, kind = self.texts(rows), self.draw.one((Type.INT, Type.FLOAT, Type.BOOL, Type.TEXT, Type.DATE))
        options = [
            Col(texts.text(LETTERS[kind], 2), kind),
            Col(f"LEAST(GREATEST({texts.text('N', 1)}, 0), 9)", Type.INT, bounded=True),
            Col(f"GREATEST(LEAST({texts.text('F', 1)}, 100), -20)", Type.FLOAT, bounded=True),
        ]
        return self.draw.some(options, 2) if self.draw.chance(60) else []

    def _folded(self, rows: Rows, where: str) -> Rows:
        keys = self.draw.some(rows.columns, 1) if rows.columns and self.draw.chance(30) else []
        folds = self.draw.some(self._folds(rows), 3)
        group = ", ".join(c.ref for c in (*rows.ids, *keys))
        having = (
            f" HAVING {self.draw.one(('COUNT(*) > 1', 'COUNT(*) BETWEEN 1 AND 3'))}" if self.draw.chance(20) else ""
        )
        return self._select(rows, where, [*keys, *folds], end=f"GROUP BY {group}{having}")

    def _folds(self, rows: Rows) -> list[Col]:
        found = [Col("COUNT(*)", Type.INT, bounded=True, limited=True)]
        for c in (c for c in self._some(rows) if c.type is not Type.BOOL):
            by = self.draw.one(rows.columns or [c])
            calls = [(f"COUNT({c.ref})", Type.INT, True), (f"COUNT(DISTINCT {c.ref})", Type.INT, True)]
            calls += [(f"SUM({c.ref})", c.type, True), (f"AVG({c.ref})", Type.FLOAT, True)] if c.bounded else []
            found += [Col(text, kind, bounded=bounded, limited=True) for text, kind, bounded in calls]
            texts = [f"{name}({c.ref})" for name in ("MIN", "MAX")]
            texts += [f"{name}({c.ref}, {by.ref})" for name in ("ARG_MIN", "ARG_MAX")]
            texts += [f"{name}({c.ref} ORDER BY {by.ref}{self.draw.one(('', ' DESC'))})" for name in ("FIRST", "LAST")]
            found += [replace(c, ref=text, free=False, origin=None) for text in texts]
        return found

    def _owned(self, rows: Rows) -> list[Col]:
        """Columns that tell whose row it is, by a declared way, and are no ids."""
        ends = {end for link in self.family.links for end in link}
        return [c for c in rows.columns if c.origin in ends]

    def _by_owned(self, rows: Rows, where: str) -> Rows:
        """Folds by a key that is one person's, such as that of an order."""
        key, folds = self.draw.one(self._owned(rows)), self.draw.some(self._folds(rows), 3)
        return self._select(replace(rows, ids=()), where, [key, *folds], end=f"GROUP BY {key.ref}")

    def _qualified(self, rows: Rows, where: str) -> Rows:
        """The first rows of each person in an order that leaves no choice but between rows that are alike."""
        order = ", ".join(c.ref + self.draw.one(("", " DESC")) for c in self._some(rows, 2))
        call = f"{self.draw.one(ORDERED)} OVER (PARTITION BY {', '.join(c.ref for c in rows.ids)} ORDER BY {order})"
        end = f"QUALIFY {call} {self.draw.one(('= 1', '<= 2', '> 1', 'BETWEEN 2 AND 3'))}"
        return self._select(rows, where, self._some(rows), end=end)

    def _first_of_each(self, rows: Rows, where: str) -> Rows:
        """One row of each person, or of each person and key."""
        keys = [*rows.ids, *(self.draw.some(rows.columns, 1) if rows.columns and self.draw.chance(30) else [])]
        order = ", ".join(c.ref + self.draw.one(("", " DESC")) for c in [*keys, *self._some(rows, 2)])
        word = f"SELECT DISTINCT ON ({', '.join(c.ref for c in keys)})"
        return self._select(rows, where, self._some(rows), word=word, end=f"ORDER BY {order}")

    def _in_both(self, rows: Rows, where: str) -> Rows:
        """People who are here and there, or only here; no column but their id."""
        other, condition = self.rows(0)
        if len(other.ids) != 1:
            return self._projected(rows, where)
        one, two = (self._select(side, kept, []) for side, kept in ((rows, where), (other, condition)))
        return replace(one, text=f"{one.text} {self.draw.one(('INTERSECT', 'EXCEPT'))} {two.text}")

    def _windowed(self, rows: Rows, where: str) -> Rows:
        partition = [*rows.ids, *(self.draw.some(rows.columns, 1) if rows.columns and self.draw.chance(25) else [])]
        order = ", ".join(c.ref + self.draw.one(("", " DESC")) for c in self._some(rows, 2))
        by = f"OVER (PARTITION BY {', '.join(c.ref for c in partition)} ORDER BY {order})"
        whole = [f"{call} {by}" for call in (*ORDERED, "COUNT(*)")]
        made = [Col(text, Type.INT) for text in whole]
        made += [Col(f"LEAST(GREATEST({text}, 0), 9)", Type.INT, bounded=True, limited=True) for text in whole]
        for c in self._some(rows, 2):
            calls = ("LAG", "LEAD", "FIRST_VALUE", "MAX")
            made += [Col(f"{name}({c.ref}) {by}", c.type, bounded=c.bounded, limited=c.limited) for name in calls]
            if c.bounded:
                made += [Col(f"LEAST(SUM({c.ref}) {by}, 99)", c.type), Col(f"AVG({c.ref}) {by}", Type.FLOAT)]
        return self._select(rows, where, [*self._some(rows, 1), *self.draw.some(made, 3)])

    def _union(self, rows: Rows, where: str) -> Rows:
        """Rows of two tables with columns of the same types."""
        other, condition = self.rows(0)
        if bool(rows.ids) != bool(other.ids):
            return self._projected(rows, where)
        shared = [kind for kind in (Type.INT, Type.FLOAT, Type.TEXT) if rows.of(kind) and other.of(kind)]
        pairs = [(self.draw.one(rows.of(kind)), self.draw.one(other.of(kind))) for kind in shared]
        pairs = pairs or [(Col("1", Type.INT, bounded=True), Col("2", Type.INT, bounded=True))]
        one = self._select(rows, where, [a for a, _ in pairs])
        two = self._select(other, condition, [b for _, b in pairs])
        columns = tuple(
            replace(c, bounded=a.bounded and b.bounded, free=False, keyed=False, origin=None)
            for c, (a, b) in zip(one.columns, pairs, strict=True)
        )
        return Rows(f"{one.text} UNION ALL {two.text}", columns, one.ids)


def _as(select: Rows, alias: str, text: str) -> Rows:
    columns, ids = (tuple(replace(c, ref=f"{alias}.{c.ref}") for c in part) for part in (select.columns, select.ids))
    return Rows(text, columns, ids)


def _named(rows: Rows, column: str) -> Col:
    return next(c for c in (*rows.columns, *rows.ids) if c.origin is not None and c.origin[1] == column)


class _Asker(Writer):
    """Asks about rows that are given, with keys that are public, follow from public ranges, or are private."""

    def __init__(self, draw: Draw, world: Joined, rows: Rows, condition: str) -> None:
        beside = [f"(SELECT COUNT(*) FROM {name} AS b)" for name in world.family.own]
        super().__init__(draw, world.setting, rows.scope(beside), rows.text)
        self.rows, self.condition, self.told = rows, condition, False

    def _where(self) -> str:
        return self.condition

    def question(self) -> Question:
        """Keys that are not declared may turn out to be private, whatever was meant."""
        found = super().question()
        return replace(found, private=self.told and bool(found.delta))

    def _keys(self, private: bool) -> list[str]:
        keys = self._some_keys(private)
        self.told = not {*keys} <= {c.ref for c in self.rows.columns if c.keyed}
        return keys

    def _some_keys(self, private: bool) -> list[str]:
        if private and self.rows.columns:
            rounded = [f"ROUND({c.ref}, 1)" for c in self.rows.of(Type.FLOAT)]
            if rounded and self.draw.chance(15):
                return [self.draw.one(rounded)]
            return list(dict.fromkeys(self.key() for _ in range(self.draw.one((1, 1, 2)))))
        declared = [c.ref for c in self.rows.columns if c.keyed]
        ranges = [f"QUARTER({c.ref})" for c in self.rows.of(Type.DATE)]
        ranges += [f"WIDTH_BUCKET({c.ref}, 0, 100, 2)" for c in self.rows.bounded if not c.limited]
        told = self.text("B", 1)
        ranges += [f"CASE WHEN {told} THEN 'yes' ELSE 'no' END"] if self.depends(told) else []
        if not declared + ranges or not self.draw.chance(60):
            return []
        return self.draw.some([*declared, *ranges], self.draw.one((1, 1, 2)))


def question(seed: int, world: Joined) -> Question:
    """The question of a seed."""
    return Author(Draw(seed), world).question()
