"""Where SELECT and EXPLAIN go: queries on tables to the executor, catalog queries to their own process.

Formal guarantee: `describe` and `explain` never ask, so that they spend nothing; `ask` asks once for each call, and
calls nothing before the caller's key was looked up again and their limits were counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from typing import Any

from discreet.dataclass import dataclass
from discreet.errors import DiscreetError, UnsupportedQuery
from discreet.ledger.acts.table_versions import TableVersion
from discreet.requests.question_requests import Explain
from discreet.service.caller import Permission, ServiceCaller
from discreet.service.identity import Identities, RateLimits
from discreet.service.request_executor import OPERATIONS, Document, JobRequest, RequestExecutor
from discreet.service.wire import protocol_messages as pg
from discreet.service.wire import value_formats
from discreet.service.wire.catalog.catalog_executor import CatalogExecutor, CatalogQuery, CatalogRows
from discreet.service.wire.protocol_messages import FieldDescription, WireError
from discreet.service.wire.session_parameters import PROJECT, SessionParameters
from discreet.service.wire.sqlstates import wire_error
from discreet.service.wire.statement_kinds import WireStatement, is_catalog, without_schema

_IMAGINED: Mapping[int, Any] = {
    **dict.fromkeys((value_formats.INT2, value_formats.INT4, value_formats.INT8), 1),
    **dict.fromkeys((value_formats.FLOAT4, value_formats.FLOAT8, value_formats.NUMERIC), 1.5),
    value_formats.BOOL: True,
    value_formats.DATE: "2000-01-01",
    value_formats.TIMESTAMP: "2000-01-01 00:00:00",
}
"""A value of each type; columns do not depend on it."""

_ANY: Sequence[Any] = ("1", "2000-01-01", 1)  # what a parameter of no type may be, one after the other
_KEPT = 200  # explanations of one connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of a statement.

    Attributes:
        fields: columns; None if it gives no rows.
        rows: plain values.
        tag: the command tag of the statement; the row count is added where PostgreSQL has it.
        notices: messages that are sent before the rows.
        charged: whether something was spent.
    """

    tag: str
    fields: tuple[FieldDescription, ...] | None = None
    rows: Sequence[Sequence[Any]] = ()
    notices: tuple[bytes, ...] = ()
    charged: bool = False


