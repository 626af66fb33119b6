"""The tables of PostgreSQL 15's catalog, filled with what declared tables make public."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import duckdb

from discreet.service.wire.catalog import catalog_functions
from discreet.service.wire.value_formats import TYPES
from discreet.sql.catalog_queries import SCHEMAS

FIRST_OID = 16384
"""The first number that PostgreSQL gives to objects of users."""

_PUBLIC, _CATALOG, _INFORMATION = 2200, 11, 13000 - 1
_OWNER_OID, _OWNER = 10, "discreet"
_CALLER_OID = 16000
_ENGINE_TYPES = {
    **dict.fromkeys(("oid", "xid"), "UINTEGER"),
    "int2": "SMALLINT",
    **dict.fromkeys(("int4", "cardinal_number"), "INTEGER"),
    "int8": "BIGINT",
    "bool": "BOOLEAN",
    "float4": "FLOAT",
    **dict.fromkeys(("int2vector", "_int2"), "SMALLINT[]"),
    **dict.fromkeys(("oidvector", "_oid"), "UINTEGER[]"),
    **dict.fromkeys(("_text", "_name", "_char", "_aclitem"), "VARCHAR[]"),
    "timestamptz": "TIMESTAMP",
}  # all others are texts
_AT_ONCE = 8  # rows
LIMITS: dict[str, Any] = {"threads": 1, "memory_limit": "256MB"}
"""What one engine of the catalog may use; it writes to no disk, where a query that is too large would leave a file."""

_PRECISIONS = {
    "int": (64, 2, 0, None),
    "float": (53, 2, None, None),
    "date": (None, None, None, 0),
    "timestamp": (None, None, None, 6),
}
"""Precision, radix and scale of numbers, and the digits of seconds; all others have none."""

Row = Mapping[str, Any]
Facts = Sequence[Mapping[str, Any]]


@cache
def shapes() -> dict[str, Any]:
    """Returns the catalog's tables as PostgreSQL 15 has them: number, kind and columns of each, and rows of some."""
    found: dict[str, Any] = json.loads(files(__package__).joinpath("postgresql_15.json").read_text("utf-8"))
    return found


def columns_of(schema: str, table: str) -> dict[str, str]:
    """Returns PostgreSQL's types of a catalog table's columns."""
    return dict(each.rsplit(":", 1) for each in shapes()[schema][table]["columns"].split())


def tables() -> dict[str, frozenset[str]]:
    """Returns the names of all catalog tables, by schema."""
    return {schema: frozenset(shapes()[schema]) for schema in SCHEMAS}


def database(facts: Facts, *, user: str, name: str) -> duckdb.DuckDBPyConnection:
    """Returns an engine in memory with the catalog of some tables; it reads no file and takes no other setting.

    Args:
        facts: the name and columns of each table, as `RequestExecutor.tables` returns them.
        user: the name of the caller.
        name: the name of the database.
    """
    made = duckdb.connect(":memory:", config={**LIMITS, "temp_directory": ""})
    # Alone: with the other settings DuckDB would apply it first and refuse them.
    made.execute("SET enable_external_access = false")
    made.execute("BEGIN")
    for schema, own in SCHEMAS.items():
        made.execute(f"CREATE SCHEMA {own}")
        for table in shapes()[schema]:
            made.execute(f'CREATE TABLE {own}."{table}" ({_column_definitions(schema, table)})')
    made.execute("CREATE TABLE pgc.pg_keywords (word VARCHAR, catcode VARCHAR, catdesc VARCHAR)")
    for (schema, table), rows in _content(facts, user, name).items():
        _fill(made, schema, table, rows)
    for statement in catalog_functions.statements():
        made.execute(statement)
    made.execute("COMMIT")
    made.execute("SET lock_configuration = true")
    return made


def _column_definitions(schema: str, table: str) -> str:
    kinds = columns_of(schema, table)
    return ", ".join(f'"{column}" {_ENGINE_TYPES.get(kind, "VARCHAR")}' for column, kind in kinds.items())


