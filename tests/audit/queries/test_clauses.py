"""Audits of whole questions in other words: keys alone, pages of an answer, ranks of released groups."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from discreet import audit
from discreet.measurement.selection import OptimalGroupSelection
from discreet.privacy import Neighbours
from tests.audit.held import clinic
from tests.curator.clinic import visits

ROWS = visits(3, patients=40)
KEYS_ALONE = "SELECT DISTINCT kind FROM visits"
PRIVATE = (
    KEYS_ALONE,
    "SELECT kind, ward FROM visits WHERE age > 3 GROUP BY kind, ward",
    "SELECT kind FROM visits GROUP BY ROLLUP (kind)",
    "FROM visits SELECT kind, COUNT(*) AS n GROUP BY ALL QUALIFY RANK() OVER (ORDER BY n DESC) <= 2",
    "SELECT kind, AVG(age) AS a FROM visits GROUP BY kind ORDER BY a OFFSET 1 ROWS FETCH NEXT 2 ROWS ONLY",
)


@pytest.mark.ci
@pytest.mark.sampled(2)
@pytest.mark.parametrize("relation", list(Neighbours), ids=str)
@pytest.mark.parametrize("unit", ["patient", None], ids=["patients", "rows"])
def test_private_keys_are_paid(relation: Neighbours, unit: str | None) -> None:
    found = audit.query(clinic(neighbours=relation, unit=unit), PRIVATE, ROWS, neighbours=6)
    assert found.passed, found.summary()


def test_public_keys_are_read_nowhere_and_cost_nothing() -> None:
    found = audit.query(clinic(), "SELECT DISTINCT ward FROM visits", ROWS, neighbours=3)
    assert found.passed, found.summary()
    assert found.share == 0


def test_mutant_a_selection_for_one_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """A patient is in two groups; keys that are selected as if in one are too cheap."""
    right = OptimalGroupSelection.of.__func__  # type: ignore[attr-defined]

    def for_one(
        cls: type[OptimalGroupSelection], contribution: Any, epsilon: Fraction, delta: Fraction
    ) -> OptimalGroupSelection:
        found: OptimalGroupSelection = right(cls, contribution, epsilon, delta)
        return cls(type(found.mechanism)(epsilon=epsilon, delta=delta, max_groups=1))

    monkeypatch.setattr(OptimalGroupSelection, "of", classmethod(for_one))
    found = audit.query(clinic(), KEYS_ALONE, ROWS, neighbours=6)
    assert {violation.kind for violation in found.violations} == {"movement"}
