"""Requests: normal values, JSON and back, one table for all verbs, and signatures that agree with the fields."""

from __future__ import annotations

import datetime as dt
import inspect
import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass
from fractions import Fraction
from typing import Any, ClassVar

import pytest

from discreet.curator import Curator
from discreet.errors import InternalError, InvalidParameter, explain_error
from discreet.hint_text import Hint, Spelling
from discreet.ledger import Caller
from discreet.plan.model.schema import Limits
from discreet.privacy import ApproxDP, Budget, PureDP
from discreet.remote.remote_curator import RemoteCurator
from discreet.requests import FACES
from discreet.requests.question_requests import Ask, AskMany, ChooseEpsilon, Explain
from discreet.requests.request import Argument, ArgumentKind, Request, arguments, check_kinds
from discreet.requests.table_requests import BuyProfile, Fit, Synthesize, SynthesizeTables
from discreet.requests.verb_table import VERBS, Verb
from discreet.requests.verbs import Verbs
from discreet.synthetic import Bins, Calendar, Keys, UnknownKeys

COUNT = "SELECT COUNT(*) AS n FROM visits"
WHO = {"analyst", "project", "key", "progress", "by"}
ELSEWHERE = {"plan_synthesize_tables"}
"""Verbs whose arguments are in the signature of another method: `plan_synthesize` with events."""

VALUES: Mapping[ArgumentKind, Any] = check_kinds(
    {
        ArgumentKind.SQL: COUNT,
        ArgumentKind.NAME: "visits",
        ArgumentKind.NAMES: ("ward", "age"),
        ArgumentKind.TEXT: "",
        ArgumentKind.AMOUNT: "1/3",
        ArgumentKind.SHARE: "0.9",
        ArgumentKind.DELTA: 0,
        ArgumentKind.PRICE: "0.1",
        ArgumentKind.COUNT: 3,
        ArgumentKind.LIMITS: Limits(2, 5),
        ArgumentKind.VALUE: "none",
        ArgumentKind.VALUES: {"day": dt.date(2026, 3, 1), "least": 18},
        ArgumentKind.LEARNER: {"learner": "LogisticRegression", "parameters": {"epsilon": 1}},
        ArgumentKind.GENERATOR: "mst",
        ArgumentKind.DOMAIN: {"ward": ["A"], "age": Bins([0, 50, 100], whole=True, within="histogram")},
        ArgumentKind.DOMAINS: {"visits": {"ward": ["A"], "day": Calendar("year", years=(2020, 2024))}},
        ArgumentKind.RULES: ({"ward": ["A"], "age": [5]},),
        ArgumentKind.BUDGET: Budget(epsilon=2),
    },
    "tests",
)
"""A good value of each kind."""


def a_value(argument: Argument) -> Any:
    if argument.arg.choices:
        return argument.arg.choices[-1]
    value = VALUES[argument.arg.kind]
    return (value,) if argument.arg.many else value


def full(verb: Verb) -> dict[str, Any]:
    """Every argument of a verb, with a good value."""
    return {argument.name: a_value(argument) for argument in arguments(verb.request)}


EACH = [pytest.param(verb, argument, id=f"{verb.name} {argument.name}") for verb in VERBS.values()
        for argument in arguments(verb.request)]  # fmt: skip


@pytest.mark.parametrize("verb", VERBS.values(), ids=lambda verb: verb.name)
def test_signatures_agree_with_the_fields(verb: Verb) -> None:
    if verb.name in ELSEWHERE:
        assert {each.name for each in arguments(verb.request)} - {"people"} <= set(
            inspect.signature(Verbs.plan_synthesize).parameters
        )
        return
    method = inspect.signature(getattr(Verbs, verb.name)).parameters
    taken = {name: each.default for name, each in method.items() if name != "self"}
    fields = {each.name: each for each in arguments(verb.request)}
    assert set(taken) - WHO <= set(fields) | {"events"}
    assert set(fields) <= set(taken)
    for name, argument in fields.items():
        if verb.name == "plan_synthesize" and name in ("forbidden", "rows_per_unit"):
            assert taken[name] is None  # either of two requests has its own default
        elif argument.is_required:
            assert taken[name] is inspect.Parameter.empty
        else:
            assert taken[name] == argument.default
            assert type(taken[name]) is type(argument.default)


