"""The statement of a split: kept rows counted by group and cell, a group's cells and counts as two lists."""

from __future__ import annotations

from discreet.engines.sql import grid
from discreet.engines.sql.contribution_bounds import Bounded
from discreet.engines.sql.expressions import Printer
from discreet.engines.sql.parts import Parts, nested, select
from discreet.plan.model.readings import Only, Reading, Split
from discreet.plan.model.types import Type


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
        made=reading.source is not None,
    )
    if reading.bounding is None:
        return _listed(parts, split, _rows(parts))
    bounded = Bounded(parts, reading.bounding)
    return f"{bounded.tables()} {_listed(parts, split, nested(bounded.kept([*parts.k, *parts.t])))}"


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
