"""Modules that are imported when they are first used: heavy ones, and optional ones that may be missing.

`from discreet.lazy import special` costs nothing; the first `special.ndtr` imports scipy.special, which takes longer
than a whole question that needs none of it. This is the one table of modules loaded late; the commands of the terminal
have theirs in `discreet.cli.app`.

>>> from discreet.lazy import special
>>> float(special.ndtr(0.0))
0.5
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from discreet.errors import MissingExtra

if TYPE_CHECKING:
    import narwhals as nw
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
    import rich.console as rich_console
    import rich.table as rich_table
    import rich.text as rich_text
    from scipy import linalg, optimize, sparse, special, stats

__all__ = ["EXTRAS", "extra", "linalg", "load", "nw", "optimize", "pa", "pc", "pq", "rich_console", "rich_table"]
__all__ += ["rich_text", "sparse", "special", "stats"]


class Module:
    """A module that is imported when its first attribute is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self._name), name)
        setattr(self, name, value)  # the next time it is found without a call
        return value


if not TYPE_CHECKING:
    linalg = Module("scipy.linalg")
    nw = Module("narwhals")
    optimize = Module("scipy.optimize")
    pa = Module("pyarrow")
    pc = Module("pyarrow.compute")
    pq = Module("pyarrow.parquet")
    rich_console = Module("rich.console")
    rich_table = Module("rich.table")
    rich_text = Module("rich.text")
    sparse = Module("scipy.sparse")
    special = Module("scipy.special")
    stats = Module("scipy.stats")

EXTRAS = {
    "aiohttp": "cloud",
    "altair": "report",
    "deltalake": "delta",
    "fastapi": "service",
    "fsspec": "cloud",
    "grpc": "spark",
    "jinja2": "report",
    "joserfc": "service",
    "pandas": "frames",
    "polars": "frames",
    "prometheus_client": "service",
    "psycopg": "postgres",
    "pyiceberg": "iceberg",
    "pymysql": "mysql",
    "pyspark": "spark",
    "sklearn": "learn",
    "starlette": "service",
    "torch": "deep",
    "uvicorn": "service",
    "vl_convert": "report",
}
"""Optional modules, and the extra of this package that installs each."""


@contextmanager
def extra(what: str) -> Iterator[None]:
    """Runs a block of imports, and says what to install if an optional module is missing.

    Args:
        what: the thing that cannot be had without it, as a sentence begins.

    Raises:
        MissingExtra: instead of the interpreter's own error.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in EXTRAS:
            raise
        raise MissingExtra(missing, what, EXTRAS[missing]) from None


def load(module: str, what: str) -> Any:
    """Imports an optional module, or one that needs an optional module.

    Args:
        module: its full name.
        what: the thing that cannot be had without it, as a sentence begins.

    Raises:
        MissingExtra: if what it needs is not installed.
    """
    with extra(what):
        return import_module(module)
