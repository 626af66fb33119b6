"""Ids in their normal form, which MariaDB has no function for: those that need one are looked up in a table.

Before a statement, and in the same snapshot, the texts are fetched that may be other ids than themselves without white
space. Few people have one. Those that are others come back as a table in variables of the session, in which the
statement finds them (`text_templates.NORMALISED_ID`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from discreet.engines.mariadb.dialect import json_table
from discreet.engines.mariadb.text_templates import IDS, IS_DOUBTFUL, literal, write_text
from discreet.engines.row_choice import digest
from discreet.engines.sql.relation_printer import StoredTable
from discreet.plan.model.nodes import Relation
from discreet.plan.model.readings import Reading
from discreet.plan.model.relations import BaseTable, children
from discreet.plan.model.types import Type
from discreet.plan.model.unit_ids import WHITE_SPACE, id_text

_LENGTH = 1 << 20  # characters of a variable, far less than a packet

Pair = tuple[str, str]
"""A text, and the other id that it is."""


def doubtful_texts(reading: Reading, tables: Mapping[str, StoredTable]) -> list[str]:
    """Returns queries for the texts of a reading's id columns that may be other ids than themselves."""
    found, doubtful = dict.fromkeys(_id_columns(reading)), IS_DOUBTFUL.format("x")
    return [
        f"SELECT DISTINCT x FROM (SELECT {sql} AS x FROM {tables[table].sql}) AS derived WHERE {doubtful}"
        for table, column in found
        for kind, sql in [tables[table].stored[column]]
        if kind is Type.TEXT and tables[table].declared[column] is Type.TEXT
    ]


def _id_columns(reading: Reading) -> Iterator[Pair]:
    if reading.source is not None:
        yield from _columns_below(reading.source)
    elif reading.bounding is not None:
        yield reading.table, reading.bounding.unit


def _columns_below(relation: Relation) -> Iterator[Pair]:
    if isinstance(relation, BaseTable) and relation.unit is not None:
        units = relation.unit if isinstance(relation.unit, tuple) else (relation.unit,)
        yield from ((relation.name, unit) for unit in units)
    for child in children(relation):
        yield from _columns_below(child)


def other_ids(texts: list[str]) -> list[Pair]:
    """Returns those of the texts that are other ids, and these."""
    pairs = ((text, id_text(text)) for text in texts)
    return [(text, made) for text, made in pairs if made != text.strip(WHITE_SPACE)]


def variables(pairs: list[Pair]) -> list[str]:
    """Returns the values of variables that hold a table together, as SQL."""
    lists: list[list[tuple[str, str, str]]] = []
    length = _LENGTH
    for given, made in pairs:
        row = digest(given), given.encode().hex(), made.encode().hex()
        length += sum(map(len, row))
        if length > _LENGTH:
            lists.append([])
            length = 0
        lists[-1].append(row)
    return [literal(json.dumps(rows)) for rows in lists]


def name_variable(place: int) -> str:
    """Returns the name of a variable."""
    return f"@{IDS}_{place}"


def with_ids(sql: str, count: int) -> str:
    """Returns a statement behind the table that so many variables hold."""
    columns = "digest CHAR(32) PATH '$[0]', given MEDIUMTEXT PATH '$[1]', made MEDIUMTEXT PATH '$[2]'"
    given, made = (write_text(f"UNHEX({name})") for name in ("given", "made"))
    read = f"SELECT digest, {given} AS given, {made} AS made FROM "
    parts = [f"{read}{json_table(name_variable(place), columns)} AS listed" for place in range(count)]
    empty = f"{read}(SELECT '' AS digest, '' AS given, '' AS made) AS nothing WHERE FALSE"
    table = f"{IDS} AS ({' UNION ALL '.join(parts) or empty})"
    return f"WITH {table}{', ' if sql.startswith('WITH ') else ' '}{sql.removeprefix('WITH ')}"
