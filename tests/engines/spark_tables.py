"""Tables of tests in Spark: rows written to Parquet files, which engines read."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from discreet.engines.spark import Spark
from discreet.plan.model.types import Type
from tests.engines.tables import Rows, arrow

_PLACES = count()


def parquet(rows: Rows, columns: Mapping[str, Type], folder: Path, *, files: int = 1) -> list[Path]:
    """The rows in so many files."""
    paths = [folder / f"{next(_PLACES)}.parquet" for _ in range(files)]
    for place, path in enumerate(paths):
        pq.write_table(arrow(rows[place::files], columns), path)
    return paths


class SparkOfRows(Spark):
    """An engine that is given lists of rows, as `Memory` is, and makes files of them.

    Args:
        session: a session of PySpark.
        folder: where the files are written.
    """

    def __init__(self, session: Any, folder: Path) -> None:
        super().__init__(session)
        self._folder = folder

    def schema_of(self, source: Any) -> dict[str, Type]:
        del source
        return {}

    def origins(self, source: Any) -> dict[str, str]:
        del source
        return {}

    def _attach(self, name: str, source: Any, columns: Mapping[str, Type]) -> None:
        super()._attach(name, parquet(source, columns, self._folder), columns)
