"""A form with a file, read as it arrives: its token is checked before the first byte of the file is written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import field
from email.message import Message
from typing import Any

from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from starlette.requests import ClientDisconnect, Request

from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter

MOST_FIELD = 10_000  # bytes of a field that is no file, and of all headers of a part
MOST_FIELDS = 20  # before the file


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
    _header: list[bytes] = field(default_factory=lambda: [b"", b""])
    _disposition: Message = field(default_factory=Message)
    _small: bytes = b""
    _chunks: list[bytes] = field(default_factory=list)
    _ended: bool = False
    _body: AsyncIterator[bytes] | None = None
    _parser: MultipartParser | None = None

    async def begin(self) -> None:
        """Reads until the file begins.

        Raises:
            InvalidParameter: if there is no file.
        """
        told = Message()
        told["content-type"] = self.request.headers.get("content-type", "")
        boundary = told.get_boundary("")
        if told.get_content_type() != "multipart/form-data" or not boundary:
            raise _unfit(told.get_content_type(), "to be multipart/form-data")
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
            raise _unfit("its boundary", "to be shorter") from None
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
            raise InvalidParameter("file", self.filename, "to arrive complete", "Send it again.")

    async def _more(self) -> bool:
        """Reads on, and returns whether something came."""
        if self._body is None or self._parser is None:
            return False
        try:
            chunk = await anext(self._body, b"")
            self._parser.write(chunk)
        except ClientDisconnect:
            return False
        except FormParserError:
            raise _unfit("this one", "to be multipart/form-data") from None
        return bool(chunk)

    def _on_part(self) -> None:
        self._disposition, self._small = Message(), b""

    def _on_header(self, place: int, data: bytes) -> None:
        self._header[place] += data
        if len(self._header[place]) > MOST_FIELD:
            raise _unfit("a header", f"to have at most {MOST_FIELD} bytes")

    def _on_header_end(self) -> None:
        name, value = (part.decode("utf-8", "replace") for part in self._header)
        if name.lower() == "content-disposition":
            self._disposition[name] = value
        self._header = [b"", b""]

    def _on_headers(self) -> None:
        if self.filename is None:
            self.filename = self._disposition.get_filename()

    def _on_data(self, data: bytes) -> None:
        if self._disposition.get_filename() is None:
            self._small += data
            if len(self._small) > MOST_FIELD:
                raise _unfit("a field", f"to have at most {MOST_FIELD} bytes")
        elif not self._ended:
            self._chunks.append(data)

    def _on_part_end(self) -> None:
        if self._disposition.get_filename() is None:
            name = str(self._disposition.get_param("name", "", "content-disposition"))
            self.fields[name] = self._small.decode("utf-8", "replace")
            if len(self.fields) > MOST_FIELDS:
                raise _unfit("this one", f"to have at most {MOST_FIELDS} fields")
        else:
            self._ended = True


def _unfit(what: str, condition: str) -> InvalidParameter:
    return InvalidParameter("form", what, condition, "Send it from the page.")
