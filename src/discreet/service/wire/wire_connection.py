"""One connection after its sign-in: messages in, rows and reports out.

Formal guarantee: a question is asked only by Query and by the first Execute of a portal; a portal that is executed
again or further gives the rows that it has. Every message is answered, or the connection ends; a report repeats only
texts of our own errors.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeVar

from discreet.dataclass import dataclass
from discreet.errors import DiscreetError
from discreet.service.wire import protocol_messages as pg
from discreet.service.wire import value_formats
from discreet.service.wire.protocol_messages import Body, FieldDescription, ProtocolViolation, WireError
from discreet.service.wire.query_executor import Result
from discreet.service.wire.session_parameters import REPORTED, SessionParameters
from discreet.service.wire.sqlstates import wire_error
from discreet.service.wire.statement_kinds import StatementKind, WireStatement, read_statements
from discreet.service.wire.wire_session import WireSession

MOST_PREPARED, MOST_PORTALS = 500, 100  # statements and portals that one connection keeps
_FLUSH = 1 << 16  # bytes that are written at once
_PATIENCE = 60.0  # seconds for a client to take what is sent, or to send the rest of a message
_IDLE = 8 * 3600.0

Found = TypeVar("Found")


@dataclass(slots=True, kw_only=True)
class PreparedStatement:
    """A statement that was parsed; None for an empty text.

    Attributes:
        types: the type of each parameter; 0 where the client named none.
        described: its columns, once the client asked for them.
    """

    statement: WireStatement | None
    types: tuple[int, ...]
    described: tuple[FieldDescription, ...] | None = None


@dataclass(slots=True, kw_only=True)
class Portal:
    """A statement with its values, and the rows once it was executed.

    Attributes:
        formats: of its columns, as Bind gave them.
        place: how many rows were fetched.
    """

    prepared: PreparedStatement
    values: tuple[Any, ...]
    formats: tuple[int, ...]
    described: tuple[FieldDescription, ...] | None = None
    result: Result | None = None
    place: int = 0


@dataclass(slots=True)
class WireConnection:
    """Reads messages until the client leaves.

    Attributes:
        running: what a cancel request stops.
        log: writes a line about an event, without literals.
    """

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    session: WireSession
    parameters: SessionParameters
    log: Callable[..., None]
    running: asyncio.Task[Any] | None = None
    _prepared: dict[str, PreparedStatement] = field(default_factory=dict)
    _portals: dict[str, Portal] = field(default_factory=dict)
    _out: bytearray = field(default_factory=bytearray)
    _skipping: bool = False
    _told: dict[str, str] = field(default_factory=dict)

    # --------------------------------------------------------------------------------------------------------- loop

    async def serve(self) -> None:
        """Answers until the client says goodbye or is gone."""
        self._told = {name: self.parameters.get(name) for name in REPORTED}
        self._send(*(pg.parameter_status(name, value) for name, value in self._told.items()))
        await self._ready()
        while True:
            async with asyncio.timeout(_IDLE):
                kind = await self.reader.readexactly(1)
            async with asyncio.timeout(_PATIENCE):
                body = await pg.read_body(self.reader)
            if kind == b"X":
                return
            if not await self._handle_message(kind, body):
                return

    async def _handle_message(self, kind: bytes, body: Body) -> bool:
        """Handles a message, and returns whether the connection goes on after it."""
        handler = _HANDLERS.get(kind)
        if handler is None:
            raise ProtocolViolation("a message is of no known kind")
        if self._skipping and kind != b"S":  # after an error all is skipped until Sync
            return True
        try:
            await handler(self, body)
        except (WireError, DiscreetError) as error:
            return await self._report_error(wire_error(error), simple=kind in _ANSWERED_ALONE)
        return True

    async def _report_error(self, error: WireError, *, simple: bool) -> bool:
        self.session.fail()
        self.log("refused", sqlstate=error.sqlstate)
        self._send(pg.error(error))
        if error.fatal:
            await self._flush()
            return False
        if simple:
            await self._ready()
        else:
            self._skipping = True
            await self._flush()
        return True

    def stop(self) -> None:
        """Stops what runs, as a cancel request asks for."""
        if self.running is not None:
            self.running.cancel()

    async def _stoppable(self, work: Awaitable[Found]) -> Found:
        """Returns the result of work, unless a cancel request stops it; a charge that was made by then stays."""
        task = asyncio.ensure_future(work)
        self.running = task
        try:
            return await task
        except asyncio.CancelledError:
            if not task.cancelled() or _is_cancelled():
                task.cancel()
                raise
            hint = "If it was charged, the charge stays. Ask again with the same discreet.key: it is charged once."
            raise WireError("57014", "The statement was cancelled", hint) from None
        finally:
            self.running = None

    # ---------------------------------------------------------------------------------------------- simple protocol

    async def query(self, body: Body) -> None:
        """Runs the statements of a text."""
        text = body.text()
        body.end()
        self._portals.pop("", None)
        found = read_statements(text)
        if any(each.parameters for each in found):
            raise WireError("42P02", "A parameter has no value", "Pass the values through your driver's parameters.")
        self.session.check(found)
        for each in found:
            try:
                await self._whole(each)
            except WireError as error:
                raise error.shift_place(each.offset) from None
        if not found:
            self._send(pg.EMPTY_QUERY)
        await self._ready()

    async def _whole(self, statement: WireStatement) -> None:
        result = await self._stoppable(self.session.run(statement, ()))
        self._send(*result.notices)
        if result.fields is not None:
            formats = (0,) * len(result.fields)
            self._send(pg.row_description(result.fields, formats))
            await self._rows(result.rows, result.fields, formats)
        self._send(pg.command_complete(_tag(result, len(result.rows))))
        self._after(statement)

    # -------------------------------------------------------------------------------------------- extended protocol

    async def parse(self, body: Body) -> None:
        """Prepares a statement under a name."""
        name, sql, types = pg.read_parse(body)
        found = read_statements(sql)
        if len(found) > 1:
            raise WireError("42601", "Only one statement can be prepared at a time", place=found[1].offset)
        if name in self._prepared and name:
            raise WireError("42P05", "A statement of that name is prepared already")
        if len(self._prepared) >= MOST_PREPARED:
            raise WireError("54000", f"At most {MOST_PREPARED} statements are kept", "Send DEALLOCATE ALL.")
        statement = found[0] if found else None
        taken = statement.parameters if statement else 0
        if taken > pg.MOST_PARAMETERS:
            raise WireError("54000", f"A statement takes at most {pg.MOST_PARAMETERS} parameters")
        self._prepared[name] = PreparedStatement(statement=statement, types=(*types, *(0,) * (taken - len(types))))
        self._send(pg.PARSE_COMPLETE)

    async def bind(self, body: Body) -> None:
        """Gives values to a statement."""
        given = pg.read_bind(body)
        prepared = self._statement(given.statement)
        wanted = len(prepared.types)
        if len(given.values) != wanted:
            raise WireError("08P01", f"{len(given.values)} values are bound, and the statement takes {wanted}")
        if len(self._portals) >= MOST_PORTALS and given.portal not in self._portals:
            raise WireError("54000", f"At most {MOST_PORTALS} portals are kept")
        if given.portal and given.portal in self._portals:
            raise WireError("42P03", "A portal of that name exists already")
        forms = _each(given.formats, wanted)
        values = tuple(
            value_formats.read_parameter(place, raw, oid, form)
            for place, (raw, oid, form) in enumerate(zip(given.values, prepared.types, forms, strict=True), 1)
        )
        self._portals[given.portal] = Portal(prepared=prepared, values=values, formats=given.result_formats)
        self._send(pg.BIND_COMPLETE)

    async def describe(self, body: Body) -> None:
        """Describes columns; nothing is asked, and nothing is spent."""
        kind, name = pg.read_target(body)
        if kind == "S":
            await self._describe_statement(self._statement(name))
            return
        portal = self._portal(name)
        found = await self._columns(portal)
        self._send(pg.NO_DATA if found is None else pg.row_description(found, self._formats(portal, found)))

    async def _describe_statement(self, prepared: PreparedStatement) -> None:
        found = None
        if prepared.statement is not None:
            found = await self._stoppable(self.session.describe(prepared.statement, None, prepared.types))
        prepared.described = found
        self._send(pg.parameter_description([oid or value_formats.TEXT for oid in prepared.types]))
        self._send(pg.NO_DATA if found is None else pg.row_description(found, (0,) * len(found)))

    async def _columns(self, portal: Portal) -> tuple[FieldDescription, ...] | None:
        """Returns the columns of a portal: of its rows if it has them, else as they will be."""
        if portal.result is not None:
            return portal.described or portal.result.fields
        statement = portal.prepared.statement
        if portal.described is None and statement is not None:
            portal.described = await self._stoppable(self.session.describe(statement, portal.values))
        return portal.described

    async def execute(self, body: Body) -> None:
        """Sends rows of a portal, which is run first if it has not been."""
        name, most = pg.read_execute(body)
        portal = self._portal(name)
        statement = portal.prepared.statement
        if statement is None:
            self._send(pg.EMPTY_QUERY)
            return
        if portal.result is None:
            portal.result = await self._stoppable(self.session.run(statement, portal.values))
            self._send(*portal.result.notices)
        await self._send_portal_rows(portal, portal.result, most)
        self._after(statement)

    async def _send_portal_rows(self, portal: Portal, result: Result, most: int) -> None:
        if result.fields is None:
            self._send(pg.command_complete(result.tag))
            return
        shown = portal.described or portal.prepared.described or result.fields
        if [each.name for each in shown] != [each.name for each in result.fields]:
            raise WireError("XX000", "The columns differ from what was described")
        portal.described = shown
        end = len(result.rows) if most == 0 else min(len(result.rows), portal.place + most)
        rows = result.rows[portal.place : end]
        portal.place = end
        await self._rows(rows, shown, self._formats(portal, shown))
        left = end < len(result.rows)
        self._send(pg.SUSPENDED if left else pg.command_complete(_tag(result, len(rows))))

    def _formats(self, portal: Portal, found: Sequence[FieldDescription]) -> tuple[int, ...]:
        if len(portal.formats) not in (0, 1, len(found)):
            raise WireError("08P01", f"{len(portal.formats)} formats are given for {len(found)} columns")
        formats = _each(portal.formats, len(found))
        for each, form in zip(found, formats, strict=True):
            if form == 1 and not value_formats.has_binary(each.oid):
                raise WireError("0A000", f"The type {each.oid} is not sent in binary", "Ask for text.")
        return formats

    async def close(self, body: Body) -> None:
        """Forgets a statement or a portal."""
        kind, name = pg.read_target(body)
        kept: dict[str, Any] = self._prepared if kind == "S" else self._portals
        kept.pop(name, None)
        self._send(pg.CLOSE_COMPLETE)

    async def sync(self, body: Body) -> None:
        """Ends a group of messages, and the skipping after an error."""
        body.end()
        self._skipping = False
        await self._ready()

    async def flush(self, body: Body) -> None:
        """Sends the messages that wait to be written."""
        body.end()
        await self._flush()

    async def copy_data(self, body: Body) -> None:
        """Ignores the data of a COPY, which was refused."""
        del body

    async def function_call(self, body: Body) -> None:
        """Refuses to call functions by number."""
        del body
        raise WireError("0A000", "Functions cannot be called by number", "Ask with SELECT.")

    def _statement(self, name: str) -> PreparedStatement:
        if name not in self._prepared:
            raise WireError("26000", "There is no prepared statement of that name")
        return self._prepared[name]

    def _portal(self, name: str) -> Portal:
        if name not in self._portals:
            raise WireError("34000", "There is no portal of that name")
        return self._portals[name]

    # ---------------------------------------------------------------------------------------------------- writing

    def _after(self, statement: WireStatement) -> None:
        """Reports settings that have changed, and forgets statements after commands that do so."""
        for name, value in self._told.items():
            if self.parameters.get(name) != value:
                self._told[name] = self.parameters.get(name)
                self._send(pg.parameter_status(name, self._told[name]))
        if statement.kind in (StatementKind.DISCARD, StatementKind.DEALLOCATE):
            self._forget(statement)

    def _forget(self, statement: WireStatement) -> None:
        named = [each for each in statement.words[1:] if each.word != "PREPARE"]
        name = named[0].name if named else "all"
        if statement.kind is StatementKind.DEALLOCATE and name != "all" and self._prepared.pop(name, None) is None:
            raise WireError("26000", "There is no prepared statement of that name")
        if name == "all" or statement.kind is StatementKind.DISCARD:
            self._prepared.clear()

    async def _rows(
        self, rows: Sequence[Sequence[Any]], found: Sequence[FieldDescription], formats: Sequence[int]
    ) -> None:
        for row in rows:
            cells = zip(row, found, formats, strict=True)
            written = [value_formats.encode_value(cell, each.oid, form, column=each.name) for cell, each, form in cells]
            self._send(pg.data_row(written))
            if len(self._out) > _FLUSH:
                await self._flush()

    def _send(self, *messages: bytes) -> None:
        for each in messages:
            self._out += each

    async def _ready(self) -> None:
        if self.session.status == "I":  # portals live as long as their transaction
            self._portals.clear()
        self._send(pg.ready(self.session.status))
        await self._flush()

    async def _flush(self) -> None:
        self.writer.write(bytes(self._out))
        self._out.clear()
        async with asyncio.timeout(_PATIENCE):
            await self.writer.drain()


def _is_cancelled() -> bool:
    """Returns whether the connection itself is to end."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _each(formats: Sequence[int], count: int) -> tuple[int, ...]:
    if not formats:
        return (0,) * count
    return tuple(formats) * count if len(formats) == 1 else tuple(formats)


def _tag(result: Result, rows: int) -> str:
    return f"SELECT {rows}" if result.tag == "SELECT" else result.tag


_ANSWERED_ALONE = (b"Q", b"F")
"""Messages after which a client waits for ReadyForQuery without sending Sync, also after an error."""

_HANDLERS: Mapping[bytes, Callable[[WireConnection, Body], Awaitable[None]]] = {
    b"Q": WireConnection.query,
    b"P": WireConnection.parse,
    b"B": WireConnection.bind,
    b"D": WireConnection.describe,
    b"E": WireConnection.execute,
    b"C": WireConnection.close,
    b"S": WireConnection.sync,
    b"H": WireConnection.flush,
    b"F": WireConnection.function_call,
    **dict.fromkeys((b"d", b"c", b"f"), WireConnection.copy_data),
}
