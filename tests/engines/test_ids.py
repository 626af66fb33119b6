"""When two texts are one person's id: the same answer on every engine, for every text there is."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Literal

import duckdb
import pyarrow as pa
import pytest

from discreet.engines.duckdb.dialect import DIALECT, ID_FUNCTION
from discreet.engines.row_choice import normalize_id
from discreet.measurement.profile.parts import is_without_id
from discreet.noise import SeededBits, uniform_below
from discreet.plan.expressions.calls import call
from discreet.plan.model import unit_ids
from discreet.plan.model.nodes import UNIT, Expression, Output, Relation
from discreet.plan.model.readings import Reading, Statistic
from discreet.plan.model.relations import BaseTable, Join, LinkedTable, MarkJoin, Select, SemiJoin, WindowedRelation
from discreet.plan.model.unit_ids import UNICODE, WHITE_SPACE, id_text, unassigned_ranges
from tests.engines.tables import B, Bench, N, T, bounding, col

ROWS_AND_UNITS = (Statistic(kind="rows"), Statistic(kind="units"))
LIMITS = bounding(1, 100)
PEOPLE = {
    "Zo\u00eb": ("Zo\u00eb", "Zoe\u0308", " Zo\u00eb", "Zoe\u0308\t\r\n"),
    "Nguy\u1ec5n": ("Nguy\u1ec5n", "Nguye\u0302\u0303n", "Nguy\u00ea\u0303n\u3000"),
    "\uac01": ("\uac01", "\u1100\u1161\u11a8", "\u00a0\uac00\u11a8"),
    "\u212b 7": ("\u212b 7", "\u00c5 7", "\x85A\u030a 7\x0b"),
    "q\u0323\u0307": ("q\u0323\u0307", "q\u0307\u0323"),
    "p1": ("p1", *(f"{mark}p1{mark}{mark}" for mark in WHITE_SPACE)),
    "P1": ("P1",),
    "p 1": ("p 1",),
    "p\u00a01": ("p\u00a01",),
    "\u200bp1": ("\u200bp1",),
    "\ufeffp1": ("\ufeffp1",),
    "\x00p1": ("\x00p1", "\x00p1 "),
}
"""Every person in several spellings; what looks alike and is no NFC, nor white space at an end, is somebody else."""

NOBODY = (None, "", " ", WHITE_SPACE, "\u2000\u2001")
LATER = (
    "a\u0345\U00010efd"  # two marks in an order that is normal only as long as the last is not assigned, before 15.0
)


def spellings() -> list[str | None]:
    return [*(text for texts in PEOPLE.values() for text in texts), *NOBODY]


def test_each_person_counts_once_and_nobody_never(bench: Bench) -> None:
    bench.load([{"u": text} for text in spellings()], {"u": T})
    found = bench.agreed(Reading(table="t", bounding=LIMITS, statistics=ROWS_AND_UNITS))
    assert found == {(): (sum(map(len, PEOPLE.values())), len(PEOPLE))}


def test_a_profile_counts_the_rows_that_engines_leave_out(bench: Bench) -> None:
    """Each white space alone, too: a rule of the profile's own once knew plain spaces only, 5 rows of 85."""
    somebody = ["\ufeff", "\u200b", " \x1c", "\x1f", "\u180e"]  # no white space, though some take them for it
    texts = [*spellings(), *somebody, *WHITE_SPACE, *(f"{mark} {mark}" for mark in WHITE_SPACE)]
    bench.load([{"u": text} for text in texts], {"u": T})
    left_out = Reading(table="t", where=is_without_id(col("u", T)), statistics=(Statistic(kind="rows"),))
    counted = bench.agreed(Reading(table="t", bounding=LIMITS, statistics=(Statistic(kind="rows"),)))
    assert bench.agreed(left_out) == {(): (len(NOBODY) + 2 * len(WHITE_SPACE),)}
    assert counted == {(): (len(texts) - len(NOBODY) - 2 * len(WHITE_SPACE),)}