def _fill(made: duckdb.DuckDBPyConnection, schema: str, table: str, rows: Iterable[Row]) -> None:
    columns = list(columns_of(schema, table))
    place = f"({', '.join('?' * len(columns))})"
    listed = [[row.get(column) for column in columns] for row in rows]
    for start in range(0, len(listed), _AT_ONCE):
        some = listed[start : start + _AT_ONCE]
        values = [value for row in some for value in row]
        places = ", ".join([place] * len(some))
        made.execute(f'INSERT INTO {SCHEMAS[schema]}."{table}" VALUES {places}', values)


def _content(facts: Facts, user: str, name: str) -> dict[tuple[str, str], list[Row]]:
    """Returns the rows of all catalog tables that have some."""
    catalog: dict[str, list[Row]] = {
        **{table: _constant_rows(table) for table in shapes()["rows"]},
        "pg_namespace": list(_namespaces()),
        "pg_class": [*_system_classes(), *_classes(facts)],
        "pg_attribute": list(_attributes(facts)),
        "pg_description": list(_descriptions(facts)),
        "pg_database": [_database(name)],
        "pg_roles": list(_roles(user)),
        "pg_user": [{"usename": row["rolname"], "usesysid": row["oid"], "usesuper": False} for row in _roles(user)],
        "pg_tables": [_pg_table(fact) for fact in facts],
        "pg_settings": [{"name": "max_index_keys", "setting": "32"}, {"name": "server_version", "setting": "15.0"}],
    }
    privileges = [_privilege(fact, user, name) for fact in facts]
    schemas = [one["nspname"] for one in _namespaces()]
    information: dict[str, list[Row]] = {
        "tables": [_information_table(fact, name) for fact in facts],
        "columns": list(_information_columns(facts, name)),
        "schemata": [{"catalog_name": name, "schema_name": one, "schema_owner": _OWNER} for one in schemas],
        "information_schema_catalog_name": [{"catalog_name": name}],
        "enabled_roles": [{"role_name": user}],
        **dict.fromkeys(("table_privileges", "role_table_grants"), privileges),
    }
    placed = {("pg_catalog", table): rows for table, rows in catalog.items()}
    return placed | {("information_schema", table): rows for table, rows in information.items()}


def _constant_rows(table: str) -> list[Row]:
    """Returns the rows that every catalog has."""
    columns = columns_of("pg_catalog", table)
    return [dict(zip(columns, row, strict=True)) for row in shapes()["rows"][table]]


# ----------------------------------------------------------------------------------------------------------- pg_catalog


def _namespaces() -> Iterator[Row]:
    for oid, name in ((_CATALOG, "pg_catalog"), (_PUBLIC, "public"), (_INFORMATION, "information_schema")):
        yield {"oid": oid, "nspname": name, "nspowner": _OWNER_OID}


_RELATION = {
    **dict.fromkeys(("reloftype", "relam", "reltablespace", "reltoastrelid", "relrewrite", "reltype", "relpages"), 0),
    **dict.fromkeys(("relallvisible", "relchecks", "relfilenode", "relfrozenxid", "relminmxid"), 0),
    **dict.fromkeys(("relhasindex", "relisshared", "relhasrules", "relhastriggers", "relhassubclass"), False),
    **dict.fromkeys(("relrowsecurity", "relforcerowsecurity", "relispartition"), False),
    "relowner": _OWNER_OID,
    "reltuples": -1.0,
    "relpersistence": "p",
    "relispopulated": True,
    "relreplident": "d",
}


def _system_classes() -> Iterator[Row]:
    for schema, namespace in (("pg_catalog", _CATALOG), ("information_schema", _INFORMATION)):
        for table, shape in shapes()[schema].items():
            natts = len(shape["columns"].split())
            own = {"oid": shape["oid"], "relname": table, "relnamespace": namespace, "relkind": shape["kind"]}
            yield _RELATION | own | {"relnatts": natts}


def _classes(facts: Facts) -> Iterator[Row]:
    for oid, fact in enumerate(facts, FIRST_OID):
        own = {"oid": oid, "relname": fact["name"], "relnamespace": _PUBLIC, "relkind": "r", "relam": 2}
        yield _RELATION | own | {"relnatts": len(fact["columns"])}


_ATTRIBUTE = {
    **dict.fromkeys(("attnotnull", "atthasdef", "atthasmissing", "attisdropped"), False),
    **dict.fromkeys(("attstattarget", "attcacheoff", "atttypmod"), -1),
    **dict.fromkeys(("attndims", "attinhcount"), 0),
    **dict.fromkeys(("attcompression", "attidentity", "attgenerated"), ""),
    "attislocal": True,
}


