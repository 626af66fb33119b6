"""Mistakes in a curator: what it reads, charges, stores and reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from discreet import audit
from discreet.curator import measurement_plan
from discreet.curator.asking import answer as answer_module
from discreet.curator.replay import replay
from discreet.engines import Memory
from discreet.errors import QueryFailed
from discreet.exact.integer_columns import column_of
from discreet.ledger import Ledger
from discreet.measurement.releases.additive import AdditiveNoise
from discreet.measurement.releases.exact_groups import ExactGroups
from discreet.measurement.selection import Threshold
from discreet.noise import SeededBits
from discreet.plan.analysis.stability import QueryContribution
from discreet.plan.model.readings import Reading
from discreet.privacy import Neighbours, PureDP, events
from tests.audit.mutants.registry import Mutant, catcher
from tests.open_groups import rows_of, unsealed
from tests.redteam.clinics import APPROXIMATE, CROWD, clinic, noises, row
from tests.redteam.test_budget import Failing

SURE = 1 - 1e-6
NEIGHBOURS = 8
SUM, COUNT = "SELECT SUM(charge) AS s FROM visits", "SELECT COUNT(*) AS n FROM visits"
GROUPS = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
PRIVATE = "SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind"
MEAN = "SELECT AVG(charge) AS m FROM visits"


def _hidden(*questions: str, delta: Any = None, **declared: Any) -> None:
    """Checks that a small clinic and its neighbours differ in nothing but what noise covers."""
    found = audit.query(
        lambda rows: clinic(rows, **declared), list(questions), CROWD, delta=delta, neighbours=NEIGHBOURS
    )
    assert found.passed, found.summary()


@catcher("audit.query")
def sums_and_counts_hide_each_person() -> None:
    _hidden(SUM, GROUPS)


@catcher("audit.query")
def a_replaced_person_is_covered() -> None:
    _hidden(GROUPS, neighbours="replace", max_groups=1)


@catcher("audit.query")
def groups_of_one_person_stay_hidden() -> None:
    _hidden(PRIVATE, delta=1e-5, budget=APPROXIMATE)


@catcher("audit.query")
def a_new_person_causes_no_error_and_no_note() -> None:
    _hidden(COUNT)


def _measured(question: str) -> tuple[AdditiveNoise, list[int]]:
    noise = noises(question)[0]
    assert isinstance(noise.release, AdditiveNoise)
    return noise.release, list(noise.exact[0])


def _hides(place: int) -> None:
    """One statistic of a mean moves by as little as one step, and by as much as a unit can."""
    measure, exact = _measured(MEAN)
    bits = SeededBits(41)

    def release(statistics: list[int]) -> list[int]:
        return [int(n) for n in measure.release([column_of([number]) for number in statistics], 1, bits)[0]]

    moved = [n + (i == place) for i, n in enumerate(exact)]
    assert audit.distinguish(release, exact, moved, runs=400, confidence=SURE, event=measure.event).passed


@catcher("audit.distinguish")
def every_statistic_of_a_mean_has_noise() -> None:
    _hides(0)
    _hides(1)


@catcher("budget after failure")
def a_failure_is_not_refunded() -> None:
    curator = clinic(engine=Failing(ValueError()))
    with pytest.raises(QueryFailed):
        curator.ask(COUNT, epsilon=1)
    assert curator.budget("visits").spent == PureDP(1)


@catcher("budget after answers")
def answers_are_charged_in_full() -> None:
    curator = clinic()
    for place, sql in enumerate((COUNT, SUM, GROUPS), start=1):
        with suppress(QueryFailed):  # of another charge, which does not pay for it
            assert curator.ask(sql, epsilon=1).cost.details == PureDP(1)
        assert curator.budget("visits").spent == PureDP(place)


@catcher("two versions of a table")
def another_version_is_measured_again() -> None:
    with TemporaryDirectory() as folder:
        ledger = str(Path(folder) / "ledger")
        with clinic(ledger=ledger) as first:
            assert not first.ask(COUNT, epsilon=1).replayed
            assert first.ask(COUNT, epsilon=1).replayed
        with clinic([*CROWD, row(99)], ledger=ledger, version="2") as second:
            assert not second.ask(COUNT, epsilon=1).replayed


# ------------------------------------------------------------------------------------------------------------- mistakes
def _reading(change: Callable[[Reading], Reading]) -> Callable[[pytest.MonkeyPatch], None]:
    """The engine is asked for something else."""
    right = Memory.read
    return lambda patch: patch.setattr(Memory, "read", lambda engine, reading: right(engine, change(reading)))


def _unclipped(reading: Reading) -> Reading:
    wide = 1 << 62
    wider = tuple(replace(s, low=-wide, high=wide) if s.kind == "sum" else s for s in reading.statistics)
    return replace(reading, statistics=wider)


def _looser(name: str) -> Callable[[Reading], Reading]:
    def change(reading: Reading) -> Reading:
        if reading.bounding is None:
            return reading
        wider: dict[str, Any] = {name: 10**6}
        return replace(reading, bounding=replace(reading.bounding, **wider))

    return change


def _fragile(patch: pytest.MonkeyPatch) -> None:
    right = Memory.read

    def read(engine: Memory, reading: Reading) -> ExactGroups:
        found = right(engine, reading)
        if any(number > len(CROWD) for numbers in unsealed(found).values() for number in numbers):
            raise QueryFailed
        return found

    patch.setattr(Memory, "read", read)


def _telling(patch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    right = Memory.read

    def read(engine: Memory, reading: Reading) -> ExactGroups:
        found = right(engine, reading)
        seen.append(unsealed(found))
        return found

    patch.setattr(Memory, "read", read)
    patch.setattr(answer_module, "notes", lambda _program: (f"{seen[-1]} were counted.",))


def _added(patch: pytest.MonkeyPatch) -> None:
    right = QueryContribution.l1

    def l1(self: QueryContribution, *arguments: Any, **options: Any) -> Fraction:
        return right(replace(self, neighbours=Neighbours.ADD_REMOVE), *arguments, **options)

    patch.setattr(QueryContribution, "l1", l1)


def _halved(patch: pytest.MonkeyPatch) -> None:
    right = AdditiveNoise.laplace.__func__  # type: ignore[attr-defined]

    def laplace(cls: type[AdditiveNoise], *arguments: Any) -> AdditiveNoise:
        found: AdditiveNoise = right(cls, *arguments)
        return replace(found, scales=tuple(scale / 2 for scale in found.scales))

    patch.setattr(AdditiveNoise, "laplace", classmethod(laplace))


def _exact_column(place: int) -> Callable[[pytest.MonkeyPatch], None]:
    right = AdditiveNoise.release

    def release(measure: AdditiveNoise, exact: Any, groups: int, bits: Any) -> Any:
        noisy = right(measure, exact, groups, bits)
        noisy[:, place] = rows_of(exact)[:, place]
        return noisy

    return lambda patch: patch.setattr(AdditiveNoise, "release", release)


def _shown(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Threshold, "select_groups", lambda _self, noisy, _exact, _bits: [True] * len(noisy))


def _refunding(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        Ledger, "fail", lambda ledger, *receipts: [ledger.stewardship.renew(receipt.account) for receipt in receipts]
    )


def _uncharged(patch: pytest.MonkeyPatch) -> None:
    right = Ledger.charge_all
    count = [0]

    def charge_all(ledger: Ledger, parts: Mapping[str, events.Event], **options: Any) -> Any:
        count[0] += 1
        return right(ledger, parts if count[0] == 1 else dict.fromkeys(parts, events.Composed([])), **options)

    patch.setattr(Ledger, "charge_all", charge_all)


def _timeless(patch: pytest.MonkeyPatch) -> None:
    right = measurement_plan.area

    def area(program: Any, tables: Any) -> str:
        return right(program, [replace(table, version="") for table in tables])

    for module in (measurement_plan, replay):
        patch.setattr(module, "area", area)


MUTANTS = [
    Mutant(
        "clamp removed",
        "Values are summed as they are, however far outside their bounds.",
        _reading(_unclipped),
        sums_and_counts_hide_each_person,
    ),
    Mutant(
        "half the noise of a question",
        "A curator adds noise with half of the scale that it charges for.",
        _halved,
        sums_and_counts_hide_each_person,
    ),
    Mutant(
        "rows of a person not limited",
        "All rows of a person in a group are counted, whatever the limit.",
        _reading(_looser("rows")),
        sums_and_counts_hide_each_person,
    ),
    Mutant(
        "groups of a person not limited",
        "A person is counted in every group, whatever the limit.",
        _reading(_looser("groups")),
        sums_and_counts_hide_each_person,
    ),
    Mutant(
        "each row its own person",
        "Rows are protected instead of the people they belong to.",
        _reading(lambda reading: replace(reading, bounding=None)),
        sums_and_counts_hide_each_person,
    ),
    Mutant(
        "wrong adjacency of a question",
        "Under REPLACE, a question is calibrated for a person who is added or removed.",
        _added,
        a_replaced_person_is_covered,
    ),
    Mutant(
        "private groups shown without a threshold",
        "A group is shown as soon as one person is in it.",
        _shown,
        groups_of_one_person_stay_hidden,
    ),
    Mutant(
        "data-dependent exception",
        "A question fails if there are too many rows to count.",
        _fragile,
        a_new_person_causes_no_error_and_no_note,
    ),
    Mutant(
        "an exact number in a note",
        "The notes of an answer show the exact numbers that were read.",
        _telling,
        a_new_person_causes_no_error_and_no_note,
    ),
    Mutant(
        "n used exactly",
        "The second of the two statistics of a mean gets no noise.",
        _exact_column(1),
        every_statistic_of_a_mean_has_noise,
    ),
    Mutant(
        "noise on one statistic",
        "The first of the two statistics of a mean gets no noise.",
        _exact_column(0),
        every_statistic_of_a_mean_has_noise,
    ),
    Mutant(
        "refund on failure",
        "A question that fails gets a refund.",
        _refunding,
        a_failure_is_not_refunded,
    ),
    Mutant(
        "uncharged path",
        "Every question after the first is charged nothing.",
        _uncharged,
        answers_are_charged_in_full,
    ),
    Mutant(
        "replay served across versions",
        "A stored answer is shown again although the version of the table has changed.",
        _timeless,
        another_version_is_measured_again,
    ),
]