def text_rows(tag: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Result:
    """Returns rows of texts as a result."""
    return Result(tag=tag, fields=tuple(FieldDescription(name, value_formats.TEXT) for name in columns), rows=rows)


@dataclass(slots=True, kw_only=True)
class QueryExecutor:
    """Asks the queries of one connection.

    Attributes:
        key_id: the key that the connection was opened with; it is looked up again for every statement.
        database: the name that the client gave the database.
    """

    desk: RequestExecutor
    identities: Identities
    limits: RateLimits
    catalog: CatalogExecutor
    parameters: SessionParameters
    key_id: str
    database: str
    _explained: dict[tuple[str, str], Document] = field(default_factory=dict)

    def caller(self) -> ServiceCaller:
        """Returns who asks, if their key is still good."""
        return self.identities.caller_of_key(self.key_id)

    def about_catalog(self, statement: WireStatement, *, skip: int = 0) -> bool:
        """Returns whether a SELECT goes to the catalog."""
        declared = {str(fact["name"]).lower() for fact in self.desk.tables(self.caller())}
        return is_catalog(statement.words[skip:], declared)

    # ------------------------------------------------------------------------------------------------------- rows

    async def ask(self, statement: WireStatement, values: Sequence[Any]) -> Result:
        """Returns the rows of a SELECT; a question is charged.

        Raises:
            DiscreetError: if it is refused.
        """
        if self.about_catalog(statement):
            found = await self._catalog(statement.text, values)
            return Result(tag="SELECT", fields=found.columns, rows=found.rows)
        arguments = self.parameters.arguments()
        caller = self.caller()
        caller.require(OPERATIONS["ask"].permission)
        self.limits.admit(caller, charging=True)
        work = JobRequest(
            operation=OPERATIONS["ask"],
            arguments={"sql": _sql(statement), **_parameter_arguments(values), **arguments},
            key=self.parameters.use_key(),
            project=self._project(caller),
        )
        return _build_result(await self.desk.perform(caller, work))

    def _project(self, caller: ServiceCaller) -> str:
        return caller.project or self.parameters.get(PROJECT)

    async def _catalog(self, sql: str, values: Sequence[Any]) -> CatalogRows:
        caller = self.caller()
        caller.require(Permission.SEE_TABLES)
        self.limits.admit(caller, charging=False)
        query = CatalogQuery(
            sql=sql,
            parameters=tuple(values),
            facts=[_public(fact) for fact in self.desk.tables(caller)],
            settings=self.parameters.catalog_settings(),
            user=caller.name,
            database=self.database,
        )
        return await self.catalog.answer(query)

    # ---------------------------------------------------------------------------------------------------- planning

    async def explain(self, statement: WireStatement, values: Sequence[Any]) -> Result:
        """Returns the rows of EXPLAIN, which costs nothing.

        Raises:
            WireError: if the question is refused, or more than an explanation is asked for.
        """
        skip = _explained_from(statement)
        inner = statement.words[skip].start
        try:
            if self.about_catalog(statement, skip=skip):
                lines = ["This is a catalog query: it costs nothing."]
            else:
                lines = str((await self._explanation(_sql(statement)[inner:], values))["text"]).splitlines()
        except DiscreetError as error:
            raise wire_error(error, statement.text, before=inner) from None
        return text_rows("EXPLAIN", ["QUERY PLAN"], [(line,) for line in lines])

    async def describe(
        self, statement: WireStatement, values: Sequence[Any] | None, types: Sequence[int] = ()
    ) -> tuple[FieldDescription, ...]:
        """Returns the columns of a SELECT without asking it.

        Args:
            statement: the SELECT.
            values: of its parameters; None if they are not known yet.
            types: in that case, the type of each parameter that the client sent; 0 for none.

        Raises:
            DiscreetError: if it is refused.
        """
        if self.about_catalog(statement):
            given = [None] * statement.parameters if values is None else values
            return (await self._catalog(statement.text, given)).columns
        if values is not None or not statement.parameters:
            return await self._columns(statement, values or ())
        imagined = [[_IMAGINED.get(oid, value) for oid in types[: statement.parameters]] for value in _ANY]
        for given in imagined[:-1]:
            with suppress(UnsupportedQuery):
                return await self._columns(statement, given)
        return await self._columns(statement, imagined[-1])

    async def _columns(self, statement: WireStatement, values: Sequence[Any]) -> tuple[FieldDescription, ...]:
        return _fields(await self._explanation(_sql(statement), values))

    async def _explanation(self, sql: str, values: Sequence[Any]) -> Document:
        """Returns the explanation of a query, kept for the same one: clients ask for it again and again."""
        arguments = self.parameters.arguments(Explain)
        caller = self.caller()
        caller.require(OPERATIONS["explain"].permission)
        project = self._project(caller)
        key = (sql, repr((tuple(values), sorted(arguments.items()), project)))
        if key not in self._explained:
            self.limits.admit(caller, charging=False)
            given = {"sql": sql, **_parameter_arguments(values), **arguments}
            work = JobRequest(operation=OPERATIONS["explain"], arguments=given, project=project)
            told = await self.desk.perform(caller, work)
            if len(self._explained) >= _KEPT:
                self._explained.clear()
            self._explained[key] = {"columns": told["columns"], "text": told["text"]}
        return self._explained[key]


def _explained_from(statement: WireStatement) -> int:
    """Returns how many words come before the explained query."""
    skip = 1
    while statement.word(skip) == "VERBOSE":
        skip += 1
    if skip >= len(statement.words):
        raise WireError("42601", "EXPLAIN has no query", "Write EXPLAIN SELECT ...")
    if statement.word(skip) == "ANALYZE" or statement.words[skip].text == "(":
        hint = "Write EXPLAIN SELECT ... without options. EXPLAIN never runs the query."
        raise WireError("0A000", "EXPLAIN takes no options", hint, place=statement.words[skip].start)
    if statement.word(skip) not in ("SELECT", "WITH", "FROM"):
        raise WireError("0A000", "Only a SELECT can be explained", place=statement.words[skip].start)
    return skip


def _sql(statement: WireStatement) -> str:
    return without_schema(statement.text, statement.words)


def _parameter_arguments(values: Sequence[Any]) -> dict[str, Any]:
    return {"parameters": list(values)} if values else {}


def _public(fact: Mapping[str, Any]) -> Document:
    """Returns the facts that the catalog shows."""
    columns = [{name: column.get(name) for name in ("name", "type", "bounds")} for column in fact["columns"]]
    return {"name": fact["name"], "protected": fact.get("protected"), "unit": fact.get("unit", ""), "columns": columns}


def _fields(document: Mapping[str, Any]) -> tuple[FieldDescription, ...]:
    return tuple(FieldDescription(each["name"], value_formats.TYPES[each["type"]]) for each in document["columns"])


def _build_result(document: Mapping[str, Any]) -> Result:
    """Returns an answer as rows, with its cost as a notice."""
    replayed = bool(document["replayed"])
    cost = "nothing: this is a stored answer" if replayed else amount_text(document["cost"])
    told = f"Cost: {cost}; remaining: {amount_text(document['remaining'])}"
    if not document.get("private", True):
        told += "; the noise is seeded: NOT PRIVATE"
    said = [
        *(f"Data version: {TableVersion(**one)}" for one in document.get("versions", ())),
        *document.get("notes", ()),
    ]
    return Result(
        tag="SELECT",
        fields=_fields(document),
        rows=document["rows"],
        notices=(pg.notice(told, detail="\n".join(map(str, said))),),
        charged=not replayed,
    )


def amount_text(written: Any) -> str:
    """Returns what a document says of an amount, in words; "" where it has none."""
    return str(written.get("text", "")) if isinstance(written, Mapping) else "" if written is None else str(written)
