"""The statement of a split: kept rows counted by group and cell, a group's cells and counts as two lists.

Where contributions are bounded, the rows of units that are surely within the limits are all kept; of the others,
ranks and places are computed row by row, as `choosing` defines them.
"""

from __future__ import annotations

from discreet.engines import grid
from discreet.engines.bounded import Bounded
from discreet.engines.parts import Parts, nested, select
from discreet.engines.sql import Printer
from discreet.plan.reading import Bounding, Only, Reading, Split
from discreet.plan.types import Type


def split_sql(reading: Reading, split: Split, printer: Printer) -> str:
    """The whole statement, for a reading that has been checked."""
    keys = [printer.name(printer.print(key)) for key in reading.keys]
    argument = printer.name(printer.print(split.argument))
    parts = Parts(
        printer=printer,
        keys=tuple((key, node.type) for key, node in zip(keys, reading.keys, strict=True)),
        where=None if reading.where is None else printer.print(reading.where),
        terms=(("sum", grid.steps(printer, split.term, argument, split.argument.type)),),
        public_keys=reading.public_keys,
        counts_units=False,
    )
    if reading.bounding is None:
        return _listed(parts, split, _rows(parts))
    kept = _Kept(parts, reading.bounding)
    return kept.tables() + _listed(parts, split, "kept")


def _rows(parts: Parts) -> str:
    """All rows: nobody has more than one."""
    text = select(
        *parts.keyed, *parts.termed, source=parts.printer.rows(), where=parts.where.sql if parts.where else ""
    )
    public = parts.public("b")
    return nested(select("*", source=nested(text, "b"), where=public) if public else text)


def _listed(parts: Parts, split: Split, rows: str) -> str:
    """Cells and counts of each group, from the kept rows."""
    found = nested(select(*parts.k, f"t0 - ({split.low}) AS s", source=rows, where="t0 IS NOT NULL"), "z")
    if split.only is not None:
        found = _only(parts, split.only, found)
    counted = select(
        *(f"z.{k}" for k in parts.k),
        f"z.s >> {split.shift} AS c",
        "COUNT(*) AS n",
        source=found,
        group=[str(i + 1) for i in range(len(parts.keys) + 1)],
    )
    cells = ["list(c ORDER BY c) AS cells", "list(n ORDER BY c) AS counts"]
    having = "" if parts.keys else "COUNT(*) > 0"
    return select(*parts.k, *cells, source=nested(counted), group=parts.k, having=having)


def _only(parts: Parts, only: Only, rows: str) -> str:
    """Rows in the cells that are listed: a join with each of them once, which is faster than EXISTS."""
    kinds = [*(kind for _, kind in parts.keys), Type.INT, Type.INT]
    lists = [list(values) for values in zip(*((*key, first, last) for key, first, last in only.places), strict=True)]
    lists = lists or [[] for _ in kinds]
    table = parts.dialect.public_table([parts.printer.pass_on(values) for values in lists], kinds)
    keys = [f"p{i}" for i in range(len(parts.keys))]
    first, last = f"p{len(keys)}", f"p{len(keys) + 1}"
    cells = select(*keys, parts.dialect.run.format(first, last) + " AS w", source=nested(table))
    same = [
        f"q.{p} {'IS NOT DISTINCT FROM' if None in values else '='} z.{k}"
        for p, k, values in zip(keys, parts.k, lists, strict=False)
    ]
    on = " AND ".join([*same, f"q.w = z.s >> {only.shift}"])
    return f"{rows} JOIN {nested(select('DISTINCT *', source=nested(cells)), 'q')} ON {on}"


class _Kept(Bounded):
    """The rows that bounding keeps."""

    def __init__(self, parts: Parts, bounding: Bounding) -> None:
        super().__init__(parts, bounding)

    def tables(self) -> str:
        """The common table expressions, the last of which is `kept`."""
        once, inline = self._parts.dialect.once, self._parts.dialect.inline
        tables = [("base", inline, self._base()), ("suspects", once, self._suspects())]
        tables += [("kept", inline, f"{self._innocents()} UNION ALL {self._of_suspects()}")]
        return f"WITH {', '.join(f'{name} {how} ({text})' for name, how, text in tables)} "

    def _innocents(self) -> str:
        own = [*self._parts.k, *self._parts.t]
        return select(*own, source="base AS b", where="NOT EXISTS (SELECT 1 FROM suspects AS s WHERE s.u = b.u)")

    def _of_suspects(self) -> str:
        """Rows of a suspect's first groups, and of a group with too many rows those in the places that stay."""
        parts, groups, rows = self._parts, self._limits.groups, self._limits.rows
        own = [*parts.k, *parts.t]
        among_suspects = select("u", *own, source="base", where="u IN (SELECT u FROM suspects)")
        ranked = self._rank.of(self._rank.number("u"), nested(among_suspects), ["u", *own])
        same = ", ".join(["b.u", *(f"b.{k}" for k in parts.k)])
        place = f"ROW_NUMBER() OVER (PARTITION BY {same} ORDER BY {self._order()}) - 1 AS place"
        columns = [*own, "r", f"COUNT(*) OVER (PARTITION BY {same}) AS n", place]
        if parts.keys:
            order = ", ".join(["r", *self._ordered_keys()])
            columns.append(f"DENSE_RANK() OVER (PARTITION BY u ORDER BY {order}) AS g")
        numbered = nested(select(*columns, source=nested(select("*", source=ranked), "b")))
        moved = "place" if rows == 1 else f"{parts.dialect.wide.format('place')} * {rows}"
        stays = f"(n <= {rows} OR ({moved} + r % n) % n >= n - {rows})"
        return select(*own, source=numbered, where=stays + (f" AND g <= {groups}" if parts.keys else ""))
