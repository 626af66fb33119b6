"""Tables of a PostgreSQL server: which of them can be read, and how their columns are read whatever is stored in them.

What is found out here are facts of the server's catalog, never of a row. A view computes, and its expressions may fail
on unknown values; the same is true of foreign tables, and of rows that a policy hides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.dataclass import dataclass
from discreet.engines.postgres.dialect import DIALECT
from discreet.engines.postgres.doubles import DOUBLE
from discreet.errors import InvalidParameter
from discreet.plan.model.types import Type
from discreet.server_address import ServerTable

_DAYS = "BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'"
_MOMENTS = "BETWEEN CAST('0001-01-01' AS {0}) AND CAST('9999-12-31 23:59:59.999999' AS {0})"
_TOO_LARGE = str(2**1024 - 2**970)  # the first number that would be rounded to an infinite double
_TOO_SMALL = f"{5**1075}e-1075"  # 2^-1075, the last one that is rounded to zero
_SURELY = 300  # digits before and behind the point with which every number is within the range of doubles

_TEXT = (Type.TEXT, DIALECT.cast("{0}", Type.TEXT))
_INT = (Type.INT, "CAST({0} AS bigint)")
_STORED: Mapping[str, tuple[Type, str]] = {
    "int2": _INT,
    "int4": _INT,
    "int8": (Type.INT, "{0}"),
    "float4": (Type.FLOAT, f"CAST({{0}} AS {DOUBLE})"),
    "float8": (Type.FLOAT, "{0}"),
    "bool": (Type.BOOL, "{0}"),
    **dict.fromkeys(("text", "varchar", "bpchar", "name", "uuid"), _TEXT),  # blanks that fill up a char(n) are left out
    "date": (Type.DATE, f"CASE WHEN {{0}} {_DAYS} THEN {{0}} END"),
    "timestamp": (Type.TIMESTAMP, f"CASE WHEN {{0}} {_MOMENTS.format('timestamp')} THEN {{0}} END"),
    "timestamptz": (
        Type.TIMESTAMP,
        f"CASE WHEN {{0}} {_MOMENTS.format('timestamptz')} THEN {{0}} AT TIME ZONE 'UTC' END",
    ),
}
"""Types that can be read, and how."""


def _numeric(modifier: int) -> tuple[Type, str]:
    """Writes the nearest double; NULL if not finite, or beyond doubles. The modifier has the declared digits."""
    double = f"CAST({{0}} AS {DOUBLE})"
    digits, scale = ((modifier - 4) >> 16) & 0xFFFF, (((modifier - 4) & 0x7FF) ^ 1024) - 1024
    if modifier >= 4 and digits - scale <= _SURELY and scale <= _SURELY:
        return Type.FLOAT, f"CASE WHEN {{0}} < CAST('NaN' AS numeric) THEN {double} END"
    large, small = f"CAST('{_TOO_LARGE}' AS numeric)", f"CAST('{_TOO_SMALL}' AS numeric)"
    return Type.FLOAT, f"CASE WHEN abs({{0}}) >= {large} THEN NULL WHEN abs({{0}}) <= {small} THEN 0 ELSE {double} END"


@dataclass(frozen=True, slots=True)
class TableDescription:
    """What the catalog says of a table: where it is, who it is, and how its columns are read."""

    sql: str
    columns: Mapping[str, tuple[Type, str]]
    identity: str


_ROLE = "`discreet postgres-role` prints the SQL that makes one: a superuser runs it once, with psql."

_TABLE = """
SELECT c.oid, c.relkind::text,
    EXISTS (SELECT 1 FROM pg_roles AS r WHERE r.rolname = current_user AND r.rolsuper)
        OR has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE'),
    row_security_active(c.oid),
    (SELECT system_identifier FROM pg_control_system()) || ':' || (SELECT d.oid FROM pg_database AS d
        WHERE d.datname = current_database()) || ':' || c.oid
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relname = $2
    AND has_schema_privilege(n.oid, 'USAGE') AND has_any_column_privilege(c.oid, 'SELECT')
"""

_PARTS = """
WITH RECURSIVE parts(oid) AS (
    SELECT CAST($1 AS oid) UNION ALL SELECT i.inhrelid FROM pg_inherits AS i JOIN parts AS p ON i.inhparent = p.oid)
SELECT count(*) FROM parts JOIN pg_class AS c ON c.oid = parts.oid WHERE c.relkind = 'f'
"""

_COLUMNS = """
WITH RECURSIVE types(attnum, oid, modifier) AS (
    SELECT a.attnum, a.atttypid, a.atttypmod FROM pg_attribute AS a
    WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated <> 'v'
        AND has_column_privilege(a.attrelid, a.attnum, 'SELECT')
    UNION ALL
    SELECT s.attnum, t.typbasetype, CASE WHEN s.modifier >= 0 THEN s.modifier ELSE t.typtypmod END
    FROM types AS s JOIN pg_type AS t ON t.oid = s.oid WHERE t.typtype = 'd')
SELECT a.attname, t.typname, t.typtype::text, s.modifier, n.nspname
FROM types AS s JOIN pg_type AS t ON t.oid = s.oid JOIN pg_namespace AS n ON n.oid = t.typnamespace
    JOIN pg_attribute AS a ON a.attrelid = $1 AND a.attnum = s.attnum
WHERE t.typtype <> 'd' ORDER BY a.attnum
"""


def describe_source(session: Any, source: ServerTable) -> TableDescription:
    """Looks up a table and its readable columns.

    Raises:
        InvalidParameter: if there is no such table, or it is none whose reads cannot fail, or the role could change it.
    """
    found = session.execute(_TABLE, [source.schema, source.table]).fetchone()
    if found is None:
        hint = f"Name SCHEMA.TABLE as the catalog spells it. {_ROLE}"
        raise InvalidParameter("source", source.table, "to be a table that this role can read", hint)
    oid, kind, writes, hidden, identity = found
    _check_kind(session, source, oid, kind)
    if hidden:
        hint = "ALTER ROLE ... BYPASSRLS, or store the rows that count in a separate table."
        raise InvalidParameter("source", source.table, "to have no rows that a policy hides from this role", hint)
    if writes:
        hint = f"Ask as a role that can only read it. {_ROLE}"
        raise InvalidParameter("source", source.table, "not to be open to changes by this role", hint)
    columns = {}
    for name, native, category, modifier, schema in session.execute(_COLUMNS, [oid]).fetchall():
        read = _read(native, category, modifier, schema)
        if read is not None:
            columns[name] = read[0], read[1].replace("{0}", DIALECT.quote_name(name))
    return TableDescription(
        f"{DIALECT.quote_name(source.schema)}.{DIALECT.quote_name(source.table)}", columns, identity
    )


def _check_kind(session: Any, source: ServerTable, oid: int, kind: str) -> None:
    if kind == "v":
        hint = "Store what it computes: CREATE MATERIALIZED VIEW, or CREATE TABLE ... AS SELECT * FROM the view."
        raise InvalidParameter("source", source.table, "to be a table, not a view", hint)
    if kind not in ("r", "p", "m") or session.execute(_PARTS, [oid]).fetchone() != (0,):
        hint = "Copy it: CREATE TABLE ... AS SELECT * FROM the foreign table."
        raise InvalidParameter("source", source.table, "to be stored on this server", hint)


def _read(native: str, category: str, modifier: int, schema: str) -> tuple[Type, str] | None:
    """Returns how a column is read; None if its type cannot be."""
    if category == "e":
        return _TEXT
    if schema != "pg_catalog":
        return None
    return _numeric(modifier) if native == "numeric" else _STORED.get(native)
