"""What a curator gives goes through JSON text and comes back as it was."""

import datetime as dt
import json
import math
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any

import pytest

from discreet.curator import Answer, Curator
from discreet.engines import Memory
from discreet.errors import InvalidParameter
from discreet.learn import LogisticRegression
from discreet.ledger import Balance
from discreet.noise import SeededBits
from discreet.presentation.documents.answer_documents import ANSWER, ANSWERS
from discreet.presentation.documents.ledger_documents import BALANCE, ENTRY
from discreet.presentation.documents.model_documents import FIT_PLAN, MODEL
from discreet.presentation.documents.plan_documents import CHOICES, EXPLANATION, PROFILE
from discreet.presentation.documents.result_documents import RESULTS, Document, form_named, read_value, write_value
from discreet.privacy import Budget
from discreet.requests.learner_arguments import read_learner, write_learner
from discreet.requests.request import read_parameters, write_parameters
from tests.curator.clinic import DECLARED, visits

QUESTIONS = [
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT ward, COUNT(*) AS n, AVG(charge) AS mean FROM visits GROUP BY ward",
    "SELECT ward, SUM(charge) AS total FROM visits GROUP BY ROLLUP (ward)",
    "SELECT MEDIAN(age) AS m FROM visits",
    "SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind HAVING COUNT(*) > 100000",
    "SELECT COUNT(*) > 10 AS many, COUNT(*) AS n FROM visits",
]


def clinic(bits: SeededBits, **more: Any) -> Curator:
    curator = Curator.for_tests(engine=Memory(), bits=bits)
    declared = {**DECLARED, "unit": "patient", "max_rows": 3, "max_groups": 2, **more}
    curator.protect(visits(3, 60), name="visits", budget=Budget(epsilon=50, delta="1e-6"), **declared)
    return curator


def sent(document: Document) -> Any:
    """The document on the other side: nothing but JSON gets there."""
    return json.loads(json.dumps(document, allow_nan=False))


def types(document: Document) -> dict[str, str]:
    return {each["name"]: each["type"] for each in document["columns"]}


def check_alike(answer: Answer, other: Answer) -> None:
    for field in ("columns", "records", "cost", "remaining", "event", "replayed", "notes", "confidence", "private"):
        assert getattr(answer, field) == getattr(other, field), field
    for field in ("scope", "whole", "coverage", "totals", "descriptions"):
        assert getattr(answer, field) == getattr(other, field), field
    assert str(answer) == str(other)
    assert answer._repr_html_() == other._repr_html_()
    assert answer.to_arrow().equals(other.to_arrow(), check_metadata=True)
    assert answer.to_pandas().equals(other.to_pandas())
    for one, same in zip(answer.records, other.records, strict=True):
        assert [type(cell) for cell in one.values()] == [type(cell) for cell in same.values()]


@pytest.mark.parametrize("question", QUESTIONS)
def test_answers_come_back(question: str, bits: SeededBits) -> None:
    with clinic(bits) as curator:
        answer = curator.ask(question, epsilon="0.7", delta="1e-9", confidence="0.9")
    check_alike(answer, ANSWER.read(sent(ANSWER.write(answer))))


def test_a_profiled_answer_comes_back_with_its_coverage(bits: SeededBits) -> None:
    with clinic(bits) as curator:
        answer = curator.ask(QUESTIONS[1], epsilon=1, profile=1)
        assert answer.coverage
        again = curator.ask(f"{QUESTIONS[1]} LIMIT 1", epsilon=1)
    for each in (answer, again):
        check_alike(each, ANSWER.read(sent(ANSWER.write(each))))


def test_answers_of_one_charge_come_back(bits: SeededBits) -> None:
    with clinic(bits) as curator:
        answers = curator.ask_many(QUESTIONS[:2], epsilon=1)
    for one, other in zip(answers, ANSWERS.read(sent(ANSWERS.write(answers))), strict=True):
        check_alike(one, other)


