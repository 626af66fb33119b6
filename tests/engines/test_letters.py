"""Letter case: one table, the same on every engine for every code point, whatever stands beside it."""

from __future__ import annotations

import sys
import unicodedata
from pathlib import Path

import pytest

from discreet.engines.duckdb import dialect as module
from discreet.engines.duckdb.dialect import _SETTLED, DIALECT
from discreet.plan.expressions.evaluation import evaluate
from discreet.plan.expressions.functions import FUNCTIONS as RECORDS
from discreet.plan.expressions.letter_case import LOWER, UPPER, lower_case, upper_case
from tests.effort import some
from tests.engines.tables import PRINTERS, REFEREE, Bench, N, T, bench_of, call, col, sides, value_of

FUNCTIONS = ("upper_case", "lower_case")
POINTS = [point for point in range(sys.maxunicode + 1) if not 0xD800 <= point <= 0xDFFF]
CHUNK = 2048


def is_settled(point: int) -> bool:
    return any(first <= point <= last for first, last in _SETTLED)


def chunks() -> list[str]:
    """Every code point, those that DuckDB is asked about apart from those that it is not."""
    found = []
    for kind in (True, False):
        signs = [chr(point) for point in POINTS if is_settled(point) is kind]
        found += ["".join(signs[place : place + CHUNK]) for place in range(0, len(signs), CHUNK)]
    return found


def agree(bench: Bench, texts: list[str]) -> None:
    bench.load([{"id": i, "a": text} for i, text in enumerate(texts)], {"id": N, "a": T})
    for name in FUNCTIONS:
        bench.agreed(value_of(call(name, T, col("a", T))))


@pytest.mark.slow
@pytest.mark.parametrize("bench", sides(PRINTERS), indirect=True)
def test_every_code_point_is_in_the_same_case_on_every_engine(bench: Bench) -> None:
    agree(bench, chunks())


def test_a_letter_is_treated_alike_beside_any_other(bench: Bench) -> None:
    """Beside a sign that DuckDB is not asked about the same letters come out, one at a time."""
    odd = next(chr(point) for point in POINTS if not is_settled(point))
    cased = "".join(map(chr, sorted({*UPPER, *LOWER})))
    agree(bench, [cased, odd + cased, cased + odd, "Köln\0" + odd, odd, "", "\0", "ß\u0130\u0131"])


def test_all_letters_of_the_table_are_settled() -> None:
    assert not [point for point in {*UPPER, *LOWER, *UPPER.values(), *LOWER.values()} if not is_settled(point)]


def test_the_form_that_every_database_understands_means_the_same(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in FUNCTIONS:
        monkeypatch.setitem(DIALECT._templates, name, RECORDS[name].templates("another", DIALECT)[None])
    agree(bench, ["".join(map(chr, sorted({*UPPER, *LOWER}))), "Łódź 'n' %s {0}", "\0", "", "\u017f\u212a"])


def test_the_table_is_that_of_unicode() -> None:
    """Python knows the version of the table or a later one; only these letters got a capital since then."""
    later = {0x19B, 0x264, 0xA7D3, 0xA7D5}
    for point in (p for p in some(POINTS, 5) if unicodedata.category(chr(p)) != "Cn"):
        upper, lower = chr(point).upper(), chr(point).lower()
        if len(upper) == 1 and (is_settled(point) or upper == chr(point)) and point not in later:
            assert upper_case(chr(point)) == upper, hex(point)
        if len(lower) == 1 and (is_settled(point) or lower == chr(point)):
            assert lower_case(chr(point)) == lower, hex(point)
    assert (upper_case("ß"), lower_case("\u1e9e"), lower_case("\u0130")) == ("\u1e9e", "ß", "i")


def test_texts_keep_their_length_and_folding_twice_changes_nothing() -> None:
    for point in {*UPPER, *LOWER}:
        folded = lower_case(upper_case(chr(point)))
        assert len(upper_case(chr(point))) == len(lower_case(chr(point))) == len(folded) == 1
        for same in (folded, upper_case(chr(point)), lower_case(chr(point))):
            assert lower_case(upper_case(same)) == folded, hex(point)


def test_ascii_letters_alone_stay_what_they_were() -> None:
    """Questions of earlier ledgers say upper and lower, and mean ASCII."""
    assert evaluate(call("upper", T, col("a", T)), {"a": "köln"}) == "KöLN"
    assert evaluate(call("lower", T, col("a", T)), {"a": "KÖLN"}) == "kÖln"


@pytest.mark.parametrize("slip", ["a letter that is not settled", "only ASCII"])
def test_mutants_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slip: str) -> None:
    """DuckDB is asked about no letter that later versions gave a case; here, about all but ß, and about none."""
    bench = bench_of((REFEREE, "duckdb-frame"), tmp_path)
    ranges = ((0, 0xDE), *_SETTLED[1:]) if slip == "a letter that is not settled" else ((0, 0x7F),)
    monkeypatch.setattr(module, "_SETTLED", ranges)
    monkeypatch.setitem(DIALECT._templates, "upper_case", module._in_case("upper"))
    with bench.engines["duckdb-frame"][0], pytest.raises(AssertionError):
        agree(bench, ["Łódź", "straße"])