def test_public_signatures_name_their_arguments() -> None:
    for curator in (Curator, RemoteCurator):
        for name, method in inspect.getmembers(curator, inspect.isfunction):
            kinds = {each.kind for each in inspect.signature(method).parameters.values()}
            assert name.startswith("_") or inspect.Parameter.VAR_KEYWORD not in kinds


def test_curators_implement_one_method() -> None:
    for curator in (Curator, RemoteCurator):
        own = {name for name in vars(curator) if name in VERBS}
        assert not own
        assert "_perform" in vars(curator)


@pytest.mark.parametrize("verb", VERBS.values(), ids=lambda verb: verb.name)
def test_a_request_survives_json(verb: Verb) -> None:
    if verb.name == "stream":
        return  # it stays where the ledger is
    made = verb.request.of(**full(verb))
    again = verb.request.read(json.loads(json.dumps(made.document())))
    for argument in arguments(verb.request):
        one, other = getattr(made, argument.name), getattr(again, argument.name)
        if argument.arg.kind is ArgumentKind.LEARNER:
            assert type(one) is type(other)
        elif argument.arg.kind is ArgumentKind.RULES:
            assert list(one) == list(other)
        else:
            assert one == other


def test_domains_survive_json() -> None:
    domain = {"a": range(0, 10, 5), "b": ["x", "y"], "c": Keys([1, 2], missing=False), "d": UnknownKeys(most=7)}
    again = Synthesize.read(json.loads(json.dumps(Synthesize.of(table="t", domain=domain).document())))
    assert again.domain == {"a": Bins([0, 5, 10]), "b": ["x", "y"], "c": domain["c"], "d": domain["d"]}
    with pytest.raises(InvalidParameter) as refused:
        Synthesize.of(table="t", domain={"a": {"bins": [0, 1], "most": 3}})
    assert refused.value.name == "domain"
    with pytest.raises(InvalidParameter):
        SynthesizeTables.of(people="p", events="e", domain={"a": ["x"]})


def test_amounts_are_exact_and_defaults_are_normal() -> None:
    request = Ask.of(sql=COUNT, epsilon=0.1, within="1/3")
    assert (request.epsilon, request.within) == (Fraction(1, 10), Fraction(1, 3))
    for verb in VERBS.values():
        for argument in arguments(verb.request):
            assert not isinstance(argument.default, float)


BAD: Mapping[ArgumentKind, Any] = check_kinds(
    {
        ArgumentKind.SQL: 5,
        ArgumentKind.NAME: 5,
        ArgumentKind.NAMES: [5],
        ArgumentKind.TEXT: 5,
        ArgumentKind.AMOUNT: "-1",
        ArgumentKind.SHARE: 1,
        ArgumentKind.DELTA: 1,
        ArgumentKind.PRICE: -1,
        ArgumentKind.COUNT: 0,
        ArgumentKind.LIMITS: "none",
        ArgumentKind.VALUE: [1],
        ArgumentKind.VALUES: "text",
        ArgumentKind.LEARNER: {"learner": "os.system"},
        ArgumentKind.GENERATOR: None,  # generators are known to the curator alone
        ArgumentKind.DOMAIN: {"a": {"most": 3}},
        ArgumentKind.DOMAINS: {"a": ["x"]},
        ArgumentKind.RULES: "text",
        ArgumentKind.BUDGET: 5,
    },
    "tests",
)