def test_types_are_those_of_the_question(bits: SeededBits) -> None:
    with clinic(bits) as curator:
        told = [{c["name"]: c["type"] for c in ANSWER.write(curator.ask(q, epsilon=1))["columns"]} for q in QUESTIONS]
        planned = {c["name"]: c["type"] for c in EXPLANATION.write(curator.explain(QUESTIONS[4], epsilon=1))["columns"]}
    assert told[0] == {"n": "int", "n_low": "int", "n_high": "int"}
    assert told[1] | {"ward": "text"} == told[1]
    assert told[1]["mean"] == told[1]["mean_low"] == "float"
    assert told[4] == planned == {"kind": "text", "n": "int", "n_low": "int", "n_high": "int"}  # of no rows at all
    assert told[5]["many"] == "bool"


def test_an_answer_that_was_read_cannot_be_adjusted(bits: SeededBits) -> None:
    with clinic(bits) as curator:
        read = ANSWER.read(sent(ANSWER.write(curator.ask(QUESTIONS[0], epsilon=1))))
    with pytest.raises(InvalidParameter) as refused:
        read.adjusted()
    assert refused.value.name == "answer"


def test_a_receipt_travels_with_its_answer(bits: SeededBits) -> None:
    with clinic(bits) as curator:
        answer = curator.ask(QUESTIONS[0], epsilon=1)
    document = sent(ANSWER.write(answer))
    assert document["receipt"] is None
    check_alike(
        answer, ANSWER.read({**document, "receipt": {"sequence": 3, "hash": "ab"}})
    )  # as the ledger's owner adds it


CELLS: list[tuple[str, Any]] = [
    ("int", 2**80),
    ("float", 0.1),
    ("float", 5e-324),
    ("float", math.inf),
    ("float", -math.inf),
    ("int", math.inf),
    ("text", "Infinity"),
    ("text", "2026-03-01"),
    ("text", "\x00\ud800\U0001f600"),
    ("date", dt.date(2026, 3, 1)),
    ("date", dt.date.max),
    ("timestamp", dt.datetime.max),
    ("timestamp", dt.datetime(2026, 3, 1)),
    ("bool", False),
    ("text", None),
    ("date", None),
]


@pytest.mark.parametrize(("kind", "value"), CELLS)
def test_cells_come_back(kind: str, value: Any) -> None:
    read = read_value(kind, json.loads(json.dumps(write_value(value), allow_nan=False)))
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize("written", ["1e5", "nan ", "inf", "x"])
def test_no_other_text_is_a_number(written: str) -> None:
    with pytest.raises(ValueError, match=written):
        read_value("float", written)


def test_parameters_come_back() -> None:
    given = {"a": 1, "b": "x", "c": None, "d": dt.date(2026, 3, 1), "e": dt.datetime(2026, 3, 1), "f": True}
    assert read_parameters(json.loads(json.dumps(write_parameters(given)))) == given
    assert read_parameters(json.loads(json.dumps(write_parameters(list(given.values()))))) == list(given.values())
    assert read_parameters(write_parameters(None)) is None


@pytest.mark.parametrize(
    "written", [{"date": "x"}, {"date": 5}, {"day": "2026-03-01"}, {}, {"date": "x", "b": 1}], ids=str
)
def test_what_is_no_parameter_is_refused(written: Any) -> None:
    with pytest.raises(InvalidParameter) as refused:
        read_parameters([written])
    assert refused.value.name == "parameters"


def test_what_is_told_before_anything_is_spent(bits: SeededBits) -> None:
    with clinic(bits) as curator:
        told = curator.explain(QUESTIONS[1], epsilon=1)
        choices = curator.choose_epsilon(QUESTIONS[1], ["0.1", 1])
    document = sent(EXPLANATION.write(told))
    assert document["text"] == str(told)
    assert document["errors"].keys() == told.errors.keys()
    assert document["free"] is document["refusal"] is None
    assert document["cost"]["epsilon"] == "1"
    assert CHOICES.read(sent(CHOICES.write(choices))) == choices


def test_an_explanation_says_what_is_free_and_what_is_refused(bits: SeededBits) -> None:
    with clinic(bits) as curator:
        curator.ask(QUESTIONS[0], epsilon=1)
        free = EXPLANATION.write(curator.explain(QUESTIONS[0], epsilon=1))
        refused = EXPLANATION.write(curator.explain(QUESTIONS[0], epsilon=1000))
    assert free["free"]
    assert "1000" in refused["refusal"]


