"""Refusals of calls in Python: frames, targets of error, other groups, batches and rows for learners.

Each is applied as its hint says, by a call that is answered or planned.
"""
# ruff: noqa: E501 - one question is one line

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from discreet.curator import Curator
from discreet.engines import Memory
from discreet.learn import GaussianNB, KMeans
from discreet.plan.model.sample import Sample
from discreet.privacy import Budget
from discreet.sql.frame import count, count_units

_GROUPED = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
_ADULTS = "SELECT AVG(age) AS m FROM visits WHERE age > 17"


@dataclass(frozen=True, slots=True)
class Call:
    """A call that is refused, and the call that its hint makes of it."""

    refused: Callable[[Curator], object]
    applied: Callable[[Curator], object]


def _ask(sql: str, **changes: Any) -> Callable[[Curator], object]:
    options: dict[str, Any] = {"epsilon": 10**6, "delta": "1e-4"} | changes
    return lambda curator: curator.ask(sql, **options)


def _within(sql: str, **changes: Any) -> Callable[[Curator], object]:
    return _ask(sql, epsilon=None, within=1, max_epsilon=10**6, **changes)


def _frame(**measures: Any) -> Callable[[Curator], object]:
    return lambda curator: curator.table("visits").agg(**measures).ask(epsilon=10**6)


def _scale(sql: str) -> Callable[[Curator], object]:
    return lambda curator: curator.plan_fit(KMeans(n_clusters=2, epsilon=1), sql)


def _classify(sql: str) -> Callable[[Curator], object]:
    return lambda curator: curator.plan_fit(GaussianNB(epsilon=1), sql, target="debt")


def _both(*calls: Callable[[Curator], object]) -> Callable[[Curator], object]:
    return lambda curator: [call(curator) for call in calls]


def _with_private_limits(call: Callable[[Curator], object]) -> Callable[[Curator], object]:
    """A call about a table whose limits nobody has paid for yet."""

    def called(_: Curator) -> object:
        curator = Curator(engine=Memory())
        rows = [{"patient_id": place % 50, "age": 40} for place in range(100)]
        types, budget = {"patient_id": "int", "age": "int"}, Budget(epsilon=10**7, delta="1e-3")
        curator.protect(rows, name="visits", unit="patient_id", limits="private", types=types, budget=budget)
        return call(curator)

    return called


def _of_sample(sql: str, *, by: str | None = None, **changes: Any) -> Callable[[Curator], object]:
    """A question about the population of a survey, or of one with strata that were drawn at several rates."""

    def called(_: Curator) -> object:
        curator, size = Curator(engine=Memory()), {"A": 50, "B": 10}
        rows = [{"ward": "AB"[place > 49], "kind": "x", "age": place} for place in range(60)]
        drawn = (
            Sample(population=600, size=60) if by is None else Sample(population={"A": 90, "B": 90}, size=size, by=by)
        )
        types, keys = {"ward": "text", "kind": "text", "age": "int"}, {"ward": ["A", "B"]}
        budget = Budget(epsilon=10**7, delta="1e-3")
        facts: dict[str, Any] = {"types": types, "keys": keys, "bounds": {"age": (0, 60)}, "sample_of": drawn}
        curator.protect(rows, name="visits", budget=budget, **facts)
        return curator.ask(sql, **{"epsilon": 10, "interval": "population", **changes})

    return called


_COUNT = "SELECT COUNT(*) AS n FROM visits"
_MEDIAN = "SELECT MEDIAN(age) AS m FROM visits"
_AROUND = "SELECT MEDIAN(age) AS m, COUNT(age) AS n, QUANTILE(age, 0.3) AS l, QUANTILE(age, 0.7) AS h FROM visits"
_EACH = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
_TOGETHER = "SELECT SUM(n) AS n FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward)"


def _by_month(call: Callable[[Curator], object], **declared: Any) -> Callable[[Curator], object]:
    """A call about a table in which the rows of each month have a budget."""

    def called(_: Curator) -> object:
        curator = Curator(engine=Memory())
        rows = [{"patient_id": place, "age": 40, "day": dt.date(2026, 1 + place % 3, 5)} for place in range(60)]
        types = {"patient_id": "int", "age": "int", "day": "date"}
        budget = Budget(epsilon=10**7, delta="1e-3", per="month", of="day")
        told: dict[str, Any] = {"name": "visits", "unit": "patient_id", "types": types, "budget": budget}
        curator.protect(rows, max_rows=1, **told, **declared)
        return call(curator)

    return called


