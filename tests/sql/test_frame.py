"""The fluent front makes the same objects as SQL."""

from __future__ import annotations

from typing import Any

import pytest

from discreet.errors import InvalidParameter, UnsupportedQuery
from discreet.sql.frame import (
    TableFrame,
    correlation,
    count,
    count_distinct,
    count_units,
    covariance,
    mean,
    stddev,
    sum,  # noqa: A004 - that is its name
    variance,
)
from discreet.sql.select import parse
from tests.cases import every
from tests.plan.tables import ROWS, SCHEMAS, VISITS

visits = TableFrame(schema=VISITS)

PAIRS: list[tuple[TableFrame, str]] = [
    (visits.agg(n=count()), "SELECT COUNT(*) AS n FROM visits"),
    (visits.agg(n=count("age")), "SELECT COUNT(age) AS n FROM visits"),
    (visits.agg(n=count_units()), "SELECT COUNT(DISTINCT patient_id) AS n FROM visits"),
    (visits.agg(n=count_distinct("ward")), "SELECT COUNT(DISTINCT ward) AS n FROM visits"),
    (visits.agg(s=sum("age * 2")), "SELECT SUM(age * 2) AS s FROM visits"),
    (visits.agg(m=mean("charge")), "SELECT AVG(charge) AS m FROM visits"),
    (visits.agg(v=variance("charge"), d=stddev("age")), "SELECT VARIANCE(charge) AS v, STDDEV(age) AS d FROM visits"),
    (
        visits.agg(c=covariance("age", "charge"), r=correlation("age", "debt + 1")),
        "SELECT COVAR_SAMP(age, charge) AS c, CORR(age, debt + 1) AS r FROM visits",
    ),
    (visits.agg(r="SUM(age) / COUNT(*)"), "SELECT SUM(age) / COUNT(*) AS r FROM visits"),
    (visits.agg(n=count()).agg(m=mean("age")), "SELECT COUNT(*) AS n, AVG(age) AS m FROM visits"),
    (
        visits.where("age >= 40").group_by("ward").agg(n=count(), cost=mean("charge")),
        "SELECT ward, COUNT(*) AS n, AVG(charge) AS cost FROM visits WHERE age >= 40 GROUP BY ward",
    ),
    (
        visits.where("age >= 40").where("smoker").agg(n=count()),
        "SELECT COUNT(*) AS n FROM visits WHERE age >= 40 AND smoker",
    ),
    (
        visits.group_by("ward", band="age // 10").agg(n=count()),
        "SELECT ward, age // 10 AS band, COUNT(*) AS n FROM visits GROUP BY ward, band",
    ),
    (
        visits.group_by("UPPER(ward)").agg(n=count()),
        "SELECT UPPER(ward), COUNT(*) AS n FROM visits GROUP BY 1",
    ),
    (
        visits.group_by("ward").agg(n=count()).having("n > 3").order_by("n DESC", "ward").limit(5),
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING n > 3 ORDER BY n DESC, ward LIMIT 5",
    ),
    (
        visits.group_by("ward").agg(n=count()).order_by("n").limit(5, offset=3),
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n LIMIT 5 OFFSET 3",
    ),
    (
        visits.group_by("ward").agg(n=count()).having("n > 3").having("AVG(age) > 1"),
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING COUNT(*) > 3 AND AVG(age) > 1",
    ),
    (visits.agg(h=mean('"Heart rate"')), 'SELECT AVG("Heart rate") AS h FROM visits'),
]


@every(("frame", "text"), PAIRS)
def test_equal_questions_are_equal_objects(frame: TableFrame, text: str) -> None:
    assert frame.question == parse(text, SCHEMAS)
    assert hash(frame.question) == hash(parse(text, SCHEMAS))


REFUSED: list[tuple[Any, str]] = [
    (lambda: visits.where("age > 3) OR (TRUE"), "be parsed"),
    (lambda: visits.where("age > 3 GROUP BY ward"), "GROUP"),
    (lambda: visits.where("age > 3 FROM visits"), "FROM"),
    (lambda: visits.where("age > 3, TRUE"), "One expression"),
    (lambda: visits.where("smoker AS s"), "One expression"),
    (lambda: visits.where("smoker /*+ always */"), "Hints are not read"),
    (lambda: visits.where("smoker; DROP TABLE visits"), "several statements"),
    (lambda: visits.where("error('x')"), "could fail"),
    (lambda: visits.where("age").agg(n=count()).question, "takes a condition"),
    (lambda: visits.where("COUNT(*) > 1").agg(n=count()).question, "inside"),
    (lambda: visits.group_by("charge").agg(n=count()).question, "float"),
    (lambda: visits.group_by("patient_id").agg(n=count()).question, "whose row"),
    (lambda: visits.agg(n_low=count()).question, "cannot be called"),
    (lambda: visits.agg(s=sum("weight")).question, "no bounds"),
    (lambda: visits.agg(s=sum("COUNT(*)")).question, "inside"),
    (lambda: visits.agg(s="age").question, "neither a key"),
    (lambda: visits.group_by("ward").agg(ward=count()).question, "Two columns"),
    (lambda: visits.agg(n=count()).order_by("n LIMIT 3"), "LIMIT"),
    (lambda: TableFrame(schema=ROWS).agg(n=count_units()).question, "separate unit"),
]


@pytest.mark.parametrize(("build", "reason"), REFUSED, ids=[reason for _, reason in REFUSED])
def test_refused(build: Any, reason: str) -> None:
    with pytest.raises(UnsupportedQuery) as caught:
        build()
    assert reason in caught.value.reason
    assert caught.value.hint


@pytest.mark.parametrize(
    "build",
    [
        lambda: visits.where(3),  # type: ignore[arg-type]
        lambda: visits.agg(n=3).question,  # type: ignore[arg-type]
        lambda: visits.limit(-1),
        lambda: visits.limit(True),
        lambda: visits.limit(1, offset=-1),
        lambda: visits.question,
    ],
)
def test_wrong_parameters(build: Any) -> None:
    with pytest.raises(InvalidParameter):
        build()


def test_a_frame_is_never_changed() -> None:
    assert visits.where("smoker") is not visits
    assert visits.conditions == ()