@pytest.mark.parametrize("unit", ["patient", None])
def test_profiles_are_told(unit: str | None, bits: SeededBits) -> None:
    with clinic(bits, unit=unit, **({} if unit else {"max_rows": 1, "max_groups": 1})) as curator:
        profile = curator.profile("visits", epsilon=1)
    document = sent(PROFILE.write(profile))
    assert document["text"] == str(profile)
    assert document["people"][1] <= document["people"][0]
    assert set(document["values"]) == {"age", "charge"}
    assert (document["rows_per_person"] is None) is (unit is None)


def test_balances_and_entries_come_back(bits: SeededBits) -> None:
    with clinic(bits) as curator:
        curator.ask(QUESTIONS[0], epsilon=1, key="a word")
        balance, entries = curator.balance(curator.tables()["visits"]), curator.history("visits")
    assert BALANCE.read(sent(BALANCE.write(balance))) == balance
    assert [ENTRY.read(sent(ENTRY.write(each))) for each in entries] == [
        each.without_salt._replace(key="") for each in entries
    ]


def test_no_entry_tells_the_salt(bits: SeededBits) -> None:
    with clinic(bits) as curator:
        curator._ledger.history("visits")
        opened = next(each for each in curator._ledger.history("visits") if each.kind == "open")
    assert "salt" not in json.dumps(ENTRY.write(opened))


def test_a_model_comes_back(bits: SeededBits) -> None:
    learner = LogisticRegression(epsilon=2)
    rows, target = "SELECT age, charge, ward FROM visits", "ward"
    with clinic(bits) as curator:
        plan = curator.plan_fit(learner, rows, target=target)
        model = curator.fit(learner, rows, target=target)
    again = MODEL.read(sent(MODEL.write(model)))
    assert (again.predict([[5, 5.0]]) == model.predict([[5, 5.0]])).all()
    for name in ("columns_", "cost_", "remaining_", "replayed_", "notes_", "private_", "event_"):
        assert getattr(again, name) == getattr(model, name)
    read = FIT_PLAN.read(sent(FIT_PLAN.write(plan)))
    assert str(read) == str(plan)
    assert read.event == plan.event


def test_a_learner_is_named_and_made() -> None:
    made = read_learner(sent(write_learner(LogisticRegression(epsilon="0.3"))))
    assert type(made) is LogisticRegression
    assert Fraction(made.epsilon) == Fraction("0.3")
    assert read_learner({"learner": "LogisticRegression", "parameters": {"epsilon": 0.5}}).epsilon == 0.5


def test_a_parameter_that_a_learner_has_not_is_refused() -> None:
    with pytest.raises(InvalidParameter) as refused:
        read_learner({"learner": "LogisticRegression", "parameters": {"epsilom": 0.5}})
    assert (refused.value.name, refused.value.value) == ("parameters", "epsilom")


@pytest.mark.parametrize("name", ["os.system", "Learner", "", "__init__"])
def test_nothing_else_is_a_learner(name: str) -> None:
    with pytest.raises(InvalidParameter):
        read_learner({"learner": name})


def test_what_is_no_document_is_refused(bits: SeededBits) -> None:
    with clinic(bits) as curator:
        whole = sent(ANSWER.write(curator.ask(QUESTIONS[0], epsilon=1)))
    for name in whole.keys() - {"scope", "receipt"}:
        missing = {key: value for key, value in whole.items() if key != name}
        for each in (missing, {**whole, name: ["no"] if name == "counted" else "no"}):
            with pytest.raises(InvalidParameter) as refused:
                ANSWER.read(each)
            assert refused.value.name == "document"


LEFT_OUT = {
    "answer": {"records", "released", "raw"},
    "synthetic table": {"table", "model"},
    "synthetic tables": {"people", "events", "key", "model"},
    "standing": {each.name for each in fields(Balance)},
}
"""Fields of results that are no parts of their documents: they are told otherwise, or do not travel."""


@pytest.mark.parametrize("kind", RESULTS)
def test_every_field_of_a_result_travels(kind: str) -> None:
    made: Any = form_named(kind).make
    if is_dataclass(made):
        assert {each.name for each in fields(made)} - set(form_named(kind).parts) == LEFT_OUT.get(kind, set())
