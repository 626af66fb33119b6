"""Patterns: what is read, what is refused, what is found, in which time; Python's own matcher is the oracle."""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidParameter
from discreet.plan.expressions import pattern_matcher
from discreet.plan.expressions.letter_case import lower_case, upper_case
from discreet.plan.expressions.pattern_grammar import (
    DEEPEST,
    LARGEST,
    PatternError,
    from_like,
    from_similar,
    parse,
)
from discreet.plan.expressions.pattern_matcher import PatternProgram, program
from discreet.plan.expressions.patterns import groups, keep_one_group, size, write_pattern
from discreet.plan.model.nodes import ColumnRef, FunctionCall, Literal
from discreet.plan.model.types import Type
from discreet.plan.validation import _check_expression

ATOMS = ["a", "b", "[ab]", "[^a]", ".", r"\d", r"\w", r"\S", "é", "-", r"\b", "^", "$", r"\x{62}", "[[:digit:]b]", "A"]
TIMES = ["*", "+", "?", "{2}", "{1,3}", "{2,}", "*?", "+?", "??", "{0,2}?"]
TEXTS = ["".join(signs) for length in range(3) for signs in product("ab1é", repeat=length)]
TEXTS += ["a\nb", "a-b a", "bbb-aaa", "A_b", "ab ab-1", "\0", "aab" * 7]


@st.composite
def patterns(draw: st.DrawFn, depth: int = 4) -> str:
    kind = draw(st.sampled_from(["atom", "both", "either", "times", "group"])) if depth else "atom"
    if kind == "atom":
        return draw(st.sampled_from(ATOMS))
    inner = draw(patterns(depth - 1))
    if kind in ("both", "either"):
        other = draw(patterns(depth - 1))
        return f"{inner}{other}" if kind == "both" else f"({inner}|{other})"
    return f"(?:{inner}){draw(st.sampled_from(TIMES))}" if kind == "times" else f"({inner})"


def oracle(pattern: str) -> re.Pattern[str]:
    """The same for Python: $ is the end, and words are of ASCII."""
    known = pattern.replace("$", r"\Z").replace(r"\x{62}", "b").replace("[:digit:]", "0-9")
    return re.compile(known, re.ASCII)


def misread(pattern: str) -> list[object]:
    """Texts on which a pattern finds something else than Python does."""
    tree = parse(pattern)
    wrong: list[object] = []
    for number in range(groups(tree) + 1):
        found = PatternProgram.of(keep_one_group(tree, number))
        for text in TEXTS:
            known = oracle(pattern).search(text)
            same = found.group(text) == ((known[number] or "") if known else "")
            if found.matches(text) is not (known is not None) or not same:
                wrong.append((pattern, number, text))
    return wrong


@given(patterns())
def test_finds_what_python_finds(pattern: str) -> None:
    with suppress(PatternError):  # such as a repetition of what may be empty
        assert not misread(pattern)


@given(patterns())
def test_the_normal_form_is_one(pattern: str) -> None:
    try:
        tree = parse(pattern)
    except PatternError:
        return
    text = write_pattern(tree)
    assert write_pattern(parse(text)) == text
    assert size(parse(text)) == size(tree)
    assert not [sign for sign in text if not (sign.isascii() and sign.isprintable())]


@pytest.mark.parametrize("slip", ["later ways first", "no end", "an edge anywhere"])
def test_mutants_are_noticed(monkeypatch: pytest.MonkeyPatch, slip: str) -> None:
    if slip == "later ways first":
        fork = PatternProgram._fork
        monkeypatch.setattr(
            PatternProgram, "_fork", lambda self, at, *to, lazy=False: fork(self, at, *to, lazy=not lazy)
        )
    else:
        kind = "end" if slip == "no end" else "edge"
        monkeypatch.setitem(pattern_matcher._LOOKS, kind, lambda _text, _place: True)
    assert any(misread(pattern) for pattern in (r"(a|ab)b*", "a$", r"(a+)", r"\ba\b"))


REFUSED = [
    ("(a", "never closed", 1),
    ("a)", "no opening", 2),
    ("[a", "never closed", 1),
    ("*a", "repeats nothing", 1),
    ("a**", "follow each other", 3),
    ("a{2}{3}", "follow each other", 5),
    ("a++", "follow each other", 3),
    ("(a*)*", "takes up characters", 1),
    ("(a|b?)+", "takes up characters", 1),
    ("^*", "takes up characters", 1),
    ("a{", "{2}", 2),
    ("a{3,2}", "fewer to more", 2),
    ("a{0}", "fewer to more", 2),
    ("a{900}", "up to 500", 2),
    ("(?=a)", "look around", 1),
    ("(?P<x>a)", "name groups", 1),
    ("a(?i)b", "options", 2),
    (r"(a)\1", "looks back", 4),
    (r"\p{L}", "not supported", 1),
    (r"\B", "not supported", 1),
    ("a\\", "not supported", 2),
    (r"[\q]", "not supported", 2),
    ("[b-a]", "later one", 1),
    (r"[\d-z]", "later one", 1),
    (r"[^\d\D]", "is empty", 1),
    ("[[:nothing:]]", "name of the set", 2),
    ("[[=a=]]", "name of the set", 2),
    (r"\mé", "ASCII letters only", 1),
    (r"é\b", "ASCII letters only", 2),
    (r"\m-", "needs an ASCII", 1),
    (r"-\M", "needs an ASCII", 2),
    (r"\m", "needs an ASCII", 1),
    ("((a{100}){100}){100}", "too large", 1),
    ("(" * (DEEPEST + 1) + "a" + ")" * (DEEPEST + 1), "nested", DEEPEST + 1),
    ("a" * 2001, "too large", 1),
]


