"""Finds limits that a steward wants to be chosen privately: one release of each table and version, paid by its account.

The release is the account's own: no cap counts it, and whoever asks first has it made. It is charged once, under a key
that follows from what was declared, whichever process comes first, and is given to everybody after that. A search that
failed may be tried twice more, each for its price. Until a
steward declares other limits, another unit or another version, the limits stay.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from discreet.curator.catalog.catalog import Catalog
from discreet.curator.catalog.declarations import declaration
from discreet.curator.catalog.declared_limits import attempts, limits_epsilon, limits_place
from discreet.curator.measurement_plan import MeasurementPlan, QueryBudget
from discreet.curator.paid_release import ChargedRelease, ChargeRequest, ChargeRun, ReleaseOutcome, release_once
from discreet.dataclass import dataclass
from discreet.errors import InsufficientBudget, QueryFailed
from discreet.ledger import Caller, Ledger
from discreet.ledger.serialization import read_header
from discreet.measurement.probes.probes import describe_counted_rows
from discreet.measurement.probes.total_limit import TotalLimit
from discreet.measurement.program.execution import Reader
from discreet.measurement.releases.releaser import Releaser
from discreet.plan.analysis.relation_schema import describe, folds_in
from discreet.plan.canonical import canonical
from discreet.plan.model.schema import Limits, TableSchema
from discreet.privacy import events


class LimitsFinder:
    """Finds limits under the ledger.

    Args:
        catalog: the tables, whose limits it fills in.
        ledger: where the releases are charged and kept.
        engine: which reads.
        releaser: which adds noise.
    """

    def __init__(self, catalog: Catalog, ledger: Ledger, engine: Reader, releaser: Releaser) -> None:
        self._catalog, self._ledger, self._engine, self._releaser = catalog, ledger, engine, releaser

    def known(self, measurement: MeasurementPlan) -> bool:
        """Returns whether limits of a question's tables were found that it does not have yet; it is planned again."""
        return self.settle(limited_tables(measurement), None)

    def missing(self, measurement: MeasurementPlan) -> list[str]:
        """Returns the tables whose limits a question needs and nobody has paid for."""
        wanted = {name: self._catalog.schemas[name].private_limits for name in limited_tables(measurement)}
        return [name for name, limits in wanted.items() if limits is not None and not limits.found]

    def find(self, measurements: Sequence[tuple[MeasurementPlan, QueryBudget]], caller: Caller) -> tuple[str, ...]:
        """Finds the limits that questions of one account need, once it is known that these would be asked.

        Returns:
            What was paid for them, in sentences; none if there were none to find. Else the questions are planned again.

        Raises:
            InsufficientBudget: if the account cannot pay for the limits, or for a question; nothing was spent.
        """
        names = dict.fromkeys(name for measurement, _ in measurements for name in self.missing(measurement))
        if not names:
            return ()
        prices = [measurement.price(terms) for measurement, terms in measurements]
        whole = prices[0] if len(prices) == 1 else events.Composed(prices)
        account, who = measurements[0][0].account, {"analyst": caller.analyst, "project": caller.project}
        refused = self._ledger.refusal(account, whole, **who)
        if refused is not None:
            raise refused
        paid = {name: self.price(name) for name in names}
        self.settle(names, caller)
        return tuple(
            f"Limits of {name} were chosen privately, before this answer. The account paid epsilon {float(epsilon):g}, "
            "once."
            for name, epsilon in paid.items()
        )

    def settle(self, names: Iterable[str], caller: Caller | None) -> bool:
        """Fills in the limits of tables; those that nobody has paid for are found for a caller, or left."""
        settled = [name for name in dict.fromkeys(names) if self._settle(name, caller)]
        return bool(settled)

    def _settle(self, name: str, caller: Caller | None) -> bool:
        schema = self._catalog.schemas[name]
        if schema.private_limits is None or schema.private_limits.found:
            return False
        paid = self._plan(schema)
        found = paid.find() if caller is None else self._buy(paid, caller)
        if found is None:
            return False
        self._catalog.set_limits(schema, found)
        return True

    def price(self, name: str) -> Fraction:
        """Returns what private limits of a table cost."""
        return self._plan(self._catalog.schemas[name]).search.epsilon

    def _plan(self, schema: TableSchema) -> PaidLimits:
        state, own = self._ledger.account(schema.account), schema.private_limits
        price = own.epsilon if own is not None else None
        epsilon = limits_epsilon(state.budget) if price is None else price
        search = TotalLimit(table=schema.name, schemas=self._catalog.schemas, epsilon=epsilon, salt=state.salt.hex())
        place = limits_place(declaration(schema), schema.version, schema.neighbours.value)
        return PaidLimits(search, place, self._ledger, self._engine, self._releaser)

    def _buy(self, paid: PaidLimits, caller: Caller) -> Limits:
        """Returns the limits; where the search failed before, it is charged and run again, at most twice.

        Raises:
            QueryFailed: if it fails now, or failed as often as it may be tried.
        """
        *early, last = attempts(paid.place)
        for key in early:
            tried = replace(paid, runs=[])
            with suppress(QueryFailed):
                return self._release(tried, Caller(key=key, progress=caller.progress))
            if tried.runs:  # it failed just now, and whoever asks again decides to try it once more
                raise QueryFailed
        return self._release(paid, Caller(key=last, progress=caller.progress))

    def _release(self, paid: PaidLimits, owner: Caller) -> Limits:
        try:
            return release_once(self._ledger, paid, owner, lambda bought: bought.result)
        except InsufficientBudget as refused:
            hint = (
                f"The limits of table {paid.search.table!r} are chosen privately before its first query, for epsilon "
                f"{float(paid.search.epsilon):g}. A steward can declare them instead, with max_rows and max_groups."
            )
            raise InsufficientBudget(refused.requested, refused.remaining, hint) from None