def _attributes(facts: Facts) -> Iterator[Row]:
    types = {row["oid"]: row for row in _constant_rows("pg_type")}
    for oid, fact in enumerate(facts, FIRST_OID):
        for number, column in enumerate(fact["columns"], 1):
            kind = types[TYPES[column["type"]]]
            of_type = {f"att{key}": kind[f"typ{key}"] for key in ("len", "byval", "align", "storage", "collation")}
            own = {"attrelid": oid, "attname": column["name"], "attnum": number, "atttypid": kind["oid"]}
            yield _ATTRIBUTE | of_type | own


def _descriptions(facts: Facts) -> Iterator[Row]:
    """Yields what a steward declared, which is public."""
    for oid, fact in enumerate(facts, FIRST_OID):
        if fact.get("protected"):
            yield {"objoid": oid, "classoid": 1259, "objsubid": 0, "description": f"Protected: {fact.get('unit', '')}"}
        for number, column in enumerate(fact["columns"], 1):
            if column.get("bounds"):
                low, high = column["bounds"]
                yield {"objoid": oid, "classoid": 1259, "objsubid": number, "description": f"from {low} to {high}"}


def _database(name: str) -> Row:
    own = {"oid": 5, "datname": name, "datdba": _OWNER_OID, "encoding": 6, "datlocprovider": "c", "datconnlimit": -1}
    rest = {"datistemplate": False, "datallowconn": True, "dattablespace": 1663, "datcollate": "C", "datctype": "C"}
    return own | rest


def _roles(user: str) -> Iterator[Row]:
    """Yields the service and the caller; no other person is named."""
    for oid, name in {_OWNER_OID: _OWNER, _CALLER_OID: user}.items():
        flags = ("rolsuper", "rolcreaterole", "rolcreatedb", "rolreplication", "rolbypassrls")
        own = {"oid": oid, "rolname": name, "rolinherit": True, "rolcanlogin": oid == _CALLER_OID, "rolconnlimit": -1}
        yield dict.fromkeys(flags, False) | own | {"rolpassword": "********"}


def _pg_table(fact: Row) -> Row:
    flags = dict.fromkeys(("hasindexes", "hasrules", "hastriggers", "rowsecurity"), False)
    return flags | {"schemaname": "public", "tablename": fact["name"], "tableowner": _OWNER}


# --------------------------------------------------------------------------------------------------- information_schema


def _information_table(fact: Row, name: str) -> Row:
    own = {"table_catalog": name, "table_schema": "public", "table_name": fact["name"], "table_type": "BASE TABLE"}
    return own | {"is_insertable_into": "NO", "is_typed": "NO"}


def _information_columns(facts: Facts, name: str) -> Iterator[Row]:
    names = {row["oid"]: row["typname"] for row in _constant_rows("pg_type")}
    for fact in facts:
        for number, column in enumerate(fact["columns"], 1):
            oid = TYPES[column["type"]]
            precision, radix, scale, time = _PRECISIONS.get(column["type"], (None,) * 4)
            shown = catalog_functions.TYPE_NAMES.get(oid, names[oid])
            own = {"table_catalog": name, "table_schema": "public", "table_name": fact["name"]}
            own |= {"column_name": column["name"], "ordinal_position": number, "is_nullable": "YES", "data_type": shown}
            own |= {"numeric_precision": precision, "numeric_precision_radix": radix, "numeric_scale": scale}
            own |= {"datetime_precision": time, "udt_catalog": name, "udt_schema": "pg_catalog"}
            own |= {"character_octet_length": 1 << 30} if column["type"] == "text" else {}
            own |= {"udt_name": names[oid], "dtd_identifier": str(number)}
            flags = dict.fromkeys(("is_self_referencing", "is_identity", "identity_cycle", "is_updatable"), "NO")
            yield flags | own | {"is_generated": "NEVER"}


def _privilege(fact: Row, user: str, name: str) -> Row:
    own = {"grantor": _OWNER, "grantee": user, "table_catalog": name, "table_schema": "public"}
    rest = {"table_name": fact["name"], "privilege_type": "SELECT", "is_grantable": "NO", "with_hierarchy": "NO"}
    return own | rest
