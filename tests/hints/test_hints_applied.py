"""Every hint of a refusal is applied word for word, and means the same on tables with NULL unless it says otherwise.

The hints are found by walking the sources (`hint_texts`): one without a case here fails `test_every_hint_has_a_case`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from discreet.errors import UnknownTable, UnsupportedQuery
from discreet.sql import examples, scope
from tests.cases import try_all
from tests.effort import some
from tests.hints.hint_case import PROPOSED, Case, Judge
from tests.hints.hint_cases import CASES, CLIPPED, PLANNED
from tests.hints.hint_texts import PASSED_ON, HintText, Unresolved, all_hints
from tests.hints.python_cases import CALLS
from tests.hints.sparse_world import curator, plain, world
from tests.sql.test_refused import MARK, REFUSED

FOLDERS = ("sql/", "plan/", "measurement/", "curator/asking", "curator/catalog", "curator/training")
REFUSED_CASES = [Case(marked.replace(MARK, "").replace("rows_only", "wards")) for marked, _ in REFUSED]
BEYOND = {
    "SELECT SUM(1 / (debt - 4)) FROM visits": "values lie beyond the limits that are proposed",
    "SELECT SUM(EXP(EXP(EXP(age)))) AS x FROM visits": "values lie beyond the limits that are proposed",
    "SELECT SUM(CAST(ward AS INT)) FROM visits": "plain DuckDB fails on texts that are no numbers",
}
"""Refused questions whose hints are not compared with plain DuckDB, and why."""

UNREACHED = {
    "a check behind the gate, which refuses first": (
        ("plan/analysis/relation_schema.py", ""),
        ("plan/expressions/functions/conditions.py", "AND joins conditions"),
        ("measurement/aggregates/__init__.py", "no aggregate of the kind"),
        ("measurement/program/program.py", "counts nothing"),
        ("measurement/releases/", ""),
        ("curator/catalog/catalog.py", "cannot be called"),
        ("curator/catalog/catalog.py", "inside another one"),
        ("sql/clauses/from_clause.py", "reads declared tables"),
        ("sql/clauses/histograms.py", "cut into bands"),
        ("sql/clauses/assembly.py", "too large"),
        ("sql/clauses/subqueries.py", "JOIN or LEFT JOIN"),
        ("sql/functions/casts.py", "without a place in the order"),
        ("sql/scope.py", "begin with #"),
        ("measurement/program/other_group.py", "too many keys"),
    ),
    "a fault of the parser, which is not ours": (("sql/select.py", "Write it like"),),
    "a query of the catalog, whose hints propose no question": (("sql/catalog_queries.py", ""),),
    "files, servers and accounts that this world does not have": (
        ("curator/training/column_features.py", ""),
        ("curator/training/learners.py", "neighbours='replace'"),
        ("curator/training/learners.py", "not files"),
        ("curator/training/learners.py", "takes at most"),
    ),
}
"""Refusals that no case raises, by their file and words of their reason or hint, under the reason why not."""

_SQL_WORDS = re.compile(r"\b[A-Z]{2,}\b")
_QUOTED = re.compile(r"`[^`]*`|\{[a-z_]+\}")


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    made = world()
    with curator(made) as asked, curator(made) as planner:
        yield Judge(made, asked, planner, plain(made))


def _raised(judge: Judge, cases: list[Case]) -> list[tuple[Case, UnsupportedQuery]]:
    found = [(case, judge.refusal(case)) for case in cases]
    return [(case, refused) for case, refused in found if refused is not None]


@pytest.mark.ci
def test_cases_are_refused(judge: Judge) -> None:
    assert [case.sql for case in CASES if judge.refusal(case) is None] == []


@pytest.mark.ci
def test_clipping_keeps_null(judge: Judge) -> None:
    try_all(some(_raised(judge, CLIPPED), 2), lambda each: judge.check(*each))


@pytest.mark.slow
def test_what_hints_say_is_accepted_and_means_the_same(judge: Judge) -> None:
    raised = [(case, refused) for case, refused in _raised(judge, CASES + REFUSED_CASES) if case.sql not in BEYOND]
    try_all(raised, lambda each: judge.check(*each))


@pytest.mark.ci
def test_something_can_be_pasted(judge: Judge) -> None:
    raised = [(case, refused) for case, refused in _raised(judge, CASES) if case not in PLANNED]
    assert [case.sql for case, refused in raised if not PROPOSED.search(refused.hint)] == []


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CALLS)
def test_calls(name: str, judge: Judge) -> None:
    call = CALLS[name]
    with pytest.raises(UnsupportedQuery):
        call.refused(judge.curator)
    call.applied(judge.curator)


def test_a_table_that_was_meant(judge: Judge) -> None:
    sql = "SELECT COUNT(*) AS n FROM vists"
    with pytest.raises(UnknownTable) as caught:
        judge.curator.explain(sql, epsilon=1)
    found = re.fullmatch("Did you mean '(.*)'[?]", caught.value.hint)
    assert found is not None
    meant = sql.replace("vists", found[1])
    judge.compare(meant, meant)


LISTED = {pair for pairs in UNREACHED.values() for pair in pairs}


def _listed(text: HintText) -> set[tuple[str, str]]:
    """The entries of `UNREACHED` that name a hint."""
    texts = (*text.reasons, text.hint)
    return {(file, words) for file, words in LISTED if text.file.startswith(file) and any(words in t for t in texts)}


@pytest.mark.ci
def test_every_hint_has_a_case(judge: Judge) -> None:
    """A hint whose words name SQL is applied by hand too: its case says how the question is then."""
    hints, passed = all_hints(*FOLDERS)
    assert passed <= {Unresolved(*pair) for pair in PASSED_ON}
    raised = [(r.reason, r.hint, case.applied) for case, r in _raised(judge, CASES + REFUSED_CASES)]
    with curator(judge.world) as fresh:  # to which nothing was released yet
        for name, call in CALLS.items():
            with pytest.raises(UnsupportedQuery) as caught:
                call.refused(fresh)
            raised.append((caught.value.reason, caught.value.hint, name))
    without, unwritten = [], []
    unreached: set[tuple[str, str]] = set()
    for text in hints:
        applied = [applied for reason, hint, applied in raised if text.is_of(reason, hint)]
        if not applied:
            unreached |= _listed(text)
            without += [] if _listed(text) else [text.shown]
        elif _SQL_WORDS.search(_QUOTED.sub("", text.hint)) and not any(applied):
            unwritten.append(text.shown)
    assert without == []
    assert unwritten == []
    assert LISTED - unreached == set()  # a case reaches it: it does not belong in the list


def test_mutant_limits_that_take_null(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    """GREATEST and LEAST pass over NULL: the mean of one 3 and one NULL between 0 and 100 was 51.5."""

    def without_null(text: str, low: str = "0", high: str = "100") -> str:
        return f"GREATEST(LEAST({text}, {high}), {low})"

    monkeypatch.setattr(scope, "clip_expression", without_null)
    case = Case(CLIPPED[0].sql + " WHERE TRUE")
    refused = judge.refusal(case)
    assert refused is not None
    with pytest.raises(AssertionError, match="differs from"):
        judge.check(case, refused)


@pytest.mark.ci
def test_mutant_examples_that_do_not_say_so(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examples, "different", lambda question: f"`{question}`")
    case = Case("SELECT STRING_AGG(note, '-') AS s FROM visits")
    refused = judge.refusal(case)
    assert refused is not None
    with pytest.raises(AssertionError, match="differs from"):
        judge.check(case, refused)
