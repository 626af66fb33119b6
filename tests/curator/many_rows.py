"""Questions that multiply one person's rows, on neighbours that differ in a person with few rows or with very many.

Tables are renamed, computed, filtered, put together and read several times; ids are written in several ways. What a
question joins is told by its shape, and whom neighbours differ in has between none and many times as many rows as a
cut leaves.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from discreet.plan.model.schema import Limits
from discreet.plan.model.types import Type
from discreet.privacy import Neighbours
from tests.curator.families import Data, Family
from tests.curator.fuzz import Draw, Question, Setting
from tests.curator.states import Joined, put
from tests.redteam.worlds import WITHOUT

TYPES = {
    "visits": {"patient": Type.TEXT, "ward": Type.TEXT, "day": Type.INT, "charge": Type.FLOAT},
    "labs": {"person": Type.TEXT, "ward": Type.TEXT, "day": Type.INT, "result": Type.FLOAT},
    "wards": {"ward": Type.TEXT, "floor": Type.INT},
}
PEOPLE = (("p1", " p1"), ("p2",), ("Zo\u00eb", "Zoe\u0308", "\u00a0Zo\u00eb"), ("p4", "p4\u2003"))
NOBODY = (None, "", "\u3000")


def person(draw: Draw, spellings: tuple[str | None, ...], most: int) -> Data:
    """Up to so many rows of one person in each table, under all spellings of their id."""

    def rows(id_: str, value: str, values: tuple[float, ...]) -> list[dict[str, object]]:
        return [
            {
                id_: draw.one(spellings),
                "ward": draw.one(("A", "A", "B", "C", None)),
                "day": draw.one((None, *range(8))),
                value: draw.one(values),
            }
            for _ in range(draw.below(most + 1))
        ]

    charges = (0.0, 40.0, 100.0, 1e300)
    return {"visits": rows("patient", "charge", charges), "labs": rows("person", "result", (-5.0, 3.5, 10.0))}


def crowd(draw: Draw) -> Data:
    found: Data = {"visits": [], "labs": [], "wards": []}
    for spellings in (*PEOPLE, NOBODY):
        found = put(found, person(draw, spellings, draw.one((1, 3, 9))))
    found["wards"] = [{"ward": draw.one(("A", "B", None)), "floor": draw.below(3)} for _ in range(draw.below(5))]
    return found


FAMILY = Family(
    account="patients",
    types=TYPES,
    units={"visits": "patient", "labs": "person"},
    accounts={},
    ids={"visits": ("patient",), "labs": ("person",)},
    bounds={"charge": (0, 100), "result": (-5, 10)},
    keys={"ward": ("A", "B")},
    links=(),
    lookups=((("visits", "ward"), ("wards", "ward")),),
    crowd=crowd,
    person=lambda draw, greedy: person(draw, ("p9", " p9", "p9\u2003"), 12 if greedy else 2),
    roots=("visits", "labs"),
    refused=(),
)


def world(seed: int) -> Joined:
    """Two neighbours: a person with few or many rows comes, goes, or becomes another one."""
    draw = Draw(seed)
    shared = crowd(draw)
    people = [FAMILY.person(draw, draw.chance(70)), FAMILY.person(draw, draw.chance(30))]
    neighbours = Neighbours.ADD_REMOVE if draw.chance(60) else Neighbours.REPLACE
    if neighbours is Neighbours.ADD_REMOVE:
        people[1] = {}
    people = people[::-1] if draw.chance(50) else people
    one, other = (put(shared, rows) for rows in people)
    alone = [
        {name: mine.get(name, []) if name in FAMILY.roots else rows for name, rows in state.items()}
        for state, mine in ((one, people[0]), (other, people[1]))
    ]
    return Joined(
        family=FAMILY,
        setting=Setting(unit=True, text_ids=True, delta=False, selects=False),
        neighbours=neighbours,
        limits=Limits(1 + draw.below(3), 1 + draw.below(3)),
        budget=draw.one(WITHOUT),
        one=one,
        other=other,
        alone=(alone[0], alone[1]),
    )


class Author:
    """Writes a question; every item has columns id, ward, day and x."""

    def __init__(self, draw: Draw) -> None:
        self.draw, self.made = draw, 0

    def alias(self) -> str:
        self.made += 1
        return f"a{self.made}"

    def item(self, *, plain: bool = False) -> str:
        """Rows of a table, renamed, perhaps filtered, ranked, put together or two tables' one after the other."""
        kinds: list[Callable[[], str]] = [self._rows, self._rows, self._filtered, self._ranked, self._union, self._fold]
        return f"({self.draw.one(kinds)() if not plain else self._rows()})"

    def _rows(self) -> str:
        return self.draw.one(
            (
                "SELECT patient AS id, ward, day, charge AS x FROM visits",
                "SELECT person AS id, ward, day, result AS x FROM labs",
            )
        )

    def _filtered(self) -> str:
        condition = self.draw.one(("day > 2", "ward = 'A'", "day IS NULL"))
        return f"{self._rows()} WHERE {condition}"

    def _ranked(self) -> str:
        place = "ROW_NUMBER() OVER (PARTITION BY id ORDER BY day)"
        return f"SELECT id, ward, {place} AS day, x FROM ({self._rows()}) AS {self.alias()}"

    def _union(self) -> str:
        return f"{self._rows()} UNION ALL {self._rows()}"

    def _fold(self) -> str:
        keys = self.draw.one(("ward, day", "day", "ward"))
        parts = [name if name in keys.split(", ") else f"MIN({name}) AS {name}" for name in ("ward", "day")]
        return f"SELECT id, {', '.join(parts)}, MAX(x) AS x FROM ({self._rows()}) AS {self.alias()} GROUP BY id, {keys}"

    def rows(self) -> tuple[str, str]:
        """What stands after FROM, and the name of its first item."""
        first = self.alias()
        text, ids = f"{self.item()} AS {first}", [first]
        for _ in range(self.draw.one((1, 1, 1, 2, 2, 3))):
            text += " " + self.draw.one((self._join, self._join, self._join, self._lateral, self._public))(ids)
        return text, first

    def _join(self, ids: list[str]) -> str:
        other, alias, word = self.draw.one(ids), self.alias(), self.draw.one(("JOIN", "JOIN", "LEFT JOIN"))
        on = [f"{alias}.id = {other}.id"] + [
            f"{alias}.{column} = {other}.{column}" for column in ("day", "ward") if self.draw.chance(35)
        ]
        ids += [alias] if word == "JOIN" else []
        return f"{word} {self.item()} AS {alias} ON {' AND '.join(on)}"

    def _lateral(self, ids: list[str]) -> str:
        other, inner, word = self.draw.one(ids), self.alias(), self.draw.one(("JOIN", "LEFT JOIN"))
        on = f"{inner}.id = {other}.id" + self.draw.one(("", f" AND {inner}.day < {other}.day"))
        end = self.draw.one(("", f" ORDER BY {inner}.day, {inner}.x, {inner}.ward LIMIT {1 + self.draw.below(3)}"))
        listed = ", ".join(f"{inner}.{column} AS {column}" for column in ("ward", "day", "x"))
        rows = f"SELECT {listed} FROM {self.item(plain=True)} AS {inner} WHERE {on}{end}"
        return f"{word} LATERAL ({rows}) AS {self.alias()} ON TRUE"

    def _public(self, ids: list[str]) -> str:
        other, alias = self.draw.one(ids), self.alias()
        return f"{self.draw.one(('JOIN', 'LEFT JOIN'))} wards AS {alias} ON {alias}.ward = {other}.ward"

    def condition(self, first: str) -> str:
        inner = self.alias()
        same = f"{inner}.id = {first}.id"
        rows = f"FROM {self.item(plain=True)} AS {inner} WHERE {same}"
        return self.draw.one(
            (
                "",
                "",
                f"WHERE {first}.day > 1",
                f"WHERE EXISTS (SELECT 1 {rows} AND {inner}.day = {first}.day)",
                f"WHERE EXISTS (SELECT 1 {rows} AND {inner}.day < {first}.day)",
                f"WHERE {first}.id IN (SELECT {inner}.id FROM {self.item(plain=True)} AS {inner})",
                f"WHERE (SELECT COUNT(*) {rows} AND {inner}.day <= {first}.day) > 1",
            )
        )


def question(seed: int) -> Question:
    """A count, a sum or a mean of joined rows."""
    draw = Draw(seed)
    author = Author(draw)
    rows, first = author.rows()
    where = author.condition(first)
    shown = draw.one(("COUNT(*) AS n", f"SUM({first}.x) AS s", f"COUNT(*) AS n, AVG({first}.x) AS m"))
    grouped = draw.chance(40)
    keys, group = (f"{first}.ward AS k, ", f" GROUP BY {first}.ward") if grouped else ("", "")
    return Question(
        sql=f"SELECT {keys}{shown} FROM {rows} {where}{group}",
        epsilon=Fraction(1),
        delta=Fraction(0),
        account=FAMILY.account,
        private=False,
        grouped=grouped,
    )