def test_limits_hold_for_all_spellings_together(bench: Bench) -> None:
    texts = PEOPLE["p1"] + PEOPLE["Zo\u00eb"]
    bench.load([{"u": text, "k": place % 5} for place, text in enumerate(texts)], {"u": T, "k": N})
    asked = Reading(table="t", keys=(col("k", N),), bounding=bounding(2, 1), statistics=ROWS_AND_UNITS)
    found = bench.agreed(asked)
    assert sum(rows for rows, _ in found.values()) == 2 * 2
    assert sum(units for _, units in found.values()) == 2 * 2


def test_parts_of_an_id_are_normalised_one_by_one(bench: Bench) -> None:
    bench.load([{"p": text, "d": day} for text in spellings() for day in (1, None)], {"p": T, "d": N})
    source = BaseTable("t", ("p", "d"))
    asked = Reading(table="t", source=source, bounding=bounding(1, 100, unit=UNIT), statistics=ROWS_AND_UNITS)
    assert bench.agreed(asked) == {(): (sum(map(len, PEOPLE.values())), len(PEOPLE))}


def beside(bench: Bench, name: str, texts: Sequence[str | None]) -> BaseTable:
    """One more table, with ids in a column of the table's own name, and their places."""
    rows, columns = [{name: text, f"n{name}": place} for place, text in enumerate(texts)], {name: T, f"n{name}": N}
    bench.load(rows, columns, name)
    return BaseTable(name, name)


def counted(source: Relation) -> Reading:
    return Reading(table="t", source=source, bounding=bounding(1, 100, unit=UNIT), statistics=ROWS_AND_UNITS)


@pytest.fixture
def pair(bench: Bench) -> tuple[BaseTable, BaseTable]:
    bench.load([{"u": "x"}], {"u": T})
    left = beside(bench, "a", ["Zoe\u0308 ", "p1", None, " "])
    return left, beside(bench, "b", ["Zo\u00eb", "\u3000p1", "p1\t", "q", None, " "])


def test_spellings_of_a_person_are_joined(bench: Bench, pair: tuple[BaseTable, BaseTable]) -> None:
    left, right = pair
    ids_equal = ((col("a", T), col("b", T)),)
    assert bench.agreed(counted(Join(left=left, right=right, on=ids_equal))) == {(): (3, 2)}
    assert bench.agreed(counted(Join(left=left, right=right, on=ids_equal, outer=True))) == {(): (3, 2)}
    renamed = Select(left, (Output("c", col("a", T)),))
    nested = Join(left=renamed, right=WindowedRelation(right, ()), on=((col("c", T), col("b", T)),))
    assert bench.agreed(counted(nested)) == {(): (3, 2)}
    third = beside(bench, "d", [" p1\u2003"])
    again = Join(left=Join(left=left, right=right, on=ids_equal), right=third, on=((col("b", T), col("d", T)),))
    assert bench.agreed(counted(again)) == {(): (2, 1)}


@pytest.mark.parametrize(("negated", "expected"), [(False, (3, 2)), (True, (1, 1))])
def test_spellings_of_a_person_match(
    bench: Bench, pair: tuple[BaseTable, BaseTable], negated: bool, expected: tuple[int, int]
) -> None:
    left, right = pair
    on = ((col("b", T), col("a", T)),)
    assert bench.agreed(counted(SemiJoin(source=right, other=left, on=on, negated=negated))) == {(): expected}
    marked = MarkJoin(source=right, other=left, on=on, name="here")
    here: Expression = col("here", B)
    kept = Select(marked, (), call("not", here) if negated else here)
    assert bench.agreed(counted(kept)) == {(): expected}


