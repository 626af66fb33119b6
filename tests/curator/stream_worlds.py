"""Random streams and neighbouring tables: columns that are called, written and put together in misleading ways.

The unit of privacy is made of one to three columns. Other columns are called like its parts, in SELECTs inside, in
public tables and in other tables of the same people; one unit's texts are written in several ways, and other units'
look alike. Whose row it is, is decided here by the definition alone: equal parts, texts in NFC without white space.
"""

from __future__ import annotations

import datetime as dt
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from discreet.curator import Curator
from discreet.curator.streams.curated_stream import CuratedStream
from discreet.engines import Memory
from discreet.engines.abstract_engine import Engine
from discreet.errors import UnsupportedQuery
from discreet.privacy import Budget, events
from discreet.stream.gaussian_factor import GaussianFactor
from discreet.stream.laplace_tree import LaplaceTree
from tests.curator.fuzz import Draw
from tests.redteam.salts import same_salt

Row = dict[str, Any]
Tables = dict[str, list[Row]]
Give = Callable[[list[Row], Mapping[str, str]], Any]

START = dt.date(2026, 1, 1)
TYPES = {
    "patient": "text",
    "clinic": "int",
    "day": "date",
    "at": "timestamp",
    "turn": "int",
    "w": "text",
    "flag": "bool",
    "until": "date",
    "ward": "text",
    "cost": "int",
}
ODD_COLUMNS = ("e\u0301", "\u00e9", "Day ")
"""Columns of a table: decomposed, composed, in another case with white space."""
ODD_NAMES = ('"day "', '"d\u0430y"')
"""Names that a question gives: with white space, with a Cyrillic letter."""
MAY_BE_PARTS = ("patient", "clinic", "day", "at", "turn", "w", "flag")
SPACES = (" ", "\u3000", "\t", "\u00a0")
LETTERS = ("e\u0301", "\u00e9", "E\u0301", "\u0435\u0301", "e", "E", "\uff11", "1", "\u0661", "\u200b1", "01")
"""Decomposed and composed, in another case, in another script, without the accent; digits, a space of no width."""


def same_text(text: str) -> str:
    """The form in which two texts of an id are compared."""
    white = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
    return unicodedata.normalize("NFC", text).strip(white)


def unit_of(row: Row, parts: Sequence[str]) -> tuple[Any, ...] | None:
    """Whose row it is; None if it is nobody's."""
    found = tuple(same_text(row[part]) if isinstance(row[part], str) else row[part] for part in parts)
    return None if any(part is None or part == "" for part in found) else found


@dataclass(frozen=True)
class Col:
    """A column that a question may name.

    Attributes:
        ref: how it is named.
        type: its type.
        origin: which column of `visits` it is, as it is; empty if it is none.
        of_part: whether a part of the unit's id went into it.
    """

    ref: str
    type: str
    origin: str = ""
    of_part: bool = False


@dataclass(frozen=True)
class World:
    """What is declared, the rows of each period, and a question.

    Attributes:
        parts: the columns of the unit in `visits`.
        other_parts: those of the same unit in `stays`.
        versions: the rows of both tables, as they are when each period is released.
        sql: the question.
        how: the stream is started so.
        declared: what is declared of both tables.
        units: one unit, with troublesome rows, and some of the others.
        entering: under replacement, the rows that come in the place of those of a unit.
    """

    parts: tuple[str, ...]
    other_parts: tuple[str, ...]
    types: dict[str, str]
    versions: tuple[Tables, ...]
    sql: str
    how: dict[str, Any]
    declared: dict[str, Any]
    budget: Any
    units: tuple[tuple[Any, ...], ...]
    entering: Tables

    @property
    def horizon(self) -> int:
        """How many periods are released."""
        return len(self.versions)

    @property
    def replaces(self) -> bool:
        return self.declared.get("neighbours") == "replace"

    def neighbour(self, unit: tuple[Any, ...]) -> World:
        """The same without one unit, or with other rows in the place of its rows."""
        return replace(self, versions=tuple(self._without(unit, tables) for tables in self.versions))

    def _without(self, unit: tuple[Any, ...], tables: Tables) -> Tables:
        parts = {"visits": self.parts, "stays": self.other_parts}
        left = {name: [r for r in rows if unit_of(r, parts[name]) != unit] for name, rows in tables.items()}
        return {name: rows + self.entering[name] for name, rows in left.items()} if self.replaces else left


