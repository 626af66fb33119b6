"""Where joins are cut: public constants, filters before cuts, and nothing cut that does not multiply."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from discreet.engines import Memory
from discreet.engines.memory.relation_rows import gather
from discreet.errors import UnsupportedQuery
from discreet.plan.analysis import join_rows
from discreet.plan.analysis.join_rows import MOST_PAIRS, ROWS, rows_alike, with_cuts
from discreet.plan.analysis.relation_schema import describe
from discreet.plan.canonical import canonical, replay
from discreet.plan.model.nodes import UNIT, ColumnRef, Question, Relation
from discreet.plan.model.relations import (
    Cut,
    Join,
    MarkJoin,
    Select,
    SemiJoin,
    UnitAggregation,
    children,
    cuts,
    shape,
    tables,
    with_children,
)
from discreet.plan.model.schema import ColumnSchema, TableSchema
from discreet.plan.model.types import Type
from discreet.sql.select import parse

N, T = Type.INT, Type.TEXT


def table(name: str, columns: dict[str, Type], **more: Any) -> TableSchema:
    described = {column: ColumnSchema(name=column, type=kind) for column, kind in columns.items()}
    return TableSchema(name=name, columns=described, **more)


SCHEMAS = {
    "visits": table("visits", {"patient": T, "day": N, "ward": T}, unit="patient", account="a"),
    "labs": table("labs", {"person": T, "day": N, "test": T}, unit="person", account="a"),
    "wards": table("wards", {"ward": T, "floor": N}, public=True, repeated={(): 6, ("ward",): 3, ("floor",): 2}),
    "names": table("names", {"ward": T, "name": T}, public=True, repeated={(): 6, ("ward",): 1}),
    "many": table("many", {"ward": T, "x": N}, public=True, repeated={(): 10**7, ("ward",): MOST_PAIRS}),
    "blank": table("blank", {"ward": T}, public=True),
}
JOINED = "visits AS v JOIN labs AS l ON v.patient = l.person"


def planned(sql: str) -> Question:
    return with_cuts(parse(sql, SCHEMAS), SCHEMAS)


def counted(rows: str) -> Question:
    return planned(f"SELECT COUNT(*) AS n FROM {rows}")


def cut_to(asked: Question) -> list[tuple[str, int]]:
    """The tables that are cut, and to how many rows."""
    found = [] if asked.source is None else list(cuts(asked.source))
    return [(name, cut.rows) for cut in found for name in tables(cut.source)]


def chain(count: int) -> str:
    joins = (f"JOIN visits AS v{i} ON v{i}.patient = v{i - 1}.patient" for i in range(1, count))
    return " ".join(["visits AS v0", *joins])


@pytest.mark.parametrize(
    ("count", "rows"),
    [(2, 1000), (3, 100), (4, 32), (5, 16), (6, 10), (7, 7), (8, 5), (10, 4), (12, 3), (13, 2), (20, 2)],
)
def test_the_cut_is_a_constant_of_the_number_of_tables(count: int, rows: int) -> None:
    assert cut_to(counted(chain(count))) == [("visits", rows)] * count
    assert rows**count <= MOST_PAIRS


@pytest.mark.parametrize("count", [21, 32])
def test_longer_chains_are_refused(count: int) -> None:
    with pytest.raises(UnsupportedQuery) as refused:
        counted(chain(count))
    assert str(count) in refused.value.reason
    assert "GROUP BY" in refused.value.hint


@pytest.mark.ci
def test_what_the_refusal_proposes_is_accepted() -> None:
    """Any number of tables that are put together person by person."""
    folded = "(SELECT patient, COUNT(*) AS k FROM visits GROUP BY patient)"
    joins = (f"JOIN {folded} AS v{i} ON v{i}.patient = v0.patient" for i in range(1, 31))
    assert cut_to(counted(" ".join([f"{folded} AS v0", *joins]))) == []


def test_the_longest_ladder_ends_at_two_rows() -> None:
    assert list(ROWS) == sorted(ROWS, reverse=True)
    assert ROWS[-1] == 2


# ---------------------------------------------------------------------------------------------- what does not multiply


FOLDED = "(SELECT person, COUNT(*) AS k FROM labs GROUP BY person) AS l"
BY_DAY = "(SELECT person, day, COUNT(*) AS k FROM labs GROUP BY person, day) AS l"


@pytest.mark.parametrize(
    "rows",
    [
        "visits",
        f"visits AS v JOIN {FOLDED} ON v.patient = l.person",
        f"{FOLDED} JOIN visits AS v ON v.patient = l.person",
        f"visits AS v LEFT JOIN {FOLDED} ON v.patient = l.person",
        f"visits AS v JOIN {BY_DAY} ON v.patient = l.person AND v.day = l.day",
        f"{BY_DAY} JOIN visits AS v ON v.patient = l.person AND v.day = l.day",
        "visits AS v JOIN names AS w ON v.ward = w.ward",
        "visits AS v JOIN (SELECT DISTINCT person FROM labs) AS l ON v.patient = l.person",
        (
            "visits AS v JOIN (SELECT DISTINCT ON (person) person, day FROM labs ORDER BY person, day) AS l "
            "ON v.patient = l.person"
        ),
        (
            "visits AS v JOIN LATERAL (SELECT day FROM labs AS l WHERE person = v.patient ORDER BY day LIMIT 1) AS l "
            "ON TRUE"
        ),
        "visits WHERE patient IN (SELECT person FROM labs)",
        "visits AS v WHERE NOT EXISTS (SELECT 1 FROM labs AS l WHERE l.person = v.patient AND l.day = v.day)",
        "visits AS v WHERE EXISTS (SELECT 1 FROM labs AS l WHERE l.person = v.patient AND l.day < v.day)",
        "visits AS v WHERE v.ward = 'A' OR EXISTS (SELECT 1 FROM labs AS l WHERE l.person = v.patient)",
        "visits AS v WHERE (SELECT COUNT(*) FROM labs AS l WHERE l.person = v.patient) > 1",
        "(SELECT patient FROM visits UNION ALL SELECT person FROM labs) AS u",
        "(SELECT patient, ROW_NUMBER() OVER (PARTITION BY patient ORDER BY day) AS r FROM visits) AS u WHERE r < 3",
    ],
)
def test_what_does_not_multiply_is_not_cut(rows: str) -> None:
    assert cut_to(counted(rows)) == []


def test_the_side_that_is_put_together_stays_whole_beside_others() -> None:
    rows = (
        f"visits AS v JOIN {BY_DAY} ON v.patient = l.person AND v.day = l.day JOIN visits AS w ON w.patient = v.patient"
    )
    assert cut_to(counted(rows)) == [("visits", 1000), ("visits", 1000)]


def test_two_sides_that_meet_once_still_multiply_with_a_third() -> None:
    """Each row meets one row, but there are as many pairs as a person has days."""
    days = BY_DAY.removesuffix(" AS l")
    twice = f"{days} AS a JOIN {days} AS b ON a.person = b.person AND a.day = b.day"
    rows = f"{twice} JOIN visits AS v ON v.patient = a.person"
    assert cut_to(counted(rows)) == [("labs", 1000), ("visits", 1000)]


def test_rows_left_over_by_an_outer_join_multiply_with_a_third() -> None:
    """All rows of the left stay, those too that met nothing: they are cut, unless nothing follows."""
    days = BY_DAY.removesuffix(" AS l")
    alone = f"{days} AS a LEFT JOIN visits AS v ON v.patient = a.person AND v.day = a.day"
    assert cut_to(counted(alone)) == []
    assert cut_to(counted(f"{alone} JOIN visits AS w ON w.patient = a.person")) == [
        ("labs", 100),
        ("visits", 100),
        ("visits", 100),
    ]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (f"{JOINED} WHERE v.day > l.day", [("visits", 1000), ("labs", 1000)]),
        ("visits AS v, labs AS l WHERE v.patient = l.person", [("visits", 1000), ("labs", 1000)]),
        (f"(SELECT v.patient, l.day FROM {JOINED}) AS t JOIN labs AS m ON m.person = t.patient", [("*", 100)] * 3),
        (
            (
                "visits AS v JOIN LATERAL (SELECT day FROM labs AS l WHERE person = v.patient AND l.day < v.day) AS l"
                " ON TRUE"
            ),
            [("labs", 1000), ("visits", 1000)],
        ),
        (
            (
                "visits AS v JOIN LATERAL (SELECT day FROM labs AS l WHERE person = v.patient ORDER BY day LIMIT 5) "
                "AS l ON TRUE"
            ),
            [("visits", 1000)],
        ),
        (
            "visits AS v WHERE (SELECT COUNT(*) FROM labs AS l WHERE l.person = v.patient AND l.day < v.day) > 1",
            [("labs", 1000), ("visits", 1000)],
        ),
        (
            "visits AS v WHERE EXISTS (SELECT 1 FROM labs AS l WHERE l.person = v.patient AND l.day <> v.day)",
            [("labs", 1000), ("visits", 1000)],
        ),
        (
            (
                "(SELECT patient, day FROM visits UNION ALL SELECT person, day FROM labs) AS u JOIN labs AS l"
                " ON u.patient = l.person"
            ),
            [("visits", 1000), ("labs", 1000), ("labs", 1000)],
        ),
        (
            (
                "(SELECT patient, RANK() OVER (PARTITION BY patient ORDER BY day) AS r FROM visits) AS u JOIN labs AS l"
                " ON u.patient = l.person"
            ),
            [("visits", 1000), ("labs", 1000)],
        ),
        (
            (
                f"(SELECT v.patient, COUNT(*) AS k FROM {JOINED} GROUP BY v.patient) AS t JOIN labs AS m"
                " ON m.person = t.patient"
            ),
            [("visits", 1000), ("labs", 1000)],
        ),
        (
            (
                f"(SELECT v.patient FROM {JOINED} UNION ALL SELECT v.patient FROM {JOINED} UNION ALL SELECT v.patient "
                f"FROM {JOINED}) AS u"
            ),
            [("visits", 500), ("labs", 500)] * 3,
        ),
        (
            (
                "visits AS v JOIN LATERAL (SELECT day FROM labs AS l WHERE person = v.patient ORDER BY day LIMIT 1001)"
                " AS l ON TRUE"
            ),
            [("visits", 1000), ("labs", 1000)],
        ),
        ("visits AS v JOIN wards AS w ON v.ward = w.ward", [("visits", 1000)]),
        (f"{JOINED} JOIN wards AS w ON v.ward = w.ward", [("visits", 500), ("labs", 500)]),
        (f"{JOINED} JOIN names AS w ON v.ward = w.ward", [("visits", 1000), ("labs", 1000)]),
    ],
)
def test_what_multiplies_is_cut(rows: str, expected: list[tuple[str, int]]) -> None:
    found = cut_to(counted(rows))
    assert [count for _, count in found] == [count for _, count in expected]
    assert all(name in ("*", have) for (name, _), (have, _) in zip(expected, found, strict=True))


@pytest.mark.parametrize("name", ["many", "blank"])
def test_public_rows_that_repeat_too_often_are_refused(name: str) -> None:
    """One whose rows nobody has counted counts as such."""
    with pytest.raises(UnsupportedQuery) as refused:
        counted(f"visits AS v JOIN {name} AS w ON v.ward = w.ward")
    assert "public table" in refused.value.hint


def test_joins_of_public_tables_repeat_rows_as_often_as_both() -> None:
    rows = "visits AS v JOIN (SELECT a.ward, b.floor FROM wards AS a JOIN wards AS b ON a.ward = b.ward) AS w"
    (cut,) = cut_to(counted(f"{rows} ON v.ward = w.ward"))
    assert cut == ("visits", 1000)
    twice = counted(f"{rows} ON v.ward = w.ward JOIN labs AS l ON l.person = v.patient")  # 9 pairs of public rows
    assert cut_to(twice) == [("visits", 200), ("labs", 200)]


# --------------------------------------------------------------------------------------------- what is kept by a cut


def by_table(asked: Question) -> dict[str, Cut]:
    assert asked.source is not None
    return {next(tables(cut.source)): cut for cut in cuts(asked.source)}


def conditions(cut: Cut) -> str:
    return "" if not isinstance(cut.source, Select) else repr(cut.source.where)


def test_filters_of_one_side_come_before_the_cut() -> None:
    asked = counted(f"{JOINED} AND v.day = l.day WHERE v.ward = 'A' AND l.test <> 'x' AND v.day + l.day > 3")
    found = by_table(asked)
    assert "'A'" in conditions(found["visits"])
    assert "'x'" not in conditions(found["visits"])
    assert "'x'" in conditions(found["labs"])
    assert "add" not in conditions(found["visits"]) + conditions(found["labs"])
    assert asked.where is not None
    assert all(word in repr(asked.where) for word in ("'A'", "'x'", "add"))


def test_filters_of_what_may_be_missing_stay_above() -> None:
    asked = counted("visits AS v LEFT JOIN labs AS l ON v.patient = l.person WHERE l.test IS NULL AND v.ward = 'A'")
    found = by_table(asked)
    assert conditions(found["labs"]) == "None"
    assert "'A'" in conditions(found["visits"])


def test_filters_of_selects_inside_come_before_the_cut() -> None:
    asked = counted(
        f"(SELECT v.patient AS who, v.ward AS w, l.test AS t FROM {JOINED}) AS j JOIN labs AS m ON m.person = j.who "
        "WHERE j.w = 'A' AND j.t = 'x'"
    )
    found = by_table(asked)
    assert "'A'" in conditions(found["visits"])
    assert asked.source is not None
    assert sum("'x'" in conditions(cut) for cut in cuts(asked.source)) == 1


def test_sides_are_cut_by_what_the_join_compares() -> None:
    found = by_table(counted(f"{JOINED} AND v.day = l.day"))
    assert [part.name for part in found["visits"].by if isinstance(part, ColumnRef)] == ["v.day"]
    assert [part.name for part in found["labs"].by if isinstance(part, ColumnRef)] == ["l.day"]
    assert all("is_null" in conditions(cut) for cut in found.values())  # which meets nothing


def test_cuts_are_made_once() -> None:
    once = counted(f"{JOINED} AND v.day = l.day WHERE v.ward = 'A'")
    assert with_cuts(once, SCHEMAS) == once
    widened = Question(
        table=once.table,
        source=_wider(once.source) if once.source is not None else None,
        where=once.where,
        aggregates=once.aggregates,
        outputs=once.outputs,
    )
    assert with_cuts(widened, SCHEMAS) == once


def _wider(relation: Relation) -> Relation:
    """A plan that somebody made, with cuts of their own."""
    inner = [_wider(child) for child in children(relation)]
    made = with_children(relation, inner)
    return Cut(source=made.source, by=(), rows=10**9) if isinstance(made, Cut) else made


def test_questions_beside_are_cut() -> None:
    asked = planned(f"SELECT COUNT(*) / (SELECT COUNT(*) FROM {JOINED}) AS n FROM {JOINED}")
    assert len([cut for one in (asked, *asked.beside) for cut in cut_to(one)]) == 4


def test_cut_rows_are_described_as_they_were() -> None:
    plain, made = parse(f"SELECT COUNT(*) AS n FROM {JOINED}", SCHEMAS), counted(JOINED)
    assert plain.source is not None
    assert made.source is not None
    assert describe(plain.source, SCHEMAS).is_declared_like(describe(made.source, SCHEMAS))


def test_the_form_by_which_answers_are_found_is_another_one() -> None:
    """What was stored of joins before they were cut is no answer to the same question."""
    plain = parse(f"SELECT COUNT(*) AS n FROM {JOINED}", SCHEMAS)
    assert '"cut"' in replay(counted(JOINED))
    assert canonical(plain) != canonical(counted(JOINED))
    assert replay(plain) != replay(counted(JOINED))
    alone = "SELECT COUNT(*) AS n FROM visits"
    assert canonical(planned(alone)) == canonical(parse(alone, SCHEMAS))


# ---------------------------------------------------------------------------------------------- what is known to be few


QUESTIONS = [
    f"visits AS v JOIN {BY_DAY} ON v.patient = l.person AND v.day = l.day",
    f"{BY_DAY} LEFT JOIN visits AS v ON v.patient = l.person AND v.day = l.day",
    chain(3),
    "visits AS v JOIN LATERAL (SELECT day FROM labs AS l WHERE person = v.patient AND l.day < v.day) AS l ON TRUE",
    (
        "visits AS v LEFT JOIN LATERAL (SELECT day FROM labs AS l WHERE person = v.patient AND l.day < v.day ORDER BY "
        "l.day LIMIT 2) AS l ON TRUE"
    ),
    "visits AS v WHERE (SELECT COUNT(*) FROM labs AS l WHERE l.person = v.patient AND l.day < v.day) > 1",
    "visits AS v JOIN wards AS w ON v.ward = w.ward JOIN labs AS l ON l.person = v.patient",
    (
        "(SELECT DISTINCT ON (patient, day) patient, day FROM visits ORDER BY patient, day, ward) AS u JOIN labs AS l "
        "ON u.patient = l.person AND u.day = l.day"
    ),
]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_rows, "ROWS", (4, 2))
    monkeypatch.setattr(join_rows, "MOST_PAIRS", 64)


def inside(relation: Relation) -> Iterator[Relation]:
    yield relation
    for child in children(relation):
        yield from inside(child)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("rows", QUESTIONS)
def test_nobody_has_more_rows_than_the_plan_says(rows: str) -> None:
    """Brute force: of every join inside, and of every relation that is known to have few rows alike."""
    source = counted(rows).source
    assert source is not None
    engine = Memory()
    types = {
        name: {column: found.type for column, found in schema.stored_columns.items()}
        for name, schema in SCHEMAS.items()
    }
    engine.register("visits", [{"patient": "p", "day": i % 7, "ward": "AB"[i % 2]} for i in range(40)], types["visits"])
    engine.register("labs", [{"person": " p", "day": i % 9, "test": "xy"[i % 2]} for i in range(40)], types["labs"])
    engine.register("wards", [{"ward": "AAB"[i % 3], "floor": i} for i in range(4)], types["wards"])
    for part in inside(source):
        found = gather(part, engine._rows, types)
        if isinstance(part, Join) and UNIT in shape(part, types):
            sides = [len(gather(child, engine._rows, types)) for child in children(part)]
            assert len(found) <= max(64, *sides)
        for names in ((), *((name,) for name in shape(part, types)), tuple(shape(part, types))):
            most = rows_alike(part, names) if UNIT in shape(part, types) else None
            alike = Counter(tuple(row[name] for name in names) for row in found)
            assert most is None or max(alike.values(), default=0) <= most


def test_existence_is_asked_of_all_rows() -> None:
    for word in ("IN", "NOT IN"):
        source = counted(f"visits WHERE patient {word} (SELECT person FROM labs)").source
        assert isinstance(source, SemiJoin)
    marked = counted("visits AS v WHERE v.ward = 'A' OR v.patient IN (SELECT person FROM labs)").source
    assert marked is not None
    assert any(isinstance(part, MarkJoin) for part in inside(marked))
    assert not any(isinstance(part, Cut | UnitAggregation) for part in inside(marked))
