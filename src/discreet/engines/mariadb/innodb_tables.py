"""Tables of a MariaDB server: which of them can be read, and how their columns are read whatever is stored in them.

What is found out here are facts of the server's catalog, never of a row. Only InnoDB reads a snapshot. A view computes,
and its expressions may fail on unknown values; so may columns that are computed when they are read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from discreet.dataclass import dataclass
from discreet.engines.mariadb.address import MariaDBTable
from discreet.engines.mariadb.dialect import DIALECT
from discreet.engines.mariadb.moments import day_exists
from discreet.engines.mariadb.snapshots import rows_of
from discreet.engines.mariadb.text_templates import write_text
from discreet.errors import InvalidParameter
from discreet.plan.expressions.evaluation import INT_HIGH
from discreet.plan.model.types import Type

_TEXT = (Type.TEXT, write_text("{0}"))
_INT = (Type.INT, "CAST({0} AS SIGNED)")
_DOUBLE = (Type.FLOAT, "CAST({0} AS DOUBLE) + 0e0")  # which leaves out declared digits, as of DOUBLE(10,2)
_EXISTING = "CASE WHEN {exists} THEN {read} END"
_DAY = _EXISTING.format(exists=day_exists("{0}"), read="{0}")
_MOMENT = _EXISTING.format(exists=day_exists("{0}"), read="CAST({0} AS DATETIME(6))")

_STORED: Mapping[str, tuple[Type, str]] = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "year"), _INT),
    "bigint": (Type.INT, f"CASE WHEN {{0}} <= {INT_HIGH} THEN CAST({{0}} AS SIGNED) END"),
    **dict.fromkeys(("float", "double", "decimal"), _DOUBLE),
    **dict.fromkeys(("char", "varchar", "tinytext", "text", "enum"), _TEXT),
    **dict.fromkeys(("uuid", "inet4", "inet6"), (Type.TEXT, write_text("CAST({0} AS CHAR)"))),
    "date": (Type.DATE, _DAY),
    "datetime": (Type.TIMESTAMP, _MOMENT),
    "timestamp": (Type.TIMESTAMP, _MOMENT),
}
"""Types that can be read, and how. A longer text than one of TEXT could be more than a sort holds."""

_TRUTH: Mapping[str, tuple[Type, str]] = {
    "bit(1)": (Type.BOOL, "CAST({0} + 0 AS SIGNED)"),
    "tinyint(1)": (Type.BOOL, "CAST({0} <> 0 AS SIGNED)"),
}
"""Types that hold truth values; values of the second one are numbers unless declared as truth values."""

_LETTERS = ("utf8mb4", "utf8mb3", "utf8", "latin1", "ascii")
"""Character sets whose texts are all Unicode."""

_ROLE = "`discreet.engines.mariadb.reader_account.role_statements` returns the SQL that makes one."


@dataclass(frozen=True, slots=True)
class InnoDBTable:
    """What the catalog says of a table: where it is, who it is, and how its columns are read.

    Args:
        sql: its name.
        place: its database and its table, as texts.
        columns: the type of each column, and SQL that reads it.
        truths: the same of columns that may hold truth values.
        identity: what the server calls it.
    """

    sql: str
    place: tuple[str, str]
    columns: Mapping[str, tuple[Type, str]]
    truths: Mapping[str, tuple[Type, str]]
    identity: str

    def stored(self, declared: Mapping[str, Type]) -> dict[str, tuple[Type, str]]:
        """Returns how columns are read that are declared as these types."""
        chosen = {
            name: self.truths[name] for name, kind in declared.items() if kind is Type.BOOL and name in self.truths
        }
        return {**self.columns, **chosen}


_TABLE = """
SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, COALESCE(ENGINE, ''), @@server_uid
FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s
"""

_COLUMNS = """
SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, COALESCE(CHARACTER_SET_NAME, '')
FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND FIND_IN_SET('select', LOWER(PRIVILEGES)) > 0
    AND EXTRA NOT LIKE '%%VIRTUAL GENERATED%%' AND EXTRA NOT LIKE '%%INVISIBLE%%'
ORDER BY ORDINAL_POSITION
"""

_READS = re.compile(r"GRANT (?:USAGE|SELECT(?: \((?:`(?:``|[^`])*+`(?:, )?)+\))?) ON ")
_ROLES = ("GRANT `", "SET DEFAULT ROLE ")  # which sessions do not take on


def _may_change(session: Any) -> bool:
    """Returns whether a user, or everybody, was granted more than to read."""
    granted = [row[0] for who in ("CURRENT_USER", "PUBLIC") for row in rows_of(session, f"SHOW GRANTS FOR {who}")]
    own = [line for line in granted if not line.startswith(_ROLES)]
    return any(_READS.match(line) is None or "WITH GRANT OPTION" in line for line in own)


def describe_source(session: Any, source: MariaDBTable) -> InnoDBTable:
    """Looks up a table and its readable columns.

    Raises:
        InvalidParameter: if there is no such table, or it is none whose reads cannot fail, or the user could do more
            than read.
    """
    named = source.server.database, source.table
    found = rows_of(session, _TABLE, named)
    if not found:
        hint = f"Name it as the server spells it, and grant SELECT on it. {_ROLE}"
        raise InvalidParameter("source", source.table, "to be a table that this user can read", hint)
    schema, table, kind, engine, server = found[0]
    _check_kind(source, kind, engine)
    if _may_change(session):
        hint = f"Ask as a user that can only read, and grant nothing. {_ROLE}"
        raise InvalidParameter("source", source.table, "not to be open to changes by this user", hint)
    columns, truths = {}, {}
    for name, native, full, letters in rows_of(session, _COLUMNS, named):
        quoted = DIALECT.quote_name(name)
        if letters and letters not in _LETTERS:
            continue
        if full in _TRUTH:
            truths[name] = _TRUTH[full][0], _TRUTH[full][1].replace("{0}", quoted)
        read = _STORED.get(native) or _TRUTH.get(full)
        if read is not None:
            columns[name] = read[0], read[1].replace("{0}", quoted)
    sql = f"{DIALECT.quote_name(schema)}.{DIALECT.quote_name(table)}"
    return InnoDBTable(sql, (schema, table), columns, truths, f"{server}:{schema}.{table}")


def is_stored(session: Any, table: InnoDBTable) -> bool:
    """Returns whether a table is still one of InnoDB: another would have no snapshot, and a view could fail."""
    found = rows_of(session, _TABLE, table.place)
    return bool(found) and _is_stored(*found[0][2:4])


def _is_stored(kind: str, engine: str) -> bool:
    return kind in ("BASE TABLE", "SYSTEM VERSIONED") and engine == "InnoDB"


def _check_kind(source: MariaDBTable, kind: str, engine: str) -> None:
    if kind == "VIEW":
        hint = "Store what it computes: CREATE TABLE ... AS SELECT * FROM the view."
        raise InvalidParameter("source", source.table, "to be a table, not a view", hint)
    if not _is_stored(kind, engine):
        hint = "ALTER TABLE ... ENGINE=InnoDB, or copy it: CREATE TABLE ... ENGINE=InnoDB AS SELECT * FROM the table."
        raise InvalidParameter("source", source.table, "to be stored by InnoDB, which reads one snapshot", hint)
