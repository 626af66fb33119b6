"""Settings of a connection are the arguments of `ask`; whatever is refused is called as SET calls it."""

import re
from dataclasses import fields

import pytest

from discreet.errors import InvalidParameter
from discreet.hint_text import Hint
from discreet.presentation.documents.error_documents import error_document, read_error
from discreet.requests.question_requests import Ask, Explain
from discreet.requests.request import ArgumentKind, arguments
from discreet.service.wire.session_parameters import ASKING, KEY, PROJECT, SessionParameters
from discreet.service.wire.sqlstates import wire_error

PYTHON = re.compile(r"(?<!discreet\.)\b(" + "|".join(each.name for each in ASKING.values()) + r")=")
BAD = {
    ArgumentKind.AMOUNT: ("-1", "0", "x"),
    ArgumentKind.SHARE: ("1.5", "x"),
    ArgumentKind.DELTA: ("-1", "1", "x"),
    ArgumentKind.COUNT: ("0", "x"),
    ArgumentKind.NAME: ("nothing",),  # of some choices
}


def test_settings_keep_their_names() -> None:
    known = {"epsilon", "delta", "confidence", "within", "max_epsilon", "interval"}
    assert ASKING.keys() == {f"discreet.{name}" for name in known}
    assert {*ASKING, PROJECT, KEY} <= SessionParameters({}).all().keys()


@pytest.mark.parametrize("name", ASKING)
def test_a_bad_value_is_refused_in_the_words_of_set(name: str) -> None:
    given = SessionParameters({})
    for text in BAD[ASKING[name].arg.kind]:
        with pytest.raises(InvalidParameter) as caught:
            given.set(name, text)
        told = wire_error(caught.value)
        assert told.sqlstate == "22023"
        assert f"Expected {name}=" in told.message
        assert not PYTHON.search(f"{told.message} {told.hint}"), (told.message, told.hint)
    assert not given.get(name)


def test_hints_of_workers_are_spelled_here() -> None:
    refused = InvalidParameter("max_epsilon", 1, "to cap something", Hint("Pass {within} and {max_epsilon:1}."))
    travelled = read_error(error_document(refused))
    assert str(travelled) == str(refused)
    told = wire_error(travelled)
    assert told.message == "Expected discreet.max_epsilon=1 to cap something."
    assert told.hint == "Pass discreet.within and discreet.max_epsilon = 1."


def test_explain_gets_what_it_has_arguments_for() -> None:
    given = SessionParameters({"discreet.epsilon": "1/3", "discreet.confidence": "0.9"})
    assert given.arguments() == given.arguments(Explain) == {"epsilon": "1/3", "confidence": "0.9"}


def test_what_asking_and_explaining_share_is_a_setting_of_both() -> None:
    asked, explained = ({each.name for each in arguments(kind) if "wire" in each.arg.faces} for kind in (Ask, Explain))
    assert explained <= asked
    assert explained == asked & {field.name for field in fields(Explain)}
