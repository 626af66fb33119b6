"""A list of quantiles is a way to write several columns: the plan is that of the columns written out."""

from __future__ import annotations

import pytest

from discreet.sql.frame import TableFrame
from discreet.sql.select import parse
from tests.plan.tables import SCHEMAS

SAME = {
    "SELECT QUANTILE_CONT(age, [0.25, 0.5, 0.75]) AS q FROM visits": (
        "SELECT QUANTILE_CONT(age, 0.25) AS q_p25, QUANTILE_CONT(age, 0.5) AS q_p50, QUANTILE_CONT(age, 0.75) AS q_p75"
        " FROM visits"
    ),
    "SELECT QUANTILE(age, [0.25, 0.5]), COUNT(*) FROM visits": (
        "SELECT QUANTILE(age, 0.25) AS p25_age, MEDIAN(age) AS median_age, COUNT(*) AS count FROM visits"
    ),
    "SELECT APPROX_QUANTILE(age, [0.999]) AS high FROM visits": "SELECT QUANTILE(age, 0.999) AS high_p99_9 FROM visits",
    "SELECT PERCENTILE_CONT([0.1, 0.9]) WITHIN GROUP (ORDER BY age) AS q FROM visits": (
        "SELECT QUANTILE(age, 0.1) AS q_p10, QUANTILE(age, 0.9) AS q_p90 FROM visits"
    ),
    "SELECT QUANTILE(age, [0.1, 0.9]) FILTER (WHERE smoker) AS q FROM visits": (
        "SELECT QUANTILE(age, 0.1) FILTER (WHERE smoker) AS q_p10, QUANTILE(age, 0.9) FILTER (WHERE smoker) AS q_p90"
        " FROM visits"
    ),
    "SELECT QUANTILE(age, [0.1, 0.9]) AS q, ward, COUNT(*) AS n FROM visits GROUP BY 2 ORDER BY 3, 1 DESC": (
        "SELECT QUANTILE(age, 0.1) AS q_p10, QUANTILE(age, 0.9) AS q_p90, ward, COUNT(*) AS n FROM visits GROUP BY ward"
        " ORDER BY n, q_p10 DESC, q_p90 DESC"
    ),
    "SELECT ward, QUANTILE(age, [0.1, 0.9]) AS q FROM visits GROUP BY ward HAVING q_p90 > 50 ORDER BY Q": (
        "SELECT ward, QUANTILE(age, 0.1) AS q_p10, QUANTILE(age, 0.9) AS q_p90 FROM visits GROUP BY ward"
        " HAVING q_p90 > 50 ORDER BY q_p10, q_p90"
    ),
    "SELECT ward, QUANTILE(age, [0.1, 0.9]) AS q FROM visits GROUP BY ALL ORDER BY ALL": (
        "SELECT ward, QUANTILE(age, 0.1) AS q_p10, QUANTILE(age, 0.9) AS q_p90 FROM visits GROUP BY ward"
        " ORDER BY ward, q_p10, q_p90"
    ),
    "SELECT q_p90 - q_p10 AS w FROM (SELECT QUANTILE(age, [0.1, 0.9]) AS q FROM visits) AS t": (
        "SELECT b - a AS w FROM (SELECT QUANTILE(age, 0.1) AS a, QUANTILE(age, 0.9) AS b FROM visits) AS t"
    ),
}


@pytest.mark.parametrize("listed", SAME)
def test_is_the_question_written_out(listed: str) -> None:
    assert parse(listed, SCHEMAS) == parse(SAME[listed], SCHEMAS)


def test_frames_take_lists() -> None:
    made = TableFrame(schema=SCHEMAS["visits"]).agg(q="QUANTILE(age, [0.25, 0.75])")
    assert made.question == parse(
        "SELECT QUANTILE(age, 0.25) AS q_p25, QUANTILE(age, 0.75) AS q_p75 FROM visits", SCHEMAS
    )
