"""The tables of a ledger on PostgreSQL, what keeps them append-only, and what each role is granted.

They are those of a ledger file, in a schema of their own. Triggers refuse to change or delete entries and answers, to
delete states and to empty any table, for every role. An entry is taken only at the end, with the hash that follows
from the one before it. The owner of the tables could drop the triggers. So the owner is a role that is not used from
day to day, and the role of the curators is granted neither UPDATE nor DELETE on entries and answers.

States are what the entries amount to, and change with every charge. A role that may charge may therefore change them,
and could write what does not follow from the entries: `verify` finds it.
"""

from __future__ import annotations

import re
from typing import Any

from discreet.errors import InvalidParameter, LedgerError, LedgerTampered
from discreet.ledger.store.ledger_store import VERSION

SCHEMA = "discreet"
"""Where the tables are unless the address names another schema."""

_ABOUT = "discreet ledger, version "
_IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_TABLES = ("entries", "states", "answers")

_COLUMNS = {
    "entries": {
        "sequence": "bigint",
        **dict.fromkeys(("time", "kind", "account", "who", "price", "key"), "text"),
        "about": "bigint",
        **dict.fromkeys(("body", "hash"), "text"),
    },
    "states": dict.fromkeys(("scope", "name", "text", "seal"), "text"),
    "answers": {"sequence": "bigint", "charge": "bigint", "replay_key": "text", "payload": "bytea"},
}

_KEYS = {
    "entries_pkey": "sequence",
    "entries_by_key": "who,key where (key <> ''::text)",
    "entries_by_charge": "about where (about > 0)",
    "states_pkey": "scope,name",
    "answers_pkey": "sequence",
    "answers_by_charge": "charge",
}
"""The unique indexes, by their columns and the rows they are about."""

_KEPT = "BEGIN RAISE EXCEPTION '% are kept for ever', TG_TABLE_NAME; END"
_CHAINED = """
DECLARE
  last discreet.entries;
BEGIN
  SELECT * INTO last FROM discreet.entries ORDER BY sequence DESC LIMIT 1;
  IF NEW.sequence IS DISTINCT FROM coalesce(last.sequence, 0) + 1 THEN
    RAISE EXCEPTION 'entries are added at the end';
  END IF;
  IF NEW.hash IS DISTINCT FROM encode(sha256(convert_to(concat_ws(E'\\n', coalesce(last.hash, repeat('0', 64)),
      NEW.sequence, NEW.time, NEW.kind, NEW.account, NEW.who, NEW.price, NEW.key, NEW.about, NEW.body), 'UTF8')), 'hex')
  THEN
    RAISE EXCEPTION 'an entry has the hash that follows from the one before it';
  END IF;
  RETURN NEW;
END"""

_ROW, _BEFORE, _INSERT, _DELETE, _UPDATE, _TRUNCATE = 1, 2, 4, 8, 16, 32  # as pg_trigger.tgtype adds them up
_TRIGGERS = {
    "entries_only_at_the_end": ("entries", _ROW | _BEFORE | _INSERT, "chained"),
    "entries_kept": ("entries", _ROW | _BEFORE | _UPDATE | _DELETE, "kept"),
    "entries_not_emptied": ("entries", _BEFORE | _TRUNCATE, "kept"),
    "answers_kept": ("answers", _ROW | _BEFORE | _UPDATE | _DELETE, "kept"),
    "answers_not_emptied": ("answers", _BEFORE | _TRUNCATE, "kept"),
    "states_kept": ("states", _ROW | _BEFORE | _DELETE, "kept"),
    "states_not_emptied": ("states", _BEFORE | _TRUNCATE, "kept"),
}


def check_identifier(schema: str) -> str:
    """Returns the name of a schema or role if it needs no quotes.

    Raises:
        InvalidParameter: otherwise.
    """
    if not _IDENTIFIER.fullmatch(schema):
        hint = "Use lowercase letters, digits and underscores."
        raise InvalidParameter("schema or role", schema, "to be a plain name", hint)
    return schema