def limited_tables(measurement: MeasurementPlan) -> Iterator[str]:
    """Yields the tables whose limits a question counts by: its own rows, unless it has limits, and rows it folds."""
    schemas = measurement.schemas
    for plan in (measurement.plan, *measurement.plan.beside):
        if measurement.limits is None:
            yield describe_counted_rows(plan, schemas).name
        if plan.source is not None:
            yield from (describe(fold.source, schemas).name for fold in folds_in(plan.source))


@dataclass(frozen=True)
class PaidLimits:
    """The search for the limits of a table, as it is paid: see `PaidRelease`.

    Args:
        search: what is read and released.
        place: the replay key, and the key of the charge.
        ledger: where it is kept.
        engine: which reads.
        releaser: which adds noise.
        runs: how often it was run here, one each.
    """

    search: TotalLimit
    place: str
    ledger: Ledger
    engine: Reader
    releaser: Releaser
    runs: list[int] = field(default_factory=list)

    @cached_property
    def request(self) -> ChargeRequest:
        """Returns what is charged to the account."""
        return ChargeRequest(
            accounts=(self.search.schema.account,),
            event=self.search.event,
            question=canonical(self.search.question),
            replay_key=self.place,
            terms=QueryBudget(self.search.epsilon, Fraction(0)).text,
            sql=f"Limits of table {self.search.table}, chosen privately",
            asked=self.search.epsilon,
        )

    @property
    def stage(self) -> str:
        """Returns what is planned, in public words."""
        return f"Choosing limits of {self.search.table} privately"

    def find(self) -> Limits | None:
        """Returns the limits that were found before."""
        stored = (self._read(one.payload) for one in self.ledger.read_answers(self.place))
        return next((limits for limits in stored if limits is not None), None)

    def prepare(self) -> None:
        """Plans the reading, which refuses what the engine cannot do."""
        _ = self.search.reading

    def execute(self, charge: ChargeRun) -> ReleaseOutcome:
        """Reads the table and finds its limits."""
        charge.require_paid(self.search.event)
        self.runs.append(1)
        found = self.search.release(self.engine, self.releaser)
        kept: dict[str, Any] = {
            "version": 1,
            "private": self.releaser.bits.private,
            "event": events.to_json(self.search.event),
            "total": found.total,
        }
        return ReleaseOutcome(event=self.search.event, replay_key=self.place, payload=json.dumps(kept))

    def read(self, kept: ChargedRelease) -> Limits | None:
        """Returns the stored limits."""
        return self._read(kept.payload)

    def _read(self, payload: bytes) -> Limits | None:
        fields = read_header(payload)
        if fields.get("version") != 1 or fields["private"] is not self.releaser.bits.private:
            return None
        return Limits(total=fields["total"])
