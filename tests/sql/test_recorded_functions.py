"""Records of functions: every word is read as its record says, and records say what is derived from them."""

from __future__ import annotations

from functools import partial

import pytest
from sqlglot import exp

from discreet.errors import UnsupportedQuery
from discreet.plan.expressions.calls import call
from discreet.plan.expressions.functions import FUNCTIONS
from discreet.plan.expressions.functions.record import Nulls, Signature
from discreet.plan.model.nodes import ColumnRef, Expression, FunctionCall
from discreet.plan.model.types import Type
from discreet.sql import sql_tokens
from discreet.sql.functions import grammar, recorded_functions
from discreet.sql.functions.grammar import read
from discreet.sql.grammar_words import FUNCTION_WORDS, RECORDS
from discreet.sql.refusals import SqlSource
from discreet.sql.scope import Scope
from discreet.sql.select import select
from tests.plan.tables import SCHEMAS, VISITS

COLUMNS = {
    Type.INT: ("age", "index", "visits_before"),
    Type.FLOAT: ("charge", "weight", "debt"),
    Type.BOOL: ("smoker",) * 3,
    Type.TEXT: ("ward", "note", "ward"),
    Type.DATE: ("day",) * 3,
    Type.TIMESTAMP: ("seen",) * 3,
}
CALLED = [
    (word, function.name, signature)
    for function in FUNCTIONS.values()
    for word in function.words
    for signature in function.signatures
]


def meant(text: str) -> Expression:
    source = SqlSource(f"SELECT {text}", SCHEMAS, 7)
    return read(select(source).expressions[0], Scope(source=source, schema=VISITS, alias="visits"))


def arguments(signature: Signature) -> list[ColumnRef]:
    kinds = signature.arguments + signature.arguments[-1:] * (2 if signature.variadic else 0)
    return [ColumnRef(COLUMNS[kind][place], kind) for place, kind in enumerate(kinds)]


def check(word: str, function: str, signature: Signature) -> None:
    """A call of columns is read as the function of the same columns, in their order."""
    given = arguments(signature)
    written = [column.name for column in given]
    text = f"{word}({' IN '.join(reversed(written))})" if word == "POSITION" else f"{word}({', '.join(written)})"
    assert meant(text) == FunctionCall(function, tuple(given), signature.result), text


def test_every_word_is_read_as_its_function() -> None:
    assert len(CALLED) > 80
    for word, function, signature in CALLED:
        check(word, function, signature)


def test_mutant_arguments_in_another_order_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    turned = recorded_functions._build_place_reader(partial(call, "position"), ["substr", "this"], "STRPOS", (2,))
    monkeypatch.setitem(grammar._TABLE, exp.StrPosition, grammar.GrammarRule(frozenset(("this", "substr")), turned))
    with pytest.raises(AssertionError):
        test_every_word_is_read_as_its_function()


def test_shorthands_take_as_many_arguments_as_they_say() -> None:
    number, text, moment = (
        ColumnRef(*pair) for pair in (("age", Type.INT), ("ward", Type.TEXT), ("seen", Type.TIMESTAMP))
    )
    assert meant("SIGN(age)").type is Type.INT
    assert meant("SUBSTR(ward, age)") == meant(f"SUBSTRING(ward, age, {2**31 - 1})")
    assert meant("LOG2(age)") == call("log2", number)
    assert meant("LOG(age)") == meant("LOG10(age)") == call("log10", number)
    assert meant("DAYOFWEEK(seen)") == meant("WEEKDAY(seen)") == call("modulo", call("day_of_week", moment), meant("7"))
    assert meant("CONCAT(ward)") == call("coalesce", text, meant("''"))
    for wrong in ("WEEKDAY(day, day)", "HOUR(seen, seen)", "GREATEST()", "ISODOW()", "PI(1)", "IF(smoker)", "CONCAT()"):
        with pytest.raises(UnsupportedQuery):
            meant(wrong)


def test_date_is_a_cast() -> None:
    assert meant("DATE(seen)") == meant("CAST(seen AS DATE)") == call("to_date", ColumnRef("seen", Type.TIMESTAMP))
    assert meant("DATE(day)") == ColumnRef("day", Type.DATE)
    assert meant("DATE('2026-01-31')") == meant("DATE '2026-01-31'")
    assert meant("DATE(NULL)") == meant("CAST(NULL AS DATE)")
    for wrong in ("DATE('2026-02-30')", "DATE(age)", "DATE(seen, seen)", "DATE()"):
        with pytest.raises(UnsupportedQuery):
            meant(wrong)


def test_no_word_has_two_records() -> None:
    words = [word for record in RECORDS for word in record.words]
    assert len(words) == len(set(words))
    assert set(words) == FUNCTION_WORDS <= sql_tokens.FUNCTIONS


def test_a_record_with_words_has_an_example() -> None:
    for record in RECORDS:
        assert bool(record.words) == bool(record.example), record
        assert not record.words or record.words[0] in record.example, record


def test_what_sees_null_does_not_pass_it_on() -> None:
    """A function that computes with NULL has one that is not NULL of some arguments of which one is."""
    for function in FUNCTIONS.values():
        if function.nulls is Nulls.ALL:
            assert function.compute([None, None]) is None
            assert function.compute([None, 1]) == 1
