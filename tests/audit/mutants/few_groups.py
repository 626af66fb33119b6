"""Mistakes where a question shows few groups, and the noise covers less than one person can change."""

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
def a_replaced_person_may_enter_other_wards() -> None:
    _judge(WARDS, _in_wards("AB"), _in_wards("C"))


@catcher("audit.query")
def rows_of_undeclared_wards_are_dropped() -> None:
    _judge(WARDS, _in_wards("AB"), _in_wards("DE"))


@catcher("audit.query")
def private_groups_have_no_assumed_number() -> None:
    one, other = ([row(99, kind=kind) for kind in kinds] for kinds in ("ab", "cd"))
    _judge(KINDS, one, other, delta="1e-3")


@catcher("audit.query")
def a_maximum_moves_in_the_old_and_the_new_group() -> None:
    _judge(HIGHEST, _in_wards("AB", age=120), [*_in_wards("B", age=0), *_in_wards("C", age=120)])


# ------------------------------------------------------------------------------------------------------------- mistakes


def _same_groups(patch: pytest.MonkeyPatch) -> None:
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
    """Keeps them in the answer, too, so that it shows what was read."""
    right = program_module._reading

    def all_keys(*given: Any) -> Reading:
        reading = right(*given)
        return replace(reading, public_keys=(*(reading.public_keys or ()), ("D",), ("E",)))

    patch.setattr(program_module, "_reading", all_keys)


MUTANTS = [
    Mutant(
        "a replaced person stays",
        "A replaced person is assumed to stay in the same groups, although there are others to move to.",
        _same_groups,
        a_replaced_person_may_enter_other_wards,
    ),
    Mutant(
        "an assumed number of private groups",
        "The noise is for an assumed number of private groups, but nothing limits the groups to that number.",
        _private_keys_counted,
        private_groups_have_no_assumed_number,
    ),
    Mutant(
        "noise for declared keys, rows of all keys",
        "The noise covers only the declared keys, but rows with other keys are not dropped.",
        _undeclared_keys_kept,
        rows_of_undeclared_wards_are_dropped,
    ),
    Mutant(
        "draws priced as if no person moved",
        "A draw in a group that a person leaves or enters is priced like one in a group where they stay.",
        setting(ranks, "pieces", lambda contribution, _, stays: ((contribution.groups, stays),)),
        a_maximum_moves_in_the_old_and_the_new_group,
    ),
]