# ------------------------------------------------------------------------------------------------------------- tables


class Maker:
    """Makes a world of draws."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.horizon = 3 + draw.below(3)
        self.parts = self._parts()
        self.others = tuple(name for name in TYPES if name not in self.parts)
        names = draw.some([*self.others, *ODD_COLUMNS, *self.parts], 12)
        spare = [name for name in ODD_COLUMNS if name not in names]
        self.other_parts = tuple([*names, *spare][: len(self.parts)])
        self.other_types = self._other_types()
        self.texts = 0

    def _parts(self) -> tuple[str, ...]:
        """One to three columns, mostly several, and often a text among them."""
        found = self.draw.some(MAY_BE_PARTS, 3)
        if len(found) < 3 and self.draw.chance(60):
            found.append(self.draw.one([name for name in MAY_BE_PARTS if name not in found]))
        if self.draw.chance(40) and not {"patient", "w"} & set(found):
            found[self.draw.below(len(found))] = self.draw.one(("patient", "w"))
        return tuple(found)

    def _other_types(self) -> dict[str, str]:
        """Of `stays`: the unit's parts under other names, and other columns under the names of parts."""
        types = {name: TYPES[part] for name, part in zip(self.other_parts, self.parts, strict=True)}
        for name in (*self.parts, "day", "turn", "ward"):
            types.setdefault(name, "text" if name == "ward" else self.draw.one(("date", "int", "timestamp", "text")))
        return types

    def value(self, kind: str, spread: int) -> Any:
        """A value of a type, one of so many that are near the beginning."""
        place = self.draw.below(spread) - (spread > 4)
        if kind == "int":
            return place
        if kind == "bool":
            return place % 2 == 1
        if kind == "date":
            return START + dt.timedelta(days=place)
        if kind == "timestamp":
            return dt.datetime.combine(START, dt.time()) + dt.timedelta(days=place, hours=23 * self.draw.below(2))
        return self.draw.one(LETTERS) if spread > 4 else self.draw.one((*LETTERS[:2], "1"))

    def spelled(self, text: str) -> str:
        """The same text of an id, written otherwise: in any normal form, with white space around it."""
        written = self.draw.one((unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text), text))
        pad = self.draw.one(SPACES) * self.draw.below(3)
        return pad + written if self.draw.chance(30) else written + pad

    def row(self, types: dict[str, str], parts: Sequence[str], own: Sequence[Any], spread: int) -> Row:
        """A row of a unit: its own parts, perhaps written otherwise, and whatever else."""
        made = {name: self.value(kind, spread) for name, kind in types.items()}
        if "ward" in made and "ward" not in parts:
            made["ward"] = self.draw.one("AB")
        if "cost" in made and "cost" not in parts:
            made["cost"] = self.draw.below(4)
        for name, value in zip(parts, own, strict=True):
            made[name] = self.spelled(value) if isinstance(value, str) else value
        return made

    def rows_of(self, own: Sequence[Any], count: int) -> Tables:
        """The rows of one unit in both tables."""
        spread = self.horizon + 2
        return {
            "visits": [self.row(TYPES, self.parts, own, spread) for _ in range(count)],
            "stays": [self.row(self.other_types, self.other_parts, own, spread) for _ in range(1 + count // 2)],
        }

    def versions(self, tables: Sequence[Tables]) -> tuple[Tables, ...]:
        """The rows in each period: all of them, those that came so far, or those of each period alone."""
        growth = self.draw.one(("all", "all", "growing", "own"))
        found = []
        for period in range(self.horizon):
            kept: Tables = {"visits": [], "stays": []}
            for one in tables:
                for name, rows in one.items():
                    came = [(place % self.horizon, row) for place, row in enumerate(rows)]
                    kept[name] += [
                        row
                        for at, row in came
                        if growth == "all" or at == period or (growth == "growing" and at < period)
                    ]
            found.append(kept)
        return tuple(found)

    def ids(self) -> tuple[Any, ...]:
        return tuple(self.value(TYPES[part], 4 if TYPES[part] == "text" else self.horizon) for part in self.parts)

    def world(self) -> World:
        draw = self.draw
        one = self.ids()
        others = [self.ids() for _ in range(3)]
        tables = [self.rows_of(one, 7 * self.horizon), *(self.rows_of(other, 1 + draw.below(4)) for other in others)]
        units = {unit_of(dict(zip(self.parts, own, strict=True)), self.parts) for own in (one, *others)}
        asked = Question(self)
        made = World(
            parts=self.parts,
            other_parts=self.other_parts,
            types=self.other_types,
            versions=self.versions(tables),
            sql=asked.sql(),
            how=asked.how(),
            declared=self.declared(),
            budget=self.budget,
            units=tuple(
                sorted((unit for unit in units if unit is not None), key=lambda unit: (unit != _same(one), str(unit)))
            ),
            entering=self.rows_of(self.ids(), 2 * self.horizon) if draw.chance(40) else {"visits": [], "stays": []},
        )
        return replace(made, how=made.how | {"horizon": None}) if draw.chance(15) else made

    def declared(self) -> dict[str, Any]:
        draw = self.draw
        self.budget = draw.one(
            (Budget(rho=10**6), Budget(rho=10**6), Budget(epsilon=10**4), Budget(epsilon=900, delta="1e-6"))
        )
        relation = {"neighbours": "replace"} if draw.chance(30) else {}
        return {"max_groups": draw.one((1, 1, 2, 3)), "max_rows": draw.one((1, 1, 2)), **relation}


def _same(own: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(same_text(value) if isinstance(value, str) else value for value in own)


# ----------------------------------------------------------------------------------------------------------- questions


class Question:
    """A question about rows that are put together in a misleading way."""

    def __init__(self, maker: Maker) -> None:
        self.maker, self.draw = maker, maker.draw
        self.whole = False  # whether the period is a whole number

    def sql(self) -> str:
        draw = self.draw
        before, source, columns = self.rows()
        key, self.whole = self.period(columns)
        wards = [c.ref for c in columns if c.origin == "ward"]
        costs = [c.ref for c in columns if c.origin == "cost"]
        ward = draw.one(wards) if wards and draw.chance(35) else ""
        number = f"SUM({draw.one(costs)})" if costs and draw.chance(40) else "COUNT(*)"
        shown = f"{key} AS k, {ward} AS l" if ward else f"{key} AS k"
        return f"{before}SELECT {shown}, {number} AS n FROM {source} GROUP BY k{', l' if ward else ''}"

    def how(self) -> dict[str, Any]:
        draw, horizon = self.draw, self.maker.horizon
        found: dict[str, Any] = {"horizon": horizon, "every": 1 if self.whole else "day"}
        found["start"] = draw.below(2) if self.whole else START
        if draw.chance(20):
            found["window"] = 2
        if draw.chance(40):
            found["periods"] = draw.one((1, 2, horizon))
        return found

    def period(self, columns: Sequence[Col]) -> tuple[str, bool]:
        """What tells the period: mostly a column that is called like a part of the unit, or made of one."""
        named = [c for c in columns if c.ref.split(".")[-1].strip('"') in self.maker.parts]
        made = [c for c in columns if c.of_part]
        found = self.draw.one(self.draw.one((named, named, named, made, made)) or columns)
        others = [c for c in columns if c.type == found.type]
        return self.draw.one(_period(found, self.draw.one(others))), found.type not in ("date", "timestamp")

    # ------------------------------------------------------------------------------------------------------------- rows

    def rows(self) -> tuple[str, str, list[Col]]:
        """What stands before SELECT, what stands after FROM, and the columns."""
        often = (self.plain, self.renamed, self.renamed, self.with_, self.public, self.public, self.joined)
        seldom = (self.union, self.union, self.mixed, self.folded, self.window, self.twice, self.left)
        made = self.draw.one((*often, *seldom))
        return made()

    def visits(self, alias: str = "") -> list[Col]:
        parts = self.maker.parts
        return [Col(f"{alias}{name}", kind, name, name in parts) for name, kind in TYPES.items()]

    def plain(self) -> tuple[str, str, list[Col]]:
        return "", "visits", self.visits()

    def select(self, columns: Sequence[Col], count: int = 6) -> tuple[str, list[Col]]:
        """Some columns under names of others, a few of them computed."""
        names = self.draw.some([*TYPES, *ODD_NAMES], 9)
        chosen = [self.draw.one(columns) for _ in names[:count]]
        made, outputs = [], []
        for name, column in zip(names, chosen, strict=False):
            computed = self.draw.one(_computed(column, self.draw.one(columns))) if self.draw.chance(25) else ""
            made.append(f"{computed or column.ref} AS {name}")
            outputs.append(Col(name, column.type, "" if computed else column.origin, column.of_part))
        return ", ".join(made), outputs

    def renamed(self) -> tuple[str, str, list[Col]]:
        text, columns = self.select(self.visits())
        return "", f"(SELECT {text} FROM visits) AS s", columns

    def twice(self) -> tuple[str, str, list[Col]]:
        text, columns = self.select(self.visits(), 9)
        again, outer = self.select(columns)
        return "", f"(SELECT {again} FROM (SELECT {text} FROM visits) AS t) AS s", outer

    def with_(self) -> tuple[str, str, list[Col]]:
        text, columns = self.select(self.visits())
        return f"WITH s AS (SELECT {text} FROM visits) ", "s", columns

    def public(self) -> tuple[str, str, list[Col]]:
        """A public table with a date and a number under the names of two parts, several rows for each ward."""
        kind = self.draw.one(("JOIN", "LEFT JOIN"))
        before, source, inner = ("", "visits AS v", self.visits("v."))
        if self.draw.chance(50):  # so that no other column has the name of the public one
            names = [f"{name} AS c{place}" for place, name in enumerate(TYPES)]
            inner = [replace(c, ref=f"v.c{place}") for place, c in enumerate(self.visits())]
            source = f"(SELECT {', '.join(names)} FROM visits) AS v"
        ward = next(c.ref for c in inner if c.origin == "ward")
        columns = [*inner, *(Col(f"p.{name}", kind_) for name, kind_ in public_types(self.maker.parts).items())]
        return before, f"{source} {kind} pub AS p ON {ward} = p.spot", columns

    def joined(self) -> tuple[str, str, list[Col]]:
        return self._with_stays("JOIN")

    def left(self) -> tuple[str, str, list[Col]]:
        return self._with_stays("LEFT JOIN")

    def _with_stays(self, kind: str) -> tuple[str, str, list[Col]]:
        pairs = zip(self.maker.parts, self.maker.other_parts, strict=True)
        same = " AND ".join(f'v.{one} = s."{other}"' for one, other in pairs)
        parts = self.maker.other_parts
        columns = [Col(f's."{name}"', type_, "", name in parts) for name, type_ in self.maker.other_types.items()]
        return "", f"visits AS v {kind} stays AS s ON {same}", [*columns, *self.draw.some(self.visits("v."), 5)]

    def union(self) -> tuple[str, str, list[Col]]:
        """Two SELECTs whose columns have the same types and names, and come from different columns."""
        columns = self.pairs()
        sides = [", ".join(f"{pair[side]} AS {name}" for name, pair in columns.items()) for side in (0, 1)]
        both = " UNION ALL ".join(f"SELECT {side} FROM visits" for side in sides)
        return "", f"({both}) AS s", [Col(name, pair[2], of_part=True) for name, pair in columns.items()]

    def mixed(self) -> tuple[str, str, list[Col]]:
        """A part of the id in some rows, another column in others."""
        columns = self.pairs()
        made = [f"CASE WHEN {x} = {y} THEN {x} ELSE {y} END AS {name}" for name, (x, y, _) in columns.items()]
        outputs = [Col(name, pair[2], of_part=True) for name, pair in columns.items()]
        return "", f"(SELECT {', '.join(made)} FROM visits) AS s", outputs

    def pairs(self) -> dict[str, tuple[str, str, str]]:
        """Parts of the id, each with a column of its type and the type, by names that they get."""
        names = self.draw.some([*TYPES, *ODD_NAMES], 9)
        names += ["p", "q", "r"] if len(names) < len(self.maker.parts) else []
        found = {}
        for name, part in zip(names, self.maker.parts, strict=False):
            like = [other for other, kind in TYPES.items() if kind == TYPES[part] and other != part]
            both = (part, self.draw.one(like or [part]))
            found[name] = (*(both if self.draw.chance(70) else both[::-1]), TYPES[part])
        return found

    def folded(self) -> tuple[str, str, list[Col]]:
        """One row for each unit, or for each unit and key, under misleading names."""
        name, key = self.draw.some([*self.maker.parts, *ODD_NAMES], 2)[0], self.draw.one(("turn", "day", "ward"))
        made, kind = self.draw.one(
            (("MIN(day)", "date"), ("MAX(turn)", "int"), ("MAX(at)", "timestamp"), ("COUNT(*)", "int"))
        )
        ids, wide = ", ".join(self.maker.parts), self.draw.chance(50)
        columns = [Col(name, kind), *([Col("z", TYPES[key], key, key in self.maker.parts)] if wide else [])]
        keyed = f", {key} AS z" if wide else ""
        group = f"GROUP BY {ids}{', ' + key if wide else ''}"
        return "", f"(SELECT {made} AS {name}{keyed} FROM visits {group}) AS s", columns

    def window(self) -> tuple[str, str, list[Col]]:
        """A value of the row before, or a row's place, under the name of a part."""
        name = self.draw.one([*self.maker.parts, ODD_NAMES[0]])
        over = f"OVER (PARTITION BY {', '.join(self.maker.parts)} ORDER BY cost)"
        made, kind = self.draw.one(
            ((f"LAG(day) {over}", "date"), (f"ROW_NUMBER() {over}", "int"), (f"LAG(turn) {over}", "int"))
        )
        return "", f"(SELECT {made} AS {name}, ward AS z FROM visits) AS s", [Col(name, kind), Col("z", "text", "ward")]


def public_types(parts: Sequence[str]) -> dict[str, str]:
    """Of a public table: a day and a number, called like the first parts of the unit."""
    names = [*parts, "when", "often"][:2]
    return {names[0]: "date", names[1]: "int"}


def _computed(column: Col, other: Col) -> list[str]:
    """The type stays what it is."""
    x, y = column.ref, other.ref if other.type == column.type else column.ref
    return [f"COALESCE({x}, {y})", f"COALESCE({y}, {x})", f"CASE WHEN {x} = {y} THEN {x} ELSE {y} END"]


def _period(column: Col, other: Col) -> list[str]:
    x, y = column.ref, other.ref
    whole = [
        x,
        x,
        f"ABS({x})",
        f"{x} + 1",
        f"({x} + {y}) % 4",
        f"COALESCE({x}, {y})",
        f"CASE WHEN {x} > 1 THEN {y} ELSE {x} END",
    ]
    return {
        "date": [x, x, x, f"COALESCE({x}, {y})", f"CASE WHEN {x} > {y} THEN {x} ELSE {y} END"],
        "timestamp": [x, x, f"CAST({x} AS DATE)", f"COALESCE({x}, {y})"],
        "int": whole,
        "bool": [f"CASE WHEN {x} THEN 1 ELSE 2 END", f"CASE WHEN {x} = {y} THEN 1 ELSE 2 END"],
        "text": [
            f"LENGTH({x})",
            f"LENGTH({x})",
            f"CASE WHEN {x} = '1' THEN 1 ELSE 2 END",
            f"CAST({x} AS INT)",
            f"LENGTH({x}) + LENGTH({y})",
        ],
    }[column.type]


# ------------------------------------------------------------------------------------------------------------- streams


def world(seed: int) -> World:
    """The world of a seed."""
    return Maker(Draw(seed)).world()


def rows_as_they_are(rows: list[Row], types: Mapping[str, str]) -> Any:  # noqa: ARG001 - of other engines
    """Gives the rows to the referee."""
    return rows


def protect(curator: Curator, made: World, period: int, give: Give) -> None:
    """Declares the tables as they are in a period."""
    tables = made.versions[period]
    for name, unit, types in (("visits", made.parts, TYPES), ("stays", made.other_parts, made.types)):
        curator.protect(
            give(tables[name] or [dict.fromkeys(types)], types),
            name=name,
            unit=list(unit) if len(unit) > 1 else unit[0],
            account="people",
            types=types,
            bounds={"cost": (0, 3)} if name == "visits" and "cost" not in made.parts else {},
            keys={"ward": ["A", "B"]} if name == "visits" else {},
            budget=made.budget,
            version=str(period),
            **made.declared,
        )


def started(made: World, engine: Engine | None = None, give: Give = rows_as_they_are) -> tuple[Curator, CuratedStream]:
    """The stream of a world, before its first period."""
    curator = Curator(engine=engine or Memory())
    protect(curator, made, 0, give)
    types = public_types(made.parts)
    rows = [
        {"spot": ward, **dict(zip(types, (START + dt.timedelta(days=t), t), strict=True))}
        for ward in "AB"
        for t in range(made.horizon)
    ]
    columns = {"spot": "text", **types}
    curator.public(give(rows, columns), name="pub", types=columns)
    spent = {"rho": "0.5"} if hasattr(made.budget, "rho") else {"epsilon": 1}
    return curator, curator.stream(made.sql, **made.how, **spent)


def measured(
    made: World, engine: Engine | None = None, give: Give = rows_as_they_are
) -> tuple[CuratedStream, list[list[int]]]:
    """The stream of a world, and all exact integers that met noise in it, period by period and line by line."""
    curator, stream = started(made, engine, give)
    found: list[list[int]] = []
    add = stream._sums._noise

    def noise(values: list[int]) -> list[int]:
        found.append(list(values))
        return add(values)

    stream._sums._noise = noise
    for period in range(made.horizon):
        if period:
            protect(curator, made, period, give)
        stream.release()
    return stream, found


def share_of_paid(stream: CuratedStream, one: list[list[int]], other: list[list[int]]) -> Fraction:
    """The true loss between two sequences of measurements under the noise that is drawn, over what was charged.

    Of Gaussian noise both are a rho: the squared distance over 2 sigma^2. Of Laplace noise both are an epsilon: each
    distance over the scale of its level. Rationals throughout.
    """
    mechanism, event = stream._sums._mechanism, stream.event
    moves = [[a - b for a, b in zip(x, y, strict=True)] for x, y in zip(one, other, strict=True)]
    if isinstance(mechanism, GaussianFactor):
        assert isinstance(event, events.Gaussian)
        squared = sum(Fraction(move, 1 << mechanism.factor.bits) ** 2 for line in moves for move in line)
        return squared / mechanism.mechanism.sigma**2 * event.noise_multiplier**2
    assert isinstance(mechanism, LaplaceTree)
    parts = event.events if isinstance(event, events.Composed) else (event,)
    assert all(isinstance(part, events.DiscreteLaplace) for part in parts)
    paid = sum(part.sensitivity / part.scale for part in parts)  # type: ignore[attr-defined] # see above
    scales = [mechanism.steps / epsilon for epsilon in mechanism.epsilons]
    lost = sum(abs(move) / scale for line in moves for move, scale in zip(line, scales, strict=False))
    return Fraction(lost / paid)


@dataclass(frozen=True)
class Pair:
    """How far one unit moves a stream, as a share of what was paid for.

    Attributes:
        seed: of the world.
        unit: which is in one table only.
        share: above 1 more than was paid for.
        told: whether the unit's id tells the period.
        remembers: whether it must be remembered who was counted.
    """

    seed: int
    unit: tuple[Any, ...]
    share: Fraction
    told: bool
    remembers: bool


def pairs_of(seed: int) -> list[Pair]:
    """All neighbours of a world that leave out one of its units; none if the question is refused.

    The stream costs the same on both sides, which is a public fact.
    """
    made = world(seed)
    try:
        stream, one = measured(made)
    except UnsupportedQuery:
        return []
    found = []
    for unit in made.units:
        without, other = measured(made.neighbour(unit))
        assert without.event == stream.event, (seed, unit)
        plan, share = stream._plan, share_of_paid(stream, one, other)
        found.append(Pair(seed, unit, share, plan._in_one_period, plan.remembers))
    return found


def check_paid(seeds: Iterable[int]) -> list[Pair]:
    """Pairs of several worlds, of which none moves a stream farther than was paid for."""
    with same_salt():
        found = [pair for seed in seeds for pair in pairs_of(seed)]
    worst = max(found, key=lambda pair: pair.share)
    assert worst.share <= 1, f"{float(worst.share):.2f} times what was paid, by {worst.unit}: {world(worst.seed).sql}"
    return found
