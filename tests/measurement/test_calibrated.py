"""Gaussian noise of a question is charged with the epsilon and the delta that it was calibrated to, and never less."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import pytest

from discreet import accounting
from discreet.accounting.composition import compose, terms
from discreet.measurement.program.program import choose
from discreet.plan.model.schema import ColumnBounds, ColumnSchema, Limits, TableSchema
from discreet.plan.model.types import Type
from discreet.privacy import ApproxDP, Neighbours, events
from discreet.sql.select import parse

KEYS = ("a", "b", "c")
QUESTIONS = {
    "one sum": "SELECT SUM(x) AS s FROM t",
    "several needs": "SELECT COUNT(*) AS n, AVG(x) AS m, VARIANCE(y) AS v FROM t",
    "public groups": "SELECT ward, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY ward",
    "drawn points": "SELECT COUNT(*) AS n, MEDIAN(x) AS m FROM t",
    "private groups": "SELECT key, COUNT(*) AS n, AVG(x) AS m FROM t GROUP BY key",
    "keys alone": "SELECT key FROM t GROUP BY key",
    "sums of one table": "SELECT ward, other, COUNT(*) AS n FROM t GROUP BY CUBE (ward, other)",
}
BUDGETS = [(Fraction(1), Fraction(1, 10**6)), (Fraction(1, 50), Fraction(1, 10**9)), (Fraction(9), Fraction(1, 100))]


def table(neighbours: Neighbours) -> TableSchema:
    bounds = ColumnBounds(Fraction(0), Fraction(3))
    columns = {
        "id": ColumnSchema(name="id", type=Type.INT),
        "key": ColumnSchema(name="key", type=Type.TEXT),
        "ward": ColumnSchema(name="ward", type=Type.TEXT, keys=KEYS),
        "other": ColumnSchema(name="other", type=Type.TEXT, keys=KEYS),
        "x": ColumnSchema(name="x", type=Type.INT, bounds=bounds),
        "y": ColumnSchema(name="y", type=Type.FLOAT, bounds=bounds),
    }
    return TableSchema(name="t", columns=columns, unit="id", limits=Limits(9, 9), neighbours=neighbours)


def event_of(sql: str, epsilon: Fraction, delta: Fraction, neighbours: Neighbours) -> events.Event:
    schema = table(neighbours)
    question = parse(sql, {"t": schema})
    return choose(question, schema, epsilon=epsilon, delta=delta, law="gaussian").event


def calibrated(event: events.Event) -> Iterator[events.Calibrated]:
    """All calibrated releases in an event, the outer ones first."""
    if isinstance(event, events.Calibrated):
        yield event
    for part in getattr(event, "events", ()):
        yield from calibrated(part)


def claims_too_little(event: events.Event) -> bool:
    """Whether noise somewhere in an event does not keep to the epsilon and the delta that it claims."""
    return any(accounting.epsilon(one.event, one.delta) > one.epsilon for one in calibrated(event))


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("name", QUESTIONS)
def test_noise_keeps_to_what_it_was_calibrated_to(name: str, neighbours: Neighbours) -> None:
    for epsilon, delta in BUDGETS:
        event = event_of(QUESTIONS[name], epsilon, delta, neighbours)
        assert not claims_too_little(event)
        assert list(calibrated(event)) or name == "keys alone"


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("name", QUESTIONS)
def test_the_plain_price_is_what_was_asked(name: str, neighbours: Neighbours) -> None:
    """Epsilons and deltas of all parts add up to at most the two that the question was asked with."""
    for epsilon, delta in BUDGETS:
        price = compose(terms(event_of(QUESTIONS[name], epsilon, delta, neighbours), neighbours, calibrated=True))
        assert price <= ApproxDP(epsilon, delta)
        assert price.epsilon > epsilon / 3


def test_a_claim_for_less_noise_is_seen() -> None:
    (honest,) = calibrated(event_of(QUESTIONS["one sum"], Fraction(1), Fraction(1, 10**6), Neighbours.ADD_REMOVE))
    assert claims_too_little(events.Calibrated(honest.event, honest.epsilon * Fraction(9, 10), honest.delta))
    assert claims_too_little(events.Calibrated(honest.event, honest.epsilon, honest.delta / 10))
