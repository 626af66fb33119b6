"""Findings say what was found beside what it is compared with, in words and in valid charts."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.report import comparison_charts
from discreet.report.attack_finding import (
    Comparison,
    Finding,
    Trial,
    finding_page,
    wilson_interval,
)
from discreet.report.render import Scheme, svg
from tests.report.test_charts import valid

SHARES = st.floats(0, 1)
FOUND = Finding(attack="Linkage", goal="people named", success=0.87, baseline=0.01, targets=100, bound=0.9)


def compared() -> Comparison:
    trials = [
        ("no defence", None, 0.97),
        ("rounded to 5", None, 0.6),
        ("epsilon 0.1", 0.1, 0.05),
        ("epsilon 1", 1, 0.1),
    ]
    made = [Trial(defence=d, epsilon=e, finding=replace(FOUND, success=s)) for d, e, s in trials]
    return Comparison(trials=tuple(made), ceiling=((0.1, 0.06), (1.0, 0.14)))


@given(SHARES, SHARES, st.none() | SHARES, st.none() | SHARES, st.integers(1, 10**6))
def test_every_finding_has_words_and_a_chart(
    success: float, baseline: float, predicted: float | None, bound: float | None, targets: int
) -> None:
    found = Finding(
        attack="A", goal="found", success=success, baseline=baseline, targets=targets, predicted=predicted, bound=bound
    )
    spec = found.spec()
    json.dumps(spec, allow_nan=False)
    assert spec["title"]["text"]
    assert len(spec["data"]["values"]) == 2 + (predicted is not None) + (bound is not None)
    assert ("theory predicts" in found.summary()) == (predicted is not None)
    assert ("guarantee allows" in found.summary()) == (bound is not None)


@given(SHARES, st.integers(1, 10**6))
def test_sampling_intervals_hold_the_rate_and_stay_rates(share: float, targets: int) -> None:
    value, low, high = wilson_interval(share, targets)
    assert 0 <= low <= value + 1e-12
    assert value - 1e-12 <= high <= 1


@pytest.mark.ci
def test_charts_are_valid_and_can_be_drawn() -> None:
    specs = [FOUND.spec(), compared().spec()]
    specs.append(
        comparison_charts.curves(
            {"a": [(1, (0.5, 0.4, 0.6))]}, {"a": [(1, 0.5)]}, headline="h", across="x (m)", title="y", lines={"z": 0}
        )
    )
    for spec in specs:
        valid(spec)
        assert all("<svg" in svg(spec, scheme) for scheme in Scheme)


@given(st.lists(SHARES, max_size=8))
def test_names_of_lines_are_moved_apart(values: list[float]) -> None:
    places = sorted(comparison_charts.apart(values))
    assert all(later - earlier >= 0.0649 for earlier, later in pairwise(places))
    assert all(-0.5 <= place <= 1.0001 for place in places)


def test_a_comparison_is_read_by_defence_and_told_line_by_line() -> None:
    comparison = compared()
    assert comparison["epsilon 1"].success == 0.1
    assert comparison.raw.success == 0.97
    assert [trial.epsilon for trial in comparison.private] == [0.1, 1]
    assert len(comparison) == 4
    assert len(comparison.summary().splitlines()) == 5
    assert "97 % of people named from the raw release, 5 % at epsilon 0.1" in comparison.headline
    with pytest.raises(KeyError):
        comparison["epsilon 7"]


@dataclass(frozen=True, kw_only=True)
class _Detailed(Finding):
    k: int

    def details(self) -> tuple[str, ...]:
        return (f"The smallest class has {self.k} people.",)


def test_attacks_add_figures_of_their_own() -> None:
    found = _Detailed(attack="A", goal="found", success=1, baseline=0, targets=3, k=2)
    assert found.summary().endswith("The smallest class has 2 people.")


@pytest.mark.ci
def test_a_page_explains_epsilon_only_where_there_is_one() -> None:
    alone, both = finding_page(FOUND), finding_page(FOUND, compared())
    assert "e^epsilon" not in alone
    assert "e^epsilon" in both
    assert "no limit known" not in both
    assert both.count("<figure>") == 2


@pytest.mark.parametrize(
    ("success", "bound", "verdict"),
    [
        (0.99, 0.5, "more than the guarantee allows (95 % sure)"),
        (0.51, 0.5, "within what the guarantee allows"),
        (0.87, None, "better than a guess; no guarantee limits it"),
        (0.01, None, "no better than a guess"),
    ],
)
def test_a_finding_prints_what_it_is_compared_with_and_a_verdict(
    success: float, bound: float | None, verdict: str
) -> None:
    found = replace(FOUND, success=success, bound=bound, predicted=0.4)
    assert found.verdict == verdict
    for text in (str(found), found._repr_html_()):
        assert all(part in text for part in ("Linkage", "by guessing", "40 %", "of 100 people named", verdict))
        assert ("most possible" in text) == (bound is not None)


def test_a_comparison_prints_a_line_for_each_release() -> None:
    text = str(compared())
    assert text.splitlines()[0] == compared().headline
    assert [line.split("  ")[0] for line in text.splitlines()[3:-1]] == [t.defence for t in compared()]
    assert compared()._repr_html_().count("<tr>") == 1 + len(compared())
