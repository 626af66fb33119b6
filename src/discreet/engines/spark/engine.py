"""The distributed engine: Spark, in a session of ours, on a cluster, on this machine or behind Spark Connect.

Guarantees: only SQL that `statement` printed reaches it, with settings that are checked before each read; the whole
aggregation is Spark's, and exact integers come back; nothing that it prints or raises is passed on. Tasks may be tried
again or twice at once: a read is a function of the rows, and noise is added afterwards, where the question was asked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from discreet import check
from discreet.dataclass import dataclass
from discreet.engines.abstract_engine import Engine, check_columns
from discreet.engines.spark import python_functions, session
from discreet.engines.spark.dialect import DIALECT
from discreet.engines.spark.sources import SourceDescription, SparkColumn, describe_source, origins_of, source_of
from discreet.engines.sql.dialect import Dialect
from discreet.engines.sql.relation_printer import StoredTable
from discreet.engines.sql.statement import FetchedTable, Statement, translate_reading
from discreet.errors import DiscreetError, InvalidParameter
from discreet.plan.model.group_columns import GroupColumns
from discreet.plan.model.readings import Reading
from discreet.plan.model.types import Type
from discreet.progress import stoppable

_UNREADABLE = "Its type, or one of its values, cannot be read: convert the column, or see schema_of."


@dataclass(frozen=True)
class _Table:
    """A view of ours, its columns, and the name under which rows are kept for it, if they are."""

    view: str
    columns: Mapping[str, SparkColumn]
    kept: str


class Spark(Engine):
    """Spark, from a laptop to a cluster.

    Args:
        session: a SparkSession of PySpark, from which a new one is made; or an address: "spark://host:7077" of a
            cluster, "sc://host" of a Spark Connect server, "local[2]" for two threads of this machine. None takes the
            session that is running, or starts one.
        deadline: seconds after which a question is stopped; None for none.

    >>> Spark("local[1]", deadline=60).dialect.total("x")
    'SUM(CAST(x AS DECIMAL(38,0)))'
    """

    dialect: Dialect = DIALECT

    def __init__(self, session: Any = None, *, deadline: float | None = None) -> None:
        super().__init__()
        if deadline is not None:
            check.positive(deadline=deadline)
        self._given, self._deadline = session, deadline
        self._tables: dict[str, _Table] = {}
        self._open: Any = None
        self._is_own = False
        self._lock = threading.RLock()

    def schema_of(self, source: Any) -> dict[str, Type]:
        """Returns the columns whose types Parquet, the catalog or a DataFrame carries."""
        return {name: column.type for name, column in self._describe_source(source).columns.items()}

    def origins(self, source: Any) -> dict[str, str]:
        """Returns where files and tables of the catalog are."""
        return origins_of(source_of(source))

    def close(self) -> None:
        """Forgets all tables; a driver that was started by this engine ends."""
        with self._lock, session.quiet():
            if self._open is not None and self._is_own:
                self._open.stop()
            elif self._open is not None:
                for table in self._tables.values():
                    self._forget(table)
            self._open = None
            self._tables.clear()
            self._columns.clear()

    def _attach(self, name: str, source: Any, columns: Mapping[str, Type]) -> None:
        found = self._describe_source(source)
        check_columns(name, {column: each.type for column, each in found.columns.items()}, columns, hint=_UNREADABLE)
        chosen = {column: found.columns[column] for column in columns}
        table = _told_nothing(lambda: self._view(found, chosen))
        with self._lock:
            before = self._tables.get(name)
            self._tables[name] = table
        if before is not None:
            _told_nothing(lambda: self._forget(before))

    def _view(self, found: SourceDescription, chosen: Mapping[str, SparkColumn]) -> _Table:
        view = session.new_name()
        read = [f"{column.sql} AS {DIALECT.quote_name(name)}" for name, column in chosen.items()]
        frame, kept = found.frame(chosen)
        frame.selectExpr(*read).createTempView(view)
        return _Table(view, chosen, kept)

    def _forget(self, table: _Table) -> None:
        """Drops the view, and the rows that were kept for it."""
        self._open.catalog.dropTempView(table.view)
        if table.kept:
            self._open.catalog.dropGlobalTempView(table.kept)

    def _describe_source(self, source: Any) -> SourceDescription:
        kind, opened = source_of(source), self._session()
        return _told_nothing(lambda: describe_source(opened, kind))

    def _session(self) -> Any:
        with self._lock:
            if self._open is None:
                self._open, self._is_own = session.open_session(self._given)
                python_functions.register(self._open)
            return self._open

    def _prepare(self, reading: Reading) -> Callable[[], GroupColumns]:
        stored = {
            name: StoredTable(
                table.view,
                {column: (found.type, DIALECT.quote_name(column)) for column, found in table.columns.items()},
                self._columns[name],
            )
            for name, table in self._tables.items()
        }
        made = translate_reading(reading, self.dialect, stored)
        return lambda: self._groups(made)

    def _groups(self, made: Statement) -> GroupColumns:
        opened, name = self._session(), session.new_name()

        def read(stopped: threading.Event) -> FetchedTable:
            with session.quiet():
                session.check(opened)
                session.begin(opened, name)
                table = opened.sql(made.sql, args=dict(made.parameters) or None).toArrow()
            if stopped.is_set():
                raise TimeoutError
            return FetchedTable(table)

        stop = partial(session.interrupt, opened, name)
        return made.groups(stoppable(read, stop, deadline=self._deadline))


Result = TypeVar("Result")


def _told_nothing(work: Callable[[], Result]) -> Result:
    """Returns what the work returns; of Spark's errors, which may tell values, only that there was one."""
    with session.quiet():
        try:
            return work()
        except DiscreetError:
            raise
        except Exception:  # noqa: BLE001 - whatever Spark says may be about rows
            hint = "Check that Spark's executors can find and read it."
            refused = InvalidParameter("source", "given", "to be readable", hint)
    raise refused