@pytest.mark.parametrize(("pattern", "reason", "place"), REFUSED, ids=[pattern[:20] for pattern, _, _ in REFUSED])
def test_refuses_what_is_not_of_one_meaning(pattern: str, reason: str, place: int) -> None:
    with pytest.raises(PatternError) as refused:
        parse(pattern)
    assert reason in refused.value.reason
    assert refused.value.place == place
    assert refused.value.hint


def test_words_of_postgres() -> None:
    assert write_pattern(parse(r"\m(brake|tyre)\M")) == r"\b(brake|tyre)\b"
    assert write_pattern(parse(r"\ya\y|\Ab\Z")) == r"\ba\b|\Ab\z"


def test_case_is_folded_as_elsewhere() -> None:
    """A pattern finds in a folded text what some way of writing the text in either case would let it find."""
    for pattern, texts in {
        "Köln": ("KÖLN", "köln", "kÖLN"),
        "[A-Z]+ß": ("aß", "A\u1e9e"),
        "^[^a]$": ("b", "B", "é"),
        r"^\w+$": ("aB_1",),
        "ΟΔΟΣ": ("οδος",),
        "^i$": ("I", "\u0130", "\u0131"),
    }.items():
        folded = PatternProgram.of(parse(pattern, fold=True))
        assert all(folded.matches(lower_case(upper_case(text))) for text in texts), pattern
    assert not PatternProgram.of(parse("^[^a]$", fold=True)).matches(lower_case(upper_case("A")))
    assert not PatternProgram.of(parse(r"^\W$", fold=True)).matches(lower_case(upper_case("A")))


def test_like_with_an_escape() -> None:
    for pattern, escape, yes, no in [
        ("%!%%", "!", ("50%", "%", "a%b"), ("50", "")),
        ("a!_b", "!", ("a_b",), ("axb", "a_", "")),
        ("a!!b_", "!", ("a!bc",), ("a!b",)),
        ("a%b", "", ("a\nb", "ab", "a%b"), ("abc",)),
        ("(.)", "!", ("(.)",), ("(a)",)),
    ]:
        found = PatternProgram.of(from_like(pattern, escape))
        assert [found.matches(text) for text in (*yes, *no)] == [True] * len(yes) + [False] * len(no), pattern
    assert PatternProgram.of(from_like("KÖ!%", "!", fold=True)).matches("kö%")
    for wrong in ("a!b", "a!"):
        with pytest.raises(PatternError, match="escapes"):
            from_like(wrong, "!")


def test_similar_to_is_that_of_standard_sql() -> None:
    for pattern, escape, yes, no in [
        ("(SPRING|SUMMER)#_[0-9]+", "#", ("SPRING_10", "SUMMER_2"), ("SPRINGX10", "SPRING_", "xSPRING_1")),
        ("(a|e)%", "\\", ("a", "english"), ("ba", "")),
        ("_[.$%]", "\\", ("a.", "b%"), ("ab", ".")),
        (r"a\%b{2}", "\\", ("a%bb",), ("aabb", "a%b")),
    ]:
        found = PatternProgram.of(from_similar(pattern, escape))
        assert [found.matches(text) for text in (*yes, *no)] == [True] * len(yes) + [False] * len(no), pattern
    for wrong in ("a.b", "^a", "a$", r"[\d]", "[#]"):
        with pytest.raises(PatternError, match="different ways"):
            from_similar(wrong, "#")


def test_time_grows_with_the_text_and_the_pattern_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts on which matchers that go back need ages: steps are counted, at most one for each place and each step."""
    taken = 0
    holds = pattern_matcher._holds

    def counted(ranges: object, point: int) -> bool:
        nonlocal taken
        taken += 1
        return holds(ranges, point)  # type: ignore[arg-type]

    monkeypatch.setattr(pattern_matcher, "_holds", counted)
    text = "a" * 2000 + "!"
    for pattern in ("(?:a|a)+$", "(?:a+b?)+$", "^a*a*a*a*a*a*$", "(?:(?:a|aa)+b?)+$", "^(?:a{1,30}){1,9}b"):
        taken, made = 0, program(pattern)
        assert not made.matches(text)
        assert taken <= (len(text) + 1) * len(made.steps)


def test_only_the_normal_form_is_given_to_an_engine() -> None:
    def checked(function: str, pattern: str) -> None:
        kind = Type.BOOL if function == "matches" else Type.TEXT
        call = FunctionCall(function, (ColumnRef("s", Type.TEXT), Literal(pattern, Type.TEXT)), kind)
        _check_expression(call, {"s": Type.TEXT})

    checked("matches", r"\A[0-9]+")
    checked("extract", r"\A([0-9]+)")
    for function, pattern in [
        ("matches", r"^\d"),
        ("matches", "("),
        ("matches", "(?i)a"),
        ("matches", "(a)"),
        ("extract", "a"),
        ("extract", "(a)(b)"),
        ("matches", "(?:a{400}){400}"),
    ]:
        with pytest.raises(InvalidParameter, match="pattern"):
            checked(function, pattern)
    assert LARGEST == 2000  # what DuckDB compiles with room to spare: see tests/engines/test_patterns