# -------------------------------------------------------------------------------------------------------------- making


def tables_sql(schema: str = SCHEMA) -> str:
    """Returns the statements that make an empty ledger, for its future owner to run.

    It is of the newest version: those who write the first entry of a later kind do not own the tables.

    >>> print(tables_sql()[:50])
    CREATE SCHEMA discreet;
    COMMENT ON SCHEMA discreet
    """
    statements = [f"CREATE SCHEMA {schema}", version_sql(schema, VERSION)]
    statements += [_table(schema, table) for table in _TABLES]
    statements += [
        f"CREATE UNIQUE INDEX entries_by_key ON {schema}.entries (who, key) WHERE key <> ''",
        f"CREATE UNIQUE INDEX entries_by_charge ON {schema}.entries (about) WHERE about > 0",
        f"CREATE UNIQUE INDEX answers_by_charge ON {schema}.answers (charge)",
        f"CREATE INDEX answers_by_replay_key ON {schema}.answers (replay_key)",
    ]
    statements += [
        f"CREATE FUNCTION {schema}.{name}() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp "
        f"AS $${source}$$"
        for name, source in _functions(schema).items()
    ]
    statements += [_trigger(schema, name, *told) for name, told in _TRIGGERS.items()]
    return "".join(f"{statement};\n" for statement in statements)


def version_sql(schema: str, number: int) -> str:
    """Returns the statement that makes a ledger one of a version.

    >>> version_sql("discreet", 2)
    "COMMENT ON SCHEMA discreet IS 'discreet ledger, version 2'"
    """
    return f"COMMENT ON SCHEMA {schema} IS '{_ABOUT}{int(number)}'"


def grants_sql(writer: str, *, schema: str = SCHEMA, only_read: bool = False) -> str:
    """Returns the statements that let a role keep the ledger, or only read it, and nothing else.

    >>> print(grants_sql("curators"), end="")
    GRANT USAGE ON SCHEMA discreet TO curators;
    GRANT SELECT, INSERT ON discreet.entries, discreet.answers TO curators;
    GRANT SELECT, INSERT, UPDATE (text, seal) ON discreet.states TO curators;
    >>> print(grants_sql("auditors", only_read=True), end="")
    GRANT USAGE ON SCHEMA discreet TO auditors;
    GRANT SELECT ON discreet.entries, discreet.answers, discreet.states TO auditors;
    """
    role = check_identifier(writer)
    entries, states, answers = (f"{check_identifier(schema)}.{table}" for table in _TABLES)
    rights = [f"SELECT, INSERT ON {entries}, {answers}", f"SELECT, INSERT, UPDATE (text, seal) ON {states}"]
    if only_read:
        rights = [f"SELECT ON {entries}, {answers}, {states}"]
    return "".join(f"GRANT {right} TO {role};\n" for right in (f"USAGE ON SCHEMA {schema}", *rights))


def _table(schema: str, table: str) -> str:
    columns = [f"{name} {_column_type(kind)} NOT NULL" for name, kind in _COLUMNS[table].items()]
    columns.append(f"PRIMARY KEY ({_KEYS[f'{table}_pkey'].replace(',', ', ')})")
    room = " WITH (fillfactor = 50)" if table == "states" else ""  # a state is written again and again, in its page
    return f"CREATE TABLE {schema}.{table} (\n  " + ",\n  ".join(columns) + f"\n){room}"


def _column_type(kind: str) -> str:
    return 'text COLLATE "C"' if kind == "text" else kind  # in the order of code points, as SQLite has it


