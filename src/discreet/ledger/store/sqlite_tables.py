"""The tables of a ledger file, and what keeps them append-only.

`entries` is the ledger: only its end can be written. `states` is what the entries amount to, so that a charge need not
add them all up; verifying does. `answers` holds the bytes that were sent, and long lists of declared keys; their
digests are in the entries. Triggers keep them append-only. They are the same in versions 1 to 7, which differ in the
kinds of entries that a ledger may hold (`store.base`): a file written by version 1 is read by every later one.
"""

from __future__ import annotations

import sqlite3

from discreet.errors import LedgerTampered

APPLICATION = 0x44495343  # "DISC", in the header of every ledger file

_ENTRIES = """CREATE TABLE entries (
  sequence INTEGER PRIMARY KEY,
  time TEXT NOT NULL,
  kind TEXT NOT NULL,
  account TEXT NOT NULL,
  who TEXT NOT NULL,
  price TEXT NOT NULL,
  key TEXT NOT NULL,
  about INTEGER NOT NULL,
  body TEXT NOT NULL,
  hash TEXT NOT NULL
)"""

_STATES = """CREATE TABLE states (
  scope TEXT NOT NULL,
  name TEXT NOT NULL,
  text TEXT NOT NULL,
  seal TEXT NOT NULL,
  PRIMARY KEY (scope, name)
) WITHOUT ROWID"""

_ANSWERS = """CREATE TABLE answers (
  sequence INTEGER PRIMARY KEY,
  charge INTEGER NOT NULL UNIQUE,
  replay_key TEXT NOT NULL,
  payload BLOB NOT NULL
)"""

# INSERT OR REPLACE deletes rows without asking the triggers on DELETE, so what it would replace is refused on INSERT.
_ONLY_AT_THE_END = """CREATE TRIGGER entries_only_at_the_end BEFORE INSERT ON entries
WHEN NEW.sequence <> (SELECT coalesce(max(sequence), 0) + 1 FROM entries)
  OR (NEW.key <> '' AND EXISTS (SELECT 1 FROM entries WHERE who = NEW.who AND key = NEW.key AND key <> ''))
  OR (NEW.about > 0 AND EXISTS (SELECT 1 FROM entries WHERE about = NEW.about AND about > 0))
BEGIN SELECT RAISE(ABORT, 'entries are added at the end'); END"""

_ANSWERED_ONCE = """CREATE TRIGGER answers_once BEFORE INSERT ON answers
WHEN EXISTS (SELECT 1 FROM answers WHERE sequence = NEW.sequence OR charge = NEW.charge)
BEGIN SELECT RAISE(ABORT, 'a charge has one answer'); END"""


def _never(verb: str, table: str) -> str:
    return (
        f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
        f"BEGIN SELECT RAISE(ABORT, '{table} are kept for ever'); END"
    )


STATEMENTS = (
    _ENTRIES,
    _STATES,
    _ANSWERS,
    "CREATE UNIQUE INDEX entries_by_key ON entries (who, key) WHERE key <> ''",
    "CREATE UNIQUE INDEX entries_by_charge ON entries (about) WHERE about > 0",
    "CREATE INDEX answers_by_replay_key ON answers (replay_key)",
    _ONLY_AT_THE_END,
    _ANSWERED_ONCE,
    _never("UPDATE", "entries"),
    _never("DELETE", "entries"),
    _never("UPDATE", "answers"),
    _never("DELETE", "answers"),
    _never("DELETE", "states"),
)


def check_statements(connection: sqlite3.Connection) -> None:
    """Refuses a file whose tables or triggers are not exactly those that were created."""
    rows = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'")
    if {sql for (sql,) in rows} != set(STATEMENTS):
        raise LedgerTampered(0, "the tables or triggers of the file were altered")
