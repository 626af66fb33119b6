"""Mistakes where one charge covers several releases, and where one person has rows in several tables."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from discreet import audit
from discreet.accounting.composition import compose as basic
from discreet.accounting.composition import terms as listed
from discreet.curator.asking import batch_plan
from discreet.curator.catalog.catalog import Catalog
from discreet.curator.measurement_plan import MeasurementPlan
from discreet.engines.memory import engine as memory
from discreet.engines.memory import relation_rows as gather_module
from discreet.errors import QueryFailed, UnsupportedQuery
from discreet.plan.analysis.stability import QueryContribution
from discreet.plan.model.nodes import UNIT
from discreet.plan.model.relations import LinkedTable
from discreet.privacy import Neighbours
from tests.audit.mutants.registry import Mutant, catcher, setting
from tests.audit.several import PURE, THE_HOSPITAL, THE_SHOP, of_family, shopping, wards
from tests.measurement.test_agreeing import farthest
from tests.redteam.clinics import APPROXIMATE, CROWD, clinic

ROLLUP = "SELECT ward, COUNT(DISTINCT patient) AS n FROM visits GROUP BY ROLLUP (ward)"
DRAWN = "SELECT ward, MAX(age) AS m, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward)"
KINDS = "SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind"
ITEMS = "SELECT COUNT(*) AS n FROM items"
BOTH = "SELECT COUNT(*) AS n, (SELECT COUNT(*) FROM staff) AS s FROM visits"


@catcher("audit.query")
def every_grouping_of_a_person_is_charged() -> None:
    found = audit.query(clinic, ROLLUP, CROWD, neighbours=4)
    assert found.passed, found.summary()


@catcher("audit.query")
def counts_and_draws_are_charged_in_every_grouping() -> None:
    """A count and a drawn maximum cost the same, and what they moved in all groupings is added up together."""
    found = audit.query(lambda rows: clinic(rows, budget=APPROXIMATE), DRAWN, CROWD, delta=1e-5, neighbours=4)
    assert found.passed, found.summary()


@catcher("audit.query")
def the_other_group_is_charged() -> None:
    found = audit.query(
        lambda rows: clinic(rows, budget=APPROXIMATE), KINDS, CROWD, other="elsewhere", delta=1e-5, neighbours=4
    )
    assert found.passed, found.summary()


@catcher("audit.query")
def linked_rows_belong_to_one_person() -> None:
    found = audit.query(of_family(THE_SHOP, budget=PURE), ITEMS, shopping(), neighbours=4)
    assert found.passed, found.summary()


@catcher("audit.query")
def every_account_of_a_question_is_charged() -> None:
    """Passes if the question is refused, or if every account whose people it counts is charged."""
    with suppress(UnsupportedQuery):
        found = audit.query(of_family(THE_HOSPITAL, budget=PURE), BOTH, wards(), neighbours=6)
        assert found.passed, found.summary()


@catcher("brute force")
def a_sum_of_groups_is_charged_for_all_of_them() -> None:
    """All that one person can own of four groups: with Gaussian noise, no grouping moves farther than was paid for."""
    assert all(farthest(relation) < 1 + 1e-9 for relation in Neighbours)


@catcher("charges of a batch")
def a_batch_costs_what_it_releases() -> None:
    """The charge is the epsilon that was asked for, it covers the events of all releases, and none is another's."""
    curator = clinic(CROWD, budget=APPROXIMATE)
    texts = ["SELECT COUNT(*) AS n FROM visits", ROLLUP, "SELECT COUNT(*) AS n FROM visits WHERE age > 3"]
    try:
        answers = curator.ask_many(texts, epsilon="0.5", delta=0)
    except QueryFailed:
        raise AssertionError("a charge that does not pay for its releases") from None
    assert sum((basic(listed(answer.event)).epsilon for answer in answers), Fraction(0)) == Fraction(1, 2)
    assert str(curator.budget("visits").spent).startswith("epsilon=0.5")
    assert len({str(answer.records) for answer in answers}) == len(texts)


# ------------------------------------------------------------------------------------------------------------- mistakes


def _fewer_groupings(patch: pytest.MonkeyPatch) -> None:
    right = QueryContribution.of.__func__  # type: ignore[attr-defined]

    def all_but_one(cls: Any, /, *, shown: Any, **options: Any) -> QueryContribution:
        found: QueryContribution = right(cls, shown=shown[:-1] or shown, **options)
        return found

    patch.setattr(QueryContribution, "of", classmethod(all_but_one))


def _ungathered(patch: pytest.MonkeyPatch) -> None:
    for name in ("l1", "l2_squared"):
        right = getattr(QueryContribution, name)

        def cheap(self: QueryContribution, *given: Any, right: Any = right, **options: Any) -> Fraction:
            found: Fraction = right(replace(self, gathers=False), *given, **options)
            return found

        patch.setattr(QueryContribution, name, cheap)


def by_order(patch: pytest.MonkeyPatch) -> None:
    """Rows on a way are those of the key that leads on, and not of the person at its end."""
    right = gather_module.gather

    def by_key(relation: Any, *given: Any) -> list[Any]:
        rows = right(relation, *given)
        if not isinstance(relation, LinkedTable):
            return rows
        return [{**row, UNIT: str(row[relation.column])} for row in rows]

    patch.setattr(gather_module, "gather", by_key)
    patch.setattr(memory, "gather", by_key)


MUTANTS = [
    Mutant(
        "a grouping left uncharged",
        "One grouping of a ROLLUP is left out of what one person can change.",
        _fewer_groupings,
        every_grouping_of_a_person_is_charged,
    ),
    Mutant(
        "a grouping of draws left uncharged",
        "One grouping of a count and a drawn maximum is left out of what one person can change.",
        _fewer_groupings,
        counts_and_draws_are_charged_in_every_grouping,
    ),
    Mutant(
        "the OTHER group without a charge",
        "The group of all rows that are not shown is released with the other groups, but is not charged.",
        _ungathered,
        the_other_group_is_charged,
    ),
    Mutant(
        "limits for an order",
        "Items are limited per order, and not per customer, although one customer may have many orders.",
        by_order,
        linked_rows_belong_to_one_person,
    ),
    Mutant(
        "sums for the price of a group",
        "Groupings are sums of one table, but the noise covers only one of a person's groups in each sum.",
        setting(QueryContribution, "added_up", lambda self, **_: self),
        a_sum_of_groups_is_charged_for_all_of_them,
    ),
    Mutant(
        "the whole budget for every question",
        "Each question of a batch gets the epsilon that all of them should share.",
        setting(batch_plan, "share_terms", lambda terms, *_: terms),
        a_batch_costs_what_it_releases,
    ),
    Mutant(
        "a batch for the price of one",
        "A batch is charged only for the event of its first question.",
        setting(batch_plan.BatchPlan, "event", property(lambda self: self._price(self.layout.measured[0]))),
        a_batch_costs_what_it_releases,
    ),
    Mutant(
        "questions compared by their table",
        "Questions of a batch about the same table are treated as one question.",
        setting(MeasurementPlan, "request_key", lambda self, _: self.plan.table),
        a_batch_costs_what_it_releases,
    ),
    Mutant(
        "people of another account without a charge",
        "A nested question counts people of another account, which is not charged.",
        setting(Catalog, "_check_one_account", lambda *_: None),
        every_account_of_a_question_is_charged,
    ),
]