def _trigger(schema: str, name: str, table: str, kind: int, function: str) -> str:
    verbs = {_INSERT: "INSERT", _UPDATE: "UPDATE", _DELETE: "DELETE", _TRUNCATE: "TRUNCATE"}
    when = " OR ".join(verb for bit, verb in verbs.items() if kind & bit)
    each = "ROW" if kind & _ROW else "STATEMENT"
    head = f"CREATE TRIGGER {name} BEFORE {when} ON {schema}.{table}"
    return f"{head} FOR EACH {each} EXECUTE FUNCTION {schema}.{function}()"


def _functions(schema: str) -> dict[str, str]:
    return {"chained": _CHAINED.replace("discreet.", f"{schema}."), "kept": _KEPT}


# ------------------------------------------------------------------------------------------------------------ checking


def version(about: str | None) -> int:
    """Returns the version in the comment of a schema.

    Raises:
        LedgerError: if it is no ledger, or one of the future.
    """
    told = (about or "").removeprefix(_ABOUT)
    if about is None or told == about or not told.isdecimal():
        raise LedgerError("The schema exists but is not a ledger", "Name another with ?schema=... in the address.")
    if int(told) > VERSION:
        raise LedgerError(f"The ledger was written by a newer version (schema {told})", "Upgrade discreet.")
    return int(told)


_FOUND = """
SELECT 'table', c.relname,
    concat_ws(' ', c.relkind, c.relpersistence, c.relhasrules, c.relrowsecurity, c.relispartition, c.relhassubclass)
  FROM pg_class c WHERE c.relnamespace = to_regnamespace(%(schema)s) AND c.relkind NOT IN ('i', 't')
UNION ALL
SELECT 'column', c.relname || '.' || a.attname,
    concat_ws(' ', format_type(a.atttypid, a.atttypmod), a.attnotnull, l.collname, a.atthasdef)
  FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid LEFT JOIN pg_collation l ON l.oid = a.attcollation
  WHERE c.relnamespace = to_regnamespace(%(schema)s) AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
UNION ALL
SELECT 'key', c.relname, (SELECT string_agg(a.attname, ',' ORDER BY a.attnum) FROM pg_attribute a
    WHERE a.attrelid = c.oid) || coalesce(' where ' || pg_get_expr(i.indpred, i.indrelid), '')
  FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
  WHERE c.relnamespace = to_regnamespace(%(schema)s) AND i.indisunique AND i.indisvalid
UNION ALL
SELECT 'trigger', t.tgname, concat_ws(' ', c.relname, t.tgtype, t.tgenabled, t.tgqual IS NULL, p.pronamespace =
    to_regnamespace(%(schema)s), p.proname)
  FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid
  WHERE c.relnamespace = to_regnamespace(%(schema)s) AND NOT t.tgisinternal
UNION ALL
SELECT 'function', p.proname, p.prosrc FROM pg_proc p WHERE p.pronamespace = to_regnamespace(%(schema)s)
"""


def check_tables(connection: Any, schema: str) -> None:
    """Refuses a schema whose tables, keys or triggers are not exactly those that were created.

    Raises:
        LedgerTampered: if something was altered.
    """
    found = {(kind, name): told for kind, name, told in connection.execute(_FOUND, {"schema": schema})}
    if found != _expected_catalog(schema):
        raise LedgerTampered(0, "the tables or triggers of the ledger were altered")


def _expected_catalog(schema: str) -> dict[tuple[str, str], str]:
    """Returns what the catalogs of every version of PostgreSQL say about the tables as they were made."""
    expected = {("table", table): "r p f f f f" for table in _TABLES}
    for table, columns in _COLUMNS.items():
        for name, kind in columns.items():
            expected["column", f"{table}.{name}"] = f"{kind} t C f" if kind == "text" else f"{kind} t f"
    expected |= {("key", name): told for name, told in _KEYS.items()}
    for name, (table, verbs, function) in _TRIGGERS.items():
        expected["trigger", name] = f"{table} {verbs} O t t {function}"
    return expected | {("function", name): source for name, source in _functions(schema).items()}
