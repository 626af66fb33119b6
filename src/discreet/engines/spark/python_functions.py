"""Functions in Python that Spark calls where SQL has none: ids in normal form, and patterns that Java is slow to find.

They take whole columns in Arrow's form. Spark sends them to its workers with all that they refer to, so that nothing of
ours is installed there; the workers need pyarrow, and the driver's version of Python.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from discreet import errors
from discreet.engines.spark.dialect import EXTRACT, ID_FUNCTION, MATCHES
from discreet.lazy import load, pa
from discreet.plan.expressions import letter_case, pattern_grammar, pattern_matcher, patterns
from discreet.plan.expressions.pattern_grammar import parse
from discreet.plan.expressions.pattern_matcher import PatternProgram
from discreet.plan.model.unit_ids import WHITE_SPACE, doubtful_and_unassigned

_SENT = (errors, letter_case, pattern_grammar, pattern_matcher, patterns)


def register(session: Any) -> None:
    """Makes the functions known to a session under their names in SQL."""
    functions = load("pyspark.sql.functions", "Spark")
    with _send_by_value(*_SENT), _of_this_python(session):
        for name, made in (
            (ID_FUNCTION, _ids(WHITE_SPACE, *doubtful_and_unassigned())),
            (MATCHES, _make_search(lambda pattern: PatternProgram.of(parse(pattern)).matches, pa.bool_())),
            (EXTRACT, _make_search(lambda pattern: PatternProgram.of(parse(pattern)).group, pa.string())),
        ):
            kind = "boolean" if name == MATCHES else "string"
            session.udf.register(name, functions.arrow_udf(made, kind))


@contextmanager
def _send_by_value(*modules: ModuleType) -> Iterator[None]:
    """Runs a block in which what is taken from these modules is sent, and not looked for where it arrives."""
    pickle = load("pyspark.cloudpickle", "Spark")
    for module in modules:
        pickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in modules:
            pickle.unregister_pickle_by_value(module)


@contextmanager
def _of_this_python(session: Any) -> Iterator[None]:
    """Runs a block in which functions are bound to this interpreter, where the workers run on this machine."""
    context = getattr(session, "_sc", None)
    if context is None or not context.master.startswith("local"):
        yield
        return
    before, context.pythonExec = context.pythonExec, sys.executable
    try:
        yield
    finally:
        context.pythonExec = before


def _annotate_types(function: Callable[..., Any], *arguments: str) -> Callable[..., Any]:
    """Returns the function with annotations by which Spark sees that it takes columns."""
    function.__annotations__ = dict.fromkeys((*arguments, "return"), pa.Array)
    return function


def _ids(white_space: str, doubtful: re.Pattern[str], unassigned: re.Pattern[str]) -> Callable[..., Any]:
    """Returns a function for `unit_ids.id_text` of each text, NULL of NULL and of what is no id."""

    def ids(texts: Any) -> Any:
        import unicodedata  # noqa: PLC0415 - imported where it runs

        import pyarrow  # noqa: PLC0415, ICN001

        def of(text: str | None) -> str | None:
            if text is None:
                return None
            made = unicodedata.normalize("NFC", text)
            if made != text and doubtful.search(text) and unassigned.search(text):
                made = text
            return made.strip(white_space) or None

        if texts.null_count == len(texts):
            return pyarrow.nulls(len(texts), pyarrow.string())
        return pyarrow.array([of(text) for text in texts.to_pylist()], pyarrow.string())

    return _annotate_types(ids, "texts")


def _make_search(searcher: Callable[[str], Callable[[str], Any]], kind: Any) -> Callable[..., Any]:
    """Returns what a pattern, the same in all rows, finds in each text; NULL of NULL."""

    def search_texts(texts: Any, patterns: Any) -> Any:
        import pyarrow  # noqa: PLC0415, ICN001 - imported where it runs

        if texts.null_count == len(texts):
            return pyarrow.nulls(len(texts), kind)
        search = searcher(patterns[0].as_py())
        return pyarrow.array([None if text is None else search(text) for text in texts.to_pylist()], kind)

    return _annotate_types(search_texts, "texts", "patterns")
