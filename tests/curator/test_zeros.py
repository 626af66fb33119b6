"""A zero has no sign, in any form of an answer."""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction
from typing import Any

import pytest

from discreet.curator import Curator
from discreet.engines import Memory
from discreet.exact import float_above, float_below
from discreet.noise import SeededBits
from discreet.plan.expressions.evaluation import evaluate
from discreet.plan.model.nodes import FunctionCall, Literal
from discreet.plan.model.types import Type
from discreet.plan.post.outputs import NoisyNumber
from discreet.presentation.documents.answer_documents import ANSWER
from discreet.privacy import Budget, Estimate, events
from discreet.report.csv_text import csv_text
from discreet.report.display import amount, format_measured, number, percent, plain
from discreet.service.wire.value_formats import encode_value

SIGNED = re.compile(r"(?<![\w.])-0(\.0*)?(?![\w.])")
FLOAT8 = 701


@pytest.fixture(scope="module")
def zeros() -> Curator:
    """Sums and means whose values and ends are zero or next to it, of doubles on both sides of it."""
    curator = Curator.for_tests(engine=Memory(), bits=SeededBits(1))
    rows = [{"k": "ab"[place % 2], "x": -0.0, "y": 0.0, "n": 0} for place in range(100)]
    curator.protect(
        rows,
        name="t",
        types={"k": "text", "x": "float", "y": "float", "n": "int"},
        bounds={"x": (-1, 0), "y": (0, 1), "n": (-5, 5)},
        keys={"k": ["a", "b", "c"]},
        budget=Budget(epsilon=10**9),
    )
    return curator


QUESTIONS = (
    "SELECT AVG(x) AS v, AVG(y) AS w, -AVG(y) AS u FROM t",
    "SELECT k, AVG(x) AS v, AVG(y) AS w, AVG(y) * -1.0 AS u FROM t GROUP BY k",
    "SELECT SUM(x) AS v, SUM(y) AS w, SUM(n) * -1.0 AS u, ROUND(AVG(x), 1) AS r FROM t",
    "SELECT VARIANCE(x) AS v, STDDEV(y) AS w, COVAR_POP(x, y) AS u FROM t",
    "SELECT MEDIAN(x) AS v, MIN(y) AS w, MAX(x) AS u FROM t",
    "SELECT k, SUM(n) AS v, SUM(n) / COUNT(*) AS w, -(COUNT(*) * 0.0) AS u FROM t GROUP BY k",
    "SELECT FLOOR(x) AS k, CEIL(x / 3) AS c, COUNT(*) AS n FROM t GROUP BY 1, 2",
    "SELECT HISTOGRAM(x, -1.0, -0.0, 0.5) AS n FROM t",
)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("sql", QUESTIONS)
@pytest.mark.parametrize("epsilon", [1, 10**6])
def test_no_form_of_an_answer_has_a_negative_zero(zeros: Curator, sql: str, epsilon: int) -> None:
    answer = zeros.ask(sql, epsilon=epsilon)
    document = ANSWER.write(answer)
    cells = [value for record in answer for value in record.values() if isinstance(value, float)]
    assert not any(value == 0 and math.copysign(1, value) < 0 for value in cells)
    texts = [
        *(str(answer), answer._repr_html_(), json.dumps(document), csv_text(answer.columns, answer)),
        *(repr(record) for record in answer),
        *(repr(record) for record in ANSWER.read(document)),
        answer.to_pandas().to_csv(),
        *((encode_value(value, FLOAT8, 0) or b"").decode() for value in cells),
    ]
    assert not [text for text in texts if SIGNED.search(text)]


def test_the_parts_that_write_numbers_have_one_zero() -> None:
    """Each of them by itself, so that none rests on another."""
    negative: list[Any] = [float_above(Fraction(-1, 10**400)), float_below(Fraction(0)), float_below(0)]
    noisy = NoisyNumber(-0.0, -0.0, -0.0)
    negative += [noisy.value, noisy.low, noisy.high]
    negative.append(evaluate(FunctionCall("negate", (Literal(0.0, Type.FLOAT),), Type.FLOAT), {}))
    assert all(math.copysign(1, value) == 1 for value in negative)
    shown = [plain(-0.0), amount(-0.0), number(-0.0), percent(-0.0), format_measured(-0.0, -1.0, -0.0)]
    shown += [csv_text(["a"], [{"a": -0.0}]), (encode_value(-0.0, FLOAT8, 0) or b"").decode()]
    shown.append(str(Estimate(-0.0, -1.0, -0.0, events.Pure(1))))
    assert not [text for text in shown if SIGNED.search(text)]
    assert SIGNED.search("n_low: -0.0")
    assert SIGNED.search("-0, 3")
    assert not SIGNED.search("-0.5 2026-01-01")
