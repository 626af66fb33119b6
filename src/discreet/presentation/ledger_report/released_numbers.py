"""Released numbers from the ledger alone: a stored release, finished once more under the declaration it was made under.

Nothing is read but the ledger. A release is shown only if this library would release the same event for its question
today; whatever it cannot rebuild (models, streams, questions about other rows than a table's own) is not guessed at.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from discreet.curator.catalog.declared_limits import limits_in
from discreet.curator.measurement_plan import MeasurementPlan
from discreet.curator.replay.stored_releases import edition_of, facts_of, header_of, law_of, unpack
from discreet.dataclass import dataclass
from discreet.errors import DiscreetError
from discreet.ledger.stewardship import Blocks, no_blocks
from discreet.measurement.program.execution import ReleasedStatistics
from discreet.plan.canonical import recall
from discreet.plan.model.group_columns import ColumnarRows
from discreet.plan.model.nodes import Question, Value
from discreet.plan.model.schema import ColumnBounds, ColumnSchema, Limits, TableSchema
from discreet.plan.model.types import Type
from discreet.plan.post.outputs import plain_rows
from discreet.presentation.ledger_view.ledger_history import TableDeclaration

CONFIDENCE = Fraction(95, 100)
_FOREIGN = DiscreetError, AttributeError, KeyError, TypeError, ValueError  # of texts that another version has written


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedNumbers:
    """The numbers of an answer, group by group.

    Attributes:
        records: keys, and each number `x` with `x_low` and `x_high`.
        private: False if the noise was seeded, for a test.
    """

    records: Sequence[dict[str, Any]]
    private: bool


def released_numbers(
    question: str, payload: bytes, declared: Mapping[str, TableDeclaration], blocks: Blocks = no_blocks
) -> ReleasedNumbers | None:
    """Returns the numbers of a stored release, with 95 % intervals; None if they cannot be rebuilt from the ledger.

    Args:
        question: as its charge has it.
        payload: as the ledger stores it.
        declared: the tables as they were declared then, by name.
        blocks: returns the long lists of keys that the ledger keeps apart from declarations.
    """
    try:
        fields, form = header_of(payload), json.loads(question)
        table = form["table"]
        about = recall(question, Question(table=table, aggregates=(), outputs=()))
        if about is None or "groups" not in fields or "profile" in fields:
            return None
        released = _rebuild_release(about, fields, payload, _schema(table, declared[table], blocks))
        return None if released is None else _collect_numbers(released, _names(form), private=fields["private"])
    except _FOREIGN:
        return None


def _rebuild_release(
    about: Question, fields: Mapping[str, Any], payload: bytes, schema: TableSchema
) -> ReleasedStatistics | None:
    plan = MeasurementPlan(
        plan=about,
        account=schema.account,
        schemas={schema.name: schema},
        limits=Limits(*fields["limits"]),
        salt="",  # by which rows are chosen; nothing is read
        probes=(),
        facts=facts_of(fields),
    )
    edition = edition_of(fields)
    if edition is None:
        return None
    return unpack(payload, plan.rebuild(plan.facts, law_of(fields), edition=edition), private=fields["private"])


def _collect_numbers(released: ReleasedStatistics, names: Mapping[str, str], *, private: bool) -> ReleasedNumbers:
    groups = released.groups(1 - CONFIDENCE)
    keys = {name: cells for name, cells in groups.columns.items() if name not in names}
    numbers = {title: groups.columns[name] for name, title in names.items() if name in groups.columns}
    return ReleasedNumbers(records=plain_rows(ColumnarRows(keys | numbers, len(groups))), private=private)


def _names(form: Mapping[str, Any]) -> dict[str, str]:
    """Returns the names of an answer's columns for its aggregates; those used only inside others have their kind's."""
    keys = {str(name) for name, _ in form["keys"]}
    said = {f"#{part[1]}": str(name) for name, part in form["outputs"] if part[0] == "#" and name not in keys}
    taken, names = keys | set(said.values()), dict[str, str]()
    for place, aggregate in enumerate(form["aggregates"], 1):
        kind = str(aggregate["kind"]).replace("_", " ")
        names[f"#{place}"] = said.get(f"#{place}", kind if kind not in taken else f"{kind} {place}")
        taken.add(names[f"#{place}"])
    return names


def _schema(name: str, declared: TableDeclaration, blocks: Blocks) -> TableSchema:
    """Returns the table that a declaration describes.

    Raises:
        TypeError: if its rows find their people by several columns, or by a way over other tables.
    """
    told = json.loads(declared.declaration)
    if not (told["unit"] is None or isinstance(told["unit"], str)):
        raise TypeError("a unit of several columns")
    return TableSchema(
        name=name,
        columns={column: _column(column, one, blocks) for column, one in told["columns"].items()},
        unit=told["unit"],
        limits=limits_in(declared.declaration)[0],
        neighbours=declared.neighbours,
        version=declared.version,
        account=declared.account,
    )


def _column(name: str, told: Mapping[str, Any], blocks: Blocks) -> ColumnSchema:
    kind, bounds, keys = Type(told["type"]), told["bounds"], told["keys"]
    if isinstance(keys, dict):
        keys = json.loads(blocks(keys["digest"]))
    read = _KEYS.get(kind, _as_it_is)
    return ColumnSchema(
        name=name,
        type=kind,
        bounds=None if bounds is None else ColumnBounds(Fraction(bounds[0]), Fraction(bounds[1])),
        keys=None if keys is None else tuple(read(key) for key in keys),
    )


def _as_it_is(key: Value) -> Value:
    return key


_KEYS: dict[Type, Callable[[Any], Value]] = {
    Type.DATE: dt.date.fromisoformat,
    Type.TIMESTAMP: dt.datetime.fromisoformat,
}