_DATED = " WHERE day >= '2026-01-01' AND day < '2026-02-01'"

CALLS = {
    "months that are not named": Call(_by_month(_ask(_COUNT)), _by_month(_ask(_COUNT + _DATED))),
    "too many months": Call(_by_month(_ask(_COUNT + " WHERE day < '2026-02-01'")), _by_month(_ask(_COUNT + _DATED))),
    "a profile of all months": Call(_by_month(_ask(_COUNT + _DATED, profile="0.1")), _by_month(_ask(_COUNT + _DATED))),
    "bounds by all months": Call(
        _by_month(_ask(f"SELECT SUM(age) AS s FROM visits{_DATED}")),
        _by_month(_ask(f"SELECT SUM(age) AS s FROM visits{_DATED}"), bounds={"age": (0, 120)}),
    ),
    "a word in a frame": Call(_frame(m="MEAN(age)"), _frame(m="AVG(age)")),
    "bounds in a frame": Call(
        _frame(m="AVG(LENGTH(note))"),
        _frame(m="AVG(CASE WHEN LENGTH(note) IS NOT NULL THEN GREATEST(LEAST(LENGTH(note), 100), 0) END)"),
    ),
    "two expressions": Call(
        lambda curator: curator.table("visits").where("age, ward"),
        lambda curator: curator.table("visits").where("age > 3").agg(n=count()).ask(epsilon=1),
    ),
    "units of rows": Call(
        lambda curator: curator.table("single").agg(n=count_units()),
        lambda curator: curator.table("single").agg(n=count()).ask(epsilon=1),
    ),
    "within of a spread": Call(
        _within("SELECT STDDEV(age) AS s FROM visits"), _ask("SELECT STDDEV(age) AS s FROM visits")
    ),
    "within of a mode": Call(_within("SELECT MODE(age) AS s FROM visits"), _ask("SELECT MODE(age) AS s FROM visits")),
    "within of a quantile": Call(_within("SELECT MAX(age) AS s FROM visits"), _ask("SELECT MAX(age) AS s FROM visits")),
    "within of keys": Call(
        _within("SELECT ward FROM visits GROUP BY ward"), _ask("SELECT ward FROM visits GROUP BY ward")
    ),
    "within of a ratio": Call(
        _within("SELECT COUNT(*) / 2 AS h FROM visits"), _within("SELECT COUNT(*) AS h FROM visits")
    ),
    "within of private bounds": Call(
        _within("SELECT SUM(weight) AS s FROM more"), _ask("SELECT SUM(weight) AS s FROM more")
    ),
    "within of private limits": Call(
        _with_private_limits(_within(_COUNT)), _with_private_limits(_both(_ask(_COUNT), _within(_COUNT)))
    ),
    "within of a mean": Call(
        _within(_ADULTS), _both(_ask(_ADULTS.replace("AVG", "COUNT")), _within(_ADULTS, confidence="0.9"))
    ),
    "within of private groups": Call(
        _within("SELECT ward, AVG(age) AS m FROM visits GROUP BY ward"),
        _ask("SELECT ward, AVG(age) AS m FROM visits GROUP BY ward"),
    ),
    "population of an extreme": Call(_of_sample("SELECT MAX(age) AS m FROM visits"), _of_sample(_AROUND)),
    "population of a quantile": Call(_of_sample(_MEDIAN), _of_sample(_AROUND)),
    "population of private groups": Call(
        _of_sample("SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind"),
        _of_sample("SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind", interval="noise"),
    ),
    "population of mixed strata": Call(
        _of_sample(_COUNT, by="ward"), _both(_of_sample(_EACH, by="ward"), _of_sample(_TOGETHER, by="ward"))
    ),
    "limits of bands": Call(
        _ask("SELECT HISTOGRAM(weight, 4) AS n FROM more", limits="choose"),
        _ask("SELECT HISTOGRAM(weight, 0, 25, 50) AS n FROM more", limits="choose"),
    ),
    "other without groups": Call(_ask("SELECT COUNT(*) AS n FROM visits", other="rest"), _ask(_GROUPED, other="rest")),
    "other of all values": Call(
        _ask("SELECT index, COUNT(*) AS n FROM visits GROUP BY index", other=9),
        _ask("SELECT index, COUNT(*) AS n FROM visits GROUP BY index"),
    ),
    "other of people": Call(
        _ask("SELECT ward, COUNT(DISTINCT patient_id) AS n FROM visits GROUP BY ward", other="rest"),
        _ask(_GROUPED, other="rest"),
    ),
    "too many groups": Call(
        _ask("SELECT code, other, COUNT(*) AS n FROM coded GROUP BY code, other", delta=0),
        _ask("SELECT kind, COUNT(*) AS n FROM coded GROUP BY kind", delta=0),
    ),
    "groups without a delta": Call(_ask(_GROUPED, delta=0), _ask(_GROUPED, delta="1e-8")),
    "groups of a pure account": Call(
        _ask("SELECT code || 'x' AS c, COUNT(*) AS n FROM coded GROUP BY 1", delta=0),
        _ask("SELECT kind, COUNT(*) AS n FROM coded GROUP BY kind", delta=0),
    ),
    "numbers too large": Call(
        _ask("SELECT SUM(age * 1e-310) AS s FROM visits"),
        _ask(
            "SELECT SUM(CASE WHEN age * 1e-310 IS NOT NULL THEN GREATEST(LEAST(age * 1e-310, 100), 0) END) AS s FROM visits"
        ),
    ),
    "questions of two accounts": Call(
        _ask("SELECT COUNT(*) AS n, (SELECT COUNT(*) FROM staff) AS m FROM visits"),
        _both(_ask("SELECT COUNT(*) AS n FROM visits"), _ask("SELECT COUNT(*) AS m FROM staff")),
    ),
    "a batch of two accounts": Call(
        lambda curator: curator.ask_many(
            ["SELECT COUNT(*) AS n FROM visits", "SELECT COUNT(*) AS n FROM staff"], epsilon=1
        ),
        lambda curator: [
            curator.ask_many([f"SELECT COUNT(*) AS n FROM {name}"], epsilon=1) for name in ("visits", "staff")
        ],
    ),
    "a public table": Call(_ask("SELECT COUNT(*) AS n FROM wards"), _ask("SELECT COUNT(*) AS n FROM visits")),
    "features of nothing": Call(_scale("SELECT 1"), _scale("SELECT age FROM visits")),
    "ids as features": Call(_scale("SELECT patient_id FROM visits"), _scale("SELECT age FROM visits")),
    "aggregates as features": Call(_scale("SELECT AVG(age) AS a FROM visits"), _scale("SELECT age FROM visits")),
    "all features": Call(_scale("SELECT * FROM visits"), _scale("SELECT age FROM visits")),
    "features in an order": Call(_scale("SELECT age FROM visits ORDER BY age"), _scale("SELECT age FROM visits")),
    "unbounded features": Call(
        _scale("SELECT weight FROM visits"),
        _scale("SELECT CASE WHEN weight IS NOT NULL THEN GREATEST(LEAST(weight, 100), 0) END AS weight FROM visits"),
    ),
    "unbounded days": Call(
        _scale("SELECT day FROM visits"),
        _scale(
            "SELECT CASE WHEN day IS NOT NULL THEN GREATEST(LEAST(day, DATE '2030-12-31'), DATE '2000-01-01') END AS day "
            "FROM visits"
        ),
    ),
    "moments": Call(_scale("SELECT seen FROM visits"), _scale("SELECT EXTRACT(HOUR FROM seen) AS seen FROM visits")),
    "texts": Call(
        _scale("SELECT ward FROM visits"),
        _scale("SELECT CASE WHEN ward = 'A' THEN 1 WHEN ward <> 'A' THEN 0 END AS is_a FROM visits"),
    ),
    "classes of numbers": Call(
        _classify("SELECT age, debt FROM visits"),
        _classify("SELECT age, CASE WHEN debt > 0 THEN 1 WHEN debt <= 0 THEN 0 END AS debt FROM visits"),
    ),
    "a target alone": Call(
        _classify("SELECT index AS debt FROM visits"), _classify("SELECT age, index AS debt FROM visits")
    ),
    "fine bounds": Call(
        _scale("SELECT 1e18 + debt / 1e3 AS x FROM visits"), _scale("SELECT debt / 1e3 AS x FROM visits")
    ),
}