def test_an_id_that_an_outer_join_did_not_find_joins_nothing(bench: Bench, pair: tuple[BaseTable, BaseTable]) -> None:
    """The id of the right side is NULL there, although the row is somebody's."""
    left, right = pair
    outer = Join(left=right, right=left, on=((col("b", T), col("a", T)),), outer=True)
    third = beside(bench, "d", ["q", "p1"])
    found = bench.agreed(counted(Join(left=outer, right=third, on=((col("a", T), col("d", T)),))))
    assert found == {(): (2, 1)}


def test_units_found_on_a_way_are_normalised(bench: Bench) -> None:
    bench.load([{"order": order} for order in (0, 1, 1, 2, 3, 9)], {"order": N})
    orders = beside(bench, "a", ["Zoe\u0308 ", "Zo\u00eb", "p1", None])
    assert bench.agreed(counted(LinkedTable("t", "order", orders, "na"))) == {(): (4, 2)}


# -------------------------------------------------------------------------------------------------- every text there is


def in_sql(texts: Iterable[str], template: str | None = None) -> list[str | None]:
    """The ids as DuckDB finds them; the function is called only where the template calls it."""
    with duckdb.connect() as connection:
        connection.create_function(ID_FUNCTION, id_text, ["VARCHAR"], "VARCHAR")
        connection.register("given", pa.table({"x": pa.array(texts, pa.string())}))
        return [
            text
            for (text,) in connection.execute(
                f"SELECT {(template or DIALECT.normalised_id).format('x')} FROM given"
            ).fetchall()
        ]


def unicode_points() -> Iterator[str]:
    return (chr(point) for point in range(0x110000) if not 0xD800 <= point <= 0xDFFF)


@cache
def active() -> list[str]:
    """Characters that normal forms have to do with: marks, what is composed, and what it is composed of."""
    made = [c for c in unicode_points() if unicodedata.normalize("NFD", c) != c and not "\uac00" <= c <= "\ud7a3"]
    parts = {part for c in made for part in unicodedata.normalize("NFD", c)}
    marks = {c for c in unicode_points() if unicodedata.combining(c)}
    return sorted({*made, *parts, *marks, *"\u1100\u1161\u11a8\uac00\uac01", *WHITE_SPACE, "\0", "\x1f"})


def test_white_space_is_listed() -> None:
    """Python calls four separators of files and records white space, too; Unicode does not."""
    assert {c for c in unicode_points() if c.isspace()} - set("\x1c\x1d\x1e\x1f") == set(WHITE_SPACE)
    assert len(WHITE_SPACE) == 25


@pytest.mark.ci
def test_what_is_listed_as_assigned_is_assigned() -> None:
    listed = {point for first, last in unassigned_ranges() for point in range(first, last + 1)}
    known = {point for point in range(0x110000) if unicodedata.category(chr(point)) not in ("Cn", "Cs")}
    assert known | listed == set(range(0x110000))
    if unicodedata.unidata_version == UNICODE:
        assert not known & listed
    assert tuple(map(int, unicodedata.unidata_version.split("."))) >= tuple(map(int, UNICODE.split(".")))


def check_agreement(texts: Sequence[str], template: str | None = None) -> None:
    expected = [normalize_id(text) for text in texts]
    assert in_sql(texts, template) == expected
    assert [normalize_id(text) for text in expected] == expected  # once is enough
    assert all(text is None or str(text).strip(WHITE_SPACE) == text for text in expected)


