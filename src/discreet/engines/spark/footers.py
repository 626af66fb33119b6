"""How Parquet files store their columns, from their footers: what decides whether reading them can fail on a value.

The driver's own reader is asked, which reads wherever Spark does. There is none in a process that uses Spark Connect.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from discreet.errors import InvalidParameter

_LEAF = re.compile(
    r"  (?:optional|required) (?P<physical>[a-z0-9_]+)(?:\((?P<length>[0-9]+)\))? (?P<name>.+?)"
    r"(?: \((?P<annotation>[A-Z][A-Z0-9_]*(?:\([^()]*\))?)\))?(?: = [0-9]+)?;"
)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column without parts: its physical type, the bytes of one of fixed length, and what these are to mean."""

    physical: str
    length: int
    annotation: str


def leaves_of(session: Any, files: Sequence[str]) -> dict[str, Leaf] | None:
    """Returns the columns of files; None where there is nobody to ask.

    Raises:
        InvalidParameter: if files do not store a column of the first one in the same way.
    """
    if not hasattr(session, "_jvm"):
        return None
    texts = dict.fromkeys(_footer(session, file) for file in files)
    first, *others = map(parsed, texts)
    if any(other.get(name) != leaf for other in others for name, leaf in first.items()):
        hint = "Write all files with the same columns and types."
        raise InvalidParameter("source", "Parquet files", "to store columns in the same way", hint)
    return first


def _footer(session: Any, file: str) -> str:
    hadoop, parquet = session._jvm.org.apache.hadoop, session._jvm.org.apache.parquet.hadoop
    path, settings = hadoop.fs.Path(file), session._jsc.hadoopConfiguration()
    reader = parquet.ParquetFileReader.open(parquet.util.HadoopInputFile.fromPath(path, settings))
    try:
        return str(reader.getFooter().getFileMetaData().getSchema().toString())
    finally:
        reader.close()


def parsed(text: str) -> dict[str, Leaf]:
    r"""Reads columns from a schema as Parquet's library writes it.

    >>> parsed("message m {\n  optional int64 at (TIMESTAMP(MILLIS,false));\n}\n")
    {'at': Leaf(physical='int64', length=0, annotation='TIMESTAMP(MILLIS,false)')}
    """
    found = {}
    for match in filter(None, map(_LEAF.fullmatch, text.splitlines())):
        found[match["name"]] = Leaf(match["physical"], int(match["length"] or 0), match["annotation"] or "")
    return found
