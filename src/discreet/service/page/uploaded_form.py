"""A form with a file, read as it arrives: its token is checked before the first byte of the file is written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from email.message import Message
from typing import Any

from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from starlette.requests import ClientDisconnect, Request

from discreet.errors import InvalidParameter

MOST_FIELD = 10_000  # bytes of a field that is no file, and of all headers of a part
MOST_FIELDS = 20  # before the file
_HINT = "Send it from the page."


@dataclass(slots=True)
class _Part:
    headers: dict[str, str] = field(default_factory=dict)
    name: str = ""
    filename: str | None = None


@dataclass(slots=True)
class UploadedForm:
    """Reads a multipart body: small fields first, then one file.

    Attributes:
        fields: those that came before the file.
        filename: the browser's name of the file, once `begin` has found it.
    """

    request: Request
    fields: dict[str, str] = field(default_factory=dict)
    filename: str | None = None
    _part: _Part = field(default_factory=_Part)
    _header: list[bytes] = field(default_factory=lambda: [b"", b""])
    _small: bytes = b""
    _chunks: list[bytes] = field(default_factory=list)
    _ended: bool = False
    _body: AsyncIterator[bytes] | None = None
    _parser: MultipartParser | None = None

    async def begin(self) -> None:
        """Reads until the file begins.

        Raises:
            InvalidParameter: if there is none.
        """
        told = Message()
        told["content-type"] = self.request.headers.get("content-type", "")
        boundary = told.get_boundary("")
        if told.get_content_type() != "multipart/form-data" or not boundary:
            raise InvalidParameter("form", told.get_content_type(), "to be multipart/form-data", _HINT)
        callbacks: Any = {
            "on_part_begin": self._on_part,
            "on_header_field": lambda data, start, end: self._on_header(0, data[start:end]),
            "on_header_value": lambda data, start, end: self._on_header(1, data[start:end]),
            "on_header_end": self._on_header_end,
            "on_headers_finished": self._on_headers,
            "on_part_data": lambda data, start, end: self._on_data(data[start:end]),
            "on_part_end": self._on_part_end,
        }
        try:
            self._parser = MultipartParser(boundary.encode(), callbacks)
        except FormParserError:
            raise InvalidParameter("form", "its boundary", "to be shorter", _HINT) from None
        self._body = self.request.stream()
        while self.filename is None:
            if not await self._more():
                raise InvalidParameter("file", None, "to be chosen", "Choose a CSV or Parquet file.")

    async def content(self) -> AsyncIterator[bytes]:
        """Yields the file's bytes as they come."""
        while True:
            chunks, self._chunks = self._chunks, []
            for chunk in chunks:
                yield chunk
            if self._ended or not await self._more():
                break
            await asyncio.sleep(0)  # others are served between two pieces
        if not self._ended:
            raise InvalidParameter("file", self.filename, "to arrive whole", "Send it again.")

    async def _more(self) -> bool:
        if self._body is None or self._parser is None:
            return False
        try:
            chunk = await anext(self._body, b"")
        except ClientDisconnect:
            chunk = b""
        if not chunk:
            return False
        try:
            self._parser.write(chunk)
        except FormParserError:
            raise InvalidParameter("form", "this one", "to be multipart/form-data", _HINT) from None
        return True

    def _on_part(self) -> None:
        self._part, self._small = _Part(), b""

    def _on_header(self, place: int, data: bytes) -> None:
        self._header[place] += data
        if len(self._header[place]) > MOST_FIELD:
            raise InvalidParameter("form", "a header", f"at most {MOST_FIELD} bytes", _HINT)

    def _on_header_end(self) -> None:
        name, value = (part.decode("utf-8", "replace") for part in self._header)
        self._part.headers[name.lower()] = value
        self._header = [b"", b""]

    def _on_headers(self) -> None:
        told = Message()
        told["content-disposition"] = self._part.headers.get("content-disposition", "")
        self._part.name = str(told.get_param("name", "", "content-disposition"))
        given = told.get_filename()
        self._part.filename = given
        if given is not None and self.filename is None:
            self.filename = given

    def _on_data(self, data: bytes) -> None:
        if self._part.filename is not None:
            if not self._ended:
                self._chunks.append(data)
            return
        self._small += data
        if len(self._small) > MOST_FIELD:
            raise InvalidParameter("form", self._part.name, f"at most {MOST_FIELD} bytes", _HINT)

    def _on_part_end(self) -> None:
        if self._part.filename is not None:
            self._ended = True
        else:
            self.fields[self._part.name] = self._small.decode("utf-8", "replace")
            if len(self.fields) > MOST_FIELDS:
                raise InvalidParameter("form", "this one", f"at most {MOST_FIELDS} fields", _HINT)