def sequences(bits: SeededBits, count: int) -> list[str]:
    """Random texts in which most neighbours have to do with each other."""
    pools = [
        active(),
        [*"aeiouAEIOU qp 17"],
        [*map(chr, range(1, 0x500))],
        [*WHITE_SPACE, "\u0301", "\u0345", "\U00010efd"],
    ]
    lengths = [1 + uniform_below(7, bits=bits) for _ in range(count)]
    drawn = [uniform_below(1 << 40, bits=bits) for length in lengths for _ in range(length)]
    found = iter([pool[n // 4 % len(pool)] for n in drawn for pool in (pools[n % 4],)])
    return ["".join(next(found) for _ in range(length)) for length in lengths]


@pytest.mark.ci
def test_active_characters_are_read_alike(bits: SeededBits) -> None:
    points = active()
    check_agreement([*points, *(f"e{c}" for c in points), *(f"{c}\u0301" for c in points)])
    check_agreement(sequences(bits, 5000))


@pytest.mark.ci
def test_assigned_texts_are_compared_by_their_nfc(bits: SeededBits) -> None:
    for text in sequences(bits, 3000):
        if not any(unicodedata.category(c) == "Cn" or c == "\U00010efd" for c in text):
            made = unicodedata.normalize("NFC", text).strip(WHITE_SPACE) or None
            assert normalize_id(text) == made == normalize_id(unicodedata.normalize("NFD", text))


@pytest.mark.slow
def test_every_character_is_read_alike(bits: SeededBits) -> None:
    points = list(unicode_points())
    for form in ("{}", "e{}\u0301", " {}\u0345\u0323"):
        check_agreement([form.format(c) for c in points])
    check_agreement(sequences(bits, 10**6))


def test_what_is_not_assigned_stays_as_it_is_written(monkeypatch: pytest.MonkeyPatch, bench: Bench) -> None:
    """A later version of Unicode would order its marks the other way round."""

    def later(form: Literal["NFC"], text: str) -> str:
        return text.replace(LATER, f"{LATER[0]}{LATER[2]}{LATER[1]}") if LATER in text else honest(form, text)

    honest = unicodedata.normalize
    monkeypatch.setattr(unicodedata, "normalize", later)
    assert normalize_id(f" {LATER}") == LATER
    bench.load([{"u": LATER}, {"u": later("NFC", LATER)}], {"u": T})
    assert bench.agreed(Reading(table="t", bounding=LIMITS, statistics=ROWS_AND_UNITS)) == {(): (2, 2)}
    monkeypatch.setattr(unit_ids, "_has_unassigned", lambda _: False)
    assert normalize_id(LATER) != LATER  # so this test would notice


# ------------------------------------------------------------------------------------------------------------- mistakes


def no_normal_form(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(unit_ids, "_compose_text", lambda text: text)


def compatible_form(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(unit_ids, "_compose_text", lambda text: unicodedata.normalize("NFKC", text))


def spaces_only(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(unit_ids, "WHITE_SPACE", " ")


def space_of_no_width(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(unit_ids, "WHITE_SPACE", WHITE_SPACE + "\ufeff")


@pytest.mark.parametrize("mutate", [no_normal_form, compatible_form, spaces_only, space_of_no_width])
def test_mistakes_in_the_definition_are_noticed(
    monkeypatch: pytest.MonkeyPatch, mutate: Callable[[pytest.MonkeyPatch], None]
) -> None:
    assert {normalize_id(text) for text in spellings()} - {None} == {
        normalize_id(texts[0]) for texts in PEOPLE.values()
    }
    assert len({normalize_id(text) for text in spellings()} - {None}) == len(PEOPLE)
    mutate(monkeypatch)
    assert len({normalize_id(text) for text in spellings()} - {None}) != len(PEOPLE)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("{0} >= '!' AND", "{0} >= ' ' AND"),
        ("strlen({0})", "length({0})"),
        (" AND {0} < chr(128)", ""),
        (r"\x{{a1}}", r"\x{{a0}}"),
        (r"\x{{2ff}}", r"\x{{345}}"),
        (r"\x{{3a3}}", r"\x{{370}}"),
    ],
)
def test_mistakes_in_sql_are_noticed(right: str, wrong: str) -> None:
    points = active()
    texts = [*points, *(f"e{c}" for c in points), " p", "p ", "\tp", *PEOPLE]
    check_agreement(texts)
    broken = DIALECT.normalised_id.replace(right, wrong)
    assert broken != DIALECT.normalised_id
    with pytest.raises(AssertionError):
        check_agreement(texts, broken)
