"""Surveys as files: there and back, reports of others, lines that are none, answers that are not on the list."""

from __future__ import annotations

import json

import pytest

from discreet.errors import InvalidParameter, InvalidValue
from discreet.local import GeneralizedRandomizedResponse, LocalHashing, SubsetSelection, Survey
from discreet.noise import SeededBits
from tests.conformance.nothing import NoBits

SURVEY = Survey(question="Do you smoke?", values=["yes", "no", "used to"], epsilon="1/2", people=500)


def test_a_survey_is_a_file(bits: SeededBits) -> None:
    again = Survey.from_json(SURVEY.to_json())
    assert again == SURVEY
    assert again.mark == SURVEY.mark
    lines = again.answer(["yes"] * 30 + ["no"] * 30, bits=bits)
    assert SURVEY.estimate([*lines, "", "\n"]).reports == 60
    assert abs(SURVEY.estimate(lines, project=True).value.sum() - 1) < 1e-12
    assert isinstance(SURVEY.oracle, GeneralizedRandomizedResponse)
    many = Survey(question="Which?", values=map(str, range(500)), epsilon=1)
    assert isinstance(many.oracle, LocalHashing)
    assert many.estimate(many.answer(["7"] * 20, bits=bits)).reports == 20
    chosen = Survey(question="Which?", values=map(str, range(20)), epsilon=1, oracle="SubsetSelection")
    assert isinstance(Survey.from_json(chosen.to_json()).oracle, SubsetSelection)


def test_reports_of_another_survey_are_refused(bits: SeededBits) -> None:
    line = SURVEY.answer("yes", bits=bits)
    for other in (
        Survey(question="Do you drink?", values=SURVEY.values, epsilon="1/2"),
        Survey(question=SURVEY.question, values=["yes", "no"], epsilon="1/2"),
        Survey(question=SURVEY.question, values=SURVEY.values, epsilon=1),
        Survey(question=SURVEY.question, values=SURVEY.values, epsilon="1/2", oracle="UnaryEncoding"),
    ):
        with pytest.raises(InvalidParameter, match=r"line 2.* for this survey"):
            SURVEY.estimate([*line, *other.answer("yes", bits=bits)])


def test_lines_that_are_no_reports_are_refused(bits: SeededBits) -> None:
    (good,) = SURVEY.answer("yes", bits=bits)
    for line in ("yes", "[]", "3", "{}", '{"report": 1}', "[" * 10_000):
        with pytest.raises(InvalidParameter, match="line 2"):
            SURVEY.estimate([good, line])
    for report in (3, -1, 10**30, 1.0, "1", [1], None, True):
        line = json.dumps({"report": report, "survey": SURVEY.mark})
        with pytest.raises(InvalidParameter, match="reports"):
            SURVEY.estimate([good, line])
        kept = SURVEY.estimate([good, line, "noise", '{"report":0,"survey":"other"}'], drop=True)
        assert (kept.reports, kept.dropped) == (1, 3)
    with pytest.raises(InvalidParameter, match="at least one"):
        SURVEY.estimate([])


def test_bad_surveys_are_refused() -> None:
    for values in ([], ["yes"], ["yes", "yes"], "yes", ["a\x1b", "b"], [1, 2]):
        with pytest.raises(InvalidParameter):
            Survey(question="?", values=values, epsilon=1)  # type: ignore[arg-type]
    for epsilon in (0, -1, "x", 100):
        with pytest.raises(InvalidParameter, match="epsilon"):
            Survey(question="?", values=["a", "b"], epsilon=epsilon)
    fields = json.loads(SURVEY.to_json())
    wrong = ({"discreet_survey": 2}, {"oracle": "x"}, {"oracle": 1}, {"values": "ab"}, {"extra": 1}, {"question": 3})
    for change in wrong:
        with pytest.raises(InvalidParameter):
            Survey.from_json(json.dumps(fields | change))
    for text in ("", "[]", "3", "{}", "[" * 10_000):
        with pytest.raises(InvalidParameter, match="to hold a survey"):
            Survey.from_json(text)
    with pytest.raises(InvalidValue):
        SURVEY.answer(["yes", "maybe"], bits=NoBits())