@pytest.mark.parametrize(("verb", "argument"), EACH)
def test_an_error_names_the_argument(verb: Verb, argument: Argument) -> None:
    bad = BAD[argument.arg.kind]
    if bad is None or (argument.arg.many and argument.arg.kind is ArgumentKind.SQL):  # whose place the curator names
        return
    with pytest.raises(InvalidParameter) as refused:
        verb.request.of(**full(verb) | {argument.name: [bad] if argument.arg.many else bad})
    words = {argument.name, "learner"} if argument.arg.kind is ArgumentKind.LEARNER else {argument.name}
    assert refused.value.name in words


def test_what_is_missing_or_unknown_is_named() -> None:
    with pytest.raises(InvalidParameter) as refused:
        BuyProfile.of(table="visits")
    assert (refused.value.name, str(refused.value.hint)) == ("epsilon", "Pass e.g. epsilon=0.05.")
    with pytest.raises(InvalidParameter) as unknown:
        Explain.read({"sql": COUNT, "epsilom": 1})
    assert unknown.value.name == "epsilom"


def test_a_face_without_a_kind_fails() -> None:
    with pytest.raises(InternalError, match="has no type for SQL"):
        check_kinds({kind: 1 for kind in ArgumentKind if kind is not ArgumentKind.SQL}, "a face")


def test_a_field_without_a_kind_fails() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Bare(Request[None]):
        """It has a field of no kind."""

        verb: ClassVar[str] = "bare"
        name: str = ""

    with pytest.raises(InternalError, match=r"Bare\.name has no kind"):
        arguments(Bare)


def test_hints_are_spelled_by_the_face() -> None:
    shell = Spelling(name=lambda name: f"--{name}", given=lambda name, value: f"--{name} {value}".strip())
    with pytest.raises(InvalidParameter) as refused:
        Ask.of(sql=COUNT, epsilon=-1)
    assert explain_error(refused.value)["Hint"] == "Pass a positive number, e.g. epsilon=0.1."
    told = explain_error(refused.value, shell)
    assert told == {
        "InvalidParameter": "Expected --epsilon=-1 > 0.",
        "Hint": "Pass a positive number, e.g. --epsilon 0.1.",
    }
    assert Hint("Pass {within}.").spell_for(shell) == "Pass --within."


def test_every_argument_has_a_sentence_and_known_faces() -> None:
    for name, verb in VERBS.items():
        assert name == verb.name == verb.request.verb
        assert verb.request.__doc__
        for argument in arguments(verb.request):
            assert argument.arg.help.endswith(".")
            assert argument.arg.faces <= FACES
            assert argument.default is MISSING or argument.default is not ...


def test_plans_and_budgets_stay_here() -> None:
    with pytest.raises(InvalidParameter):
        ChooseEpsilon.of(sql=COUNT, candidates=[ApproxDP(1, "1e-6")]).document()
    assert ChooseEpsilon.of(sql=COUNT, candidates=[PureDP(1)]).document() == {"sql": COUNT, "candidates": ["1"]}


def test_a_request_can_be_built_and_performed() -> None:
    seen: list[tuple[Request[Any], Caller]] = []

    class Spy(Verbs):
        def _perform(self, request: Request[Any], caller: Caller) -> Any:
            seen.append((request, caller))

    Spy().perform(Ask.of(sql=COUNT, epsilon=1))
    Spy().ask_many([COUNT], epsilon=1, analyst="ana", key="k")
    assert seen == [
        (Ask.of(sql=COUNT, epsilon=1), Caller()),
        (AskMany.of(questions=[COUNT], epsilon=1), Caller(analyst="ana", key="k")),
    ]


def test_fit_reads_a_learner_of_two_fields() -> None:
    made = Fit.read({"learner": "LogisticRegression", "parameters": {"epsilon": 2}, "sql": COUNT})
    assert made.estimator.epsilon == 2
    assert set(made.document()) == {"learner", "parameters", "sql"}
