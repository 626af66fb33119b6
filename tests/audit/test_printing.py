"""Findings of audits are printed with the claim, the figures, the verdict and what the audit does not show."""

from __future__ import annotations

from fractions import Fraction

import pytest

from discreet import audit
from discreet.audit import Audit, ExactLoss, GoodnessOfFit, QueryAudit, QueryVerdict, Violation
from discreet.mechanisms import DiscreteLaplace
from discreet.privacy import Neighbours
from tests.report.reader import Page

BOUND = Audit(
    mechanism="Mine",
    epsilon_lower=0.5,
    epsilon_claimed=1.0,
    delta=0.0,
    confidence=0.99,
    runs=1000,
    most=5.0,
    event="above 3",
    likelier_on="a",
    first=400,
    second=200,
    counted=500,
)
QUESTION = QueryVerdict(
    sql="SELECT COUNT(*) FROM visits",
    answered=4,
    replayed=0,
    status="answered",
    releases=1,
    epsilon_lower=0.5,
    share=Fraction(1),
)
PASSED = QueryAudit(
    questions=(QUESTION,),
    epsilon_claimed=Fraction(1, 2),
    delta_claimed=Fraction(0),
    neighbours=4,
    relation=Neighbours.ADD_REMOVE,
    unit="patient",
    table="visits",
    violations=(),
)


def test_a_certified_bound_stands_beside_the_claim() -> None:
    text = str(BOUND)
    assert text.splitlines()[0] == "Mine"
    assert all(part in text for part in ("at least 0.500", "1.000", "not refuted", '"above 3"', "1,000"))
    assert "&quot;above 3&quot;" in BOUND._repr_html_()


def test_an_exact_loss_prints_with_its_verdict() -> None:
    found = audit.exact(DiscreteLaplace(scale=2, sensitivity=1), 0, 1)
    assert isinstance(found, ExactLoss)
    assert "within the claim" in str(found)
    assert "Other neighbours may cost more." in found._repr_html_()


@pytest.mark.parametrize(("p_value", "verdict"), [(0.5, "follows the declared law"), (1e-9, "does not follow")])
def test_a_fit_prints_with_its_verdict(p_value: float, verdict: str) -> None:
    found = GoodnessOfFit(p_value=p_value, gap=0.01, draws=1000, level=1e-6)
    assert verdict in str(found)
    assert verdict in found._repr_html_()


def test_an_audit_of_questions_prints_a_line_for_each_and_what_it_cannot_show() -> None:
    lines = str(PASSED).splitlines()
    assert lines[0] == f"visits: {PASSED.headline}"
    assert lines[3].split("  ")[0] == QUESTION.sql
    assert "cannot show" in lines[-1]


def test_a_violation_that_is_of_no_question_prints_without_one() -> None:
    assert str(Violation("declarations", "one patient left", "the same", "others")) == (
        "declarations: expected the same, found others (one patient left)"
    )


def test_violations_are_printed_as_text_only() -> None:
    fault = Violation("answer", "one patient left", "the same", "<b>other\x1b[2J</b>", QUESTION.sql)
    failed = QueryAudit(
        **{name: getattr(PASSED, name) for name in PASSED.__dataclass_fields__} | {"violations": (fault,) * 12}
    )
    assert "\x1b" not in str(failed)
    assert "and 2 more violations" in str(failed)
    assert Page(failed._repr_html_()).named("b") == []
