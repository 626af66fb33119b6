"""Mistakes where a question shows few groups: noise for less than one person can move in them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from discreet import Limits
from discreet.measurement.program import program as program_module
from discreet.mechanisms import ranks
from discreet.plan.analysis.stability import QueryContribution
from discreet.plan.model.readings import Reading
from tests.audit.mutants.registry import Mutant, catcher, setting
from tests.redteam.clinics import APPROXIMATE, CROWD, Row, asking, neighbours, row

WARDS = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
KINDS = "SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind"
HIGHEST = "SELECT ward, MAX(age) AS a FROM visits GROUP BY ward"
MANY = [row(100 + i, kind="abcd"[i % 4], ward="ABC"[i % 3], age=60) for i in range(36)]


def _in_wards(wards: str, **values: Any) -> list[Row]:
    return [row(99, ward=ward, **values) for ward in wards]


def _judge(sql: str, one: list[Row], other: list[Row], *, delta: Any = 0) -> None:
    """One person's rows are replaced by others; at most two groups count, with one row each."""
    pair = neighbours([*CROWD, *MANY, *one], [*CROWD, *MANY, *other], budget=APPROXIMATE, neighbours="replace")
    pair.judge(asking(sql, delta=delta, limits=Limits(2, 1), private=bool(delta)))


@catcher("audit.query")
def who_leaves_two_of_three_wards_enters_the_third() -> None:
    _judge(WARDS, _in_wards("AB"), _in_wards("C"))


@catcher("audit.query")
def who_is_in_undeclared_wards_is_in_none() -> None:
    _judge(WARDS, _in_wards("AB"), _in_wards("DE"))


@catcher("audit.query")
def private_groups_have_no_number() -> None:
    one, other = ([row(99, kind=kind) for kind in kinds] for kinds in ("ab", "cd"))
    _judge(KINDS, one, other, delta="1e-3")


@catcher("audit.query")
def an_extreme_moves_where_it_goes_and_where_it_comes() -> None:
    _judge(HIGHEST, _in_wards("AB", age=120), [*_in_wards("B", age=0), *_in_wards("C", age=120)])


# ------------------------------------------------------------------------------------------------------------- mistakes


def _everybody_stays(patch: pytest.MonkeyPatch) -> None:
    right = QueryContribution.of

    def stays(**given: Any) -> QueryContribution:
        found = right(**given)
        return replace(found, overlap=found.groups)

    patch.setattr(QueryContribution, "of", stays)


def _private_keys_counted(patch: pytest.MonkeyPatch) -> None:
    right = QueryContribution.of

    def counted(*, shown: Any, **given: Any) -> QueryContribution:
        return right(shown=[2 if count is None else count for count in shown], **given)

    patch.setattr(QueryContribution, "of", counted)


def _undeclared_keys_kept(patch: pytest.MonkeyPatch) -> None:
    """Also in the answer; what is shown is what was read."""
    right = program_module._reading

    def all_keys(*given: Any) -> Reading:
        reading = right(*given)
        return replace(reading, public_keys=(*(reading.public_keys or ()), ("D",), ("E",)))

    patch.setattr(program_module, "_reading", all_keys)


MUTANTS = [
    Mutant(
        "a replaced person stays",
        "Of a person whose rows are replaced, the old groups are taken for the new ones, although there are more.",
        _everybody_stays,
        who_leaves_two_of_three_wards_enters_the_third,
    ),
    Mutant(
        "a number of private groups",
        "Groups of private keys are taken for as few as somebody expects, and nobody is held to these.",
        _private_keys_counted,
        private_groups_have_no_number,
    ),
    Mutant(
        "noise for declared keys, rows of all",
        "The noise is for the number of declared keys, and rows with other keys are not dropped.",
        _undeclared_keys_kept,
        who_is_in_undeclared_wards_is_in_none,
    ),
    Mutant(
        "draws that cost alike",
        "Points drawn in a group that somebody leaves and in one that they enter are priced as one that they stay in.",
        setting(ranks, "pieces", lambda contribution, _, stays: ((contribution.groups, stays),)),
        an_extreme_moves_where_it_goes_and_where_it_comes,
    ),
]
