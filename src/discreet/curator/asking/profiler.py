"""Buys profiles of tables: planned from declarations, charged, read with noise, kept, and found again for nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from hashlib import sha256

from discreet.check import Number, positive, probability
from discreet.curator.asking.performer import ProfileRequest
from discreet.curator.catalog.catalog import Catalog
from discreet.curator.measurement_plan import MeasurementPlan, QueryBudget
from discreet.curator.paid_release import ChargedRelease, ChargeRequest, ChargeRun, ReleaseOutcome, release_once
from discreet.curator.replay.replay import Replay, profile_key
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.hint_text import Hint
from discreet.ledger import Caller, Ledger
from discreet.measurement.profile.parts import ProfilePlan, choose_columns_and_keys
from discreet.measurement.profile.profile import Profile
from discreet.measurement.program.execution import Reader
from discreet.measurement.releases.releaser import Releaser
from discreet.plan.canonical import canonical
from discreet.plan.model.schema import TableSchema

KeySet = str | Sequence[str]
"""A set of keys: a column, or several."""


class Profiler:
    """Buys profiles under the ledger.

    Args:
        catalog: the tables.
        ledger: where profiles are charged and kept.
        engine: which reads.
        releaser: which adds noise.
        replay: which finds what is kept.
        salt: returns the secret by which rows of an account's people are kept.
    """

    def __init__(
        self,
        catalog: Catalog,
        ledger: Ledger,
        engine: Reader,
        releaser: Releaser,
        *,
        replay: Replay,
        salt: Callable[[str], str],
    ) -> None:
        self._catalog, self._ledger, self._engine, self._releaser = catalog, ledger, engine, releaser
        self._replay, self._salt = replay, salt

    def plan(self, table: str, columns: Sequence[str] | None, by: Sequence[KeySet] | None) -> ProfilePlan:
        """Returns what a profile would count.

        Raises:
            UnknownTable: if no such table is protected.
            InvalidParameter: if something is not a column of it, or cannot be counted.
        """
        self._catalog.require_current([table])
        schema = self._catalog.schema(table)
        sets = None if by is None else [(one,) if isinstance(one, str) else tuple(one) for one in by]
        for option, names in (("columns", columns or ()), ("by", [name for one in sets or () for name in one])):
            for name in names:
                _check_column(option, name, schema)
        wanted, keys = choose_columns_and_keys(schema, columns, sets)
        salt = self._salt(self._catalog.account_of(table))
        return ProfilePlan(table=schema.name, schemas=self._catalog.schemas, columns=wanted, by=keys, salt=salt)

    def of_table(self, plan: ProfilePlan, epsilon: Fraction) -> ProfileRequest:
        """Returns the profile of a table as it is wanted."""
        place = profile_key(plan.schema)
        known = self._replay.profile(plan, place)
        kept = known is not None and _serves(known, plan, epsilon)
        return ProfileRequest(plan=plan, epsilon=epsilon, place=place, kept=kept)

    def of_question(self, measurement: MeasurementPlan, terms: QueryBudget, epsilon: Fraction) -> ProfileRequest:
        """Returns the profile of a question's own rows as it is wanted.

        Raises:
            InvalidParameter: if limits are still to be found, or rows are those of several questions.
        """
        plan = measurement.own_profile
        if plan is None:
            hint = Hint("Ask one SELECT and pass {limits}, or leave out {coverage}.")
            raise InvalidParameter("coverage", "this question", "to be about one SELECT whose limits are known", hint)
        place = measurement.profile_place(terms)
        known = self._replay.profile(plan, place)
        kept = known is not None and known.epsilon >= epsilon
        return ProfileRequest(plan=plan, epsilon=epsilon, place=place, kept=kept)

    def reserve_profile(
        self, measurement: MeasurementPlan, terms: QueryBudget, profile: Number | None, coverage: Number | None
    ) -> tuple[QueryBudget, ProfileRequest]:
        """Returns the remaining terms for a question itself, and the profile that is bought with it.

        Args:
            measurement: the question.
            terms: what may be spent on it.
            profile: what a profile of its table may cost in addition.
            coverage: which part of its epsilon is for a profile of its own rows.

        Raises:
            InvalidParameter: if both are given, or the one that is lies outside its domain.
        """
        if coverage is None:
            plan = self.plan(measurement.plan.table, None, None)
            return terms, self.of_table(plan, positive(profile=profile))
        if profile is not None:
            alone = Hint("to be given without {profile}")
            raise InvalidParameter("coverage", coverage, alone, "Pass one of the two.")
        share = probability(coverage=coverage)
        rest = replace(terms, epsilon=terms.epsilon * (1 - share))
        return rest, self.of_question(measurement, rest, terms.epsilon * share)

    def buy(self, wanted: ProfileRequest, caller: Caller) -> Profile:
        """Returns a profile that was paid now, or one that is kept and as good; see `Curator.profile`."""
        account = self._catalog.account_of(wanted.plan.table)
        paid = PaidProfile(wanted, account, self._engine, self._releaser, self._replay)
        return release_once(self._ledger, paid, caller, lambda bought: bought.result)

    def buy_missing(self, wanted: ProfileRequest | None, caller: Caller) -> None:
        """Buys a missing profile alone, for a question whose answer is."""
        if wanted is not None and not wanted.kept:
            self.buy(wanted, replace(caller, key=None))


@dataclass(frozen=True)
class PaidProfile:
    """A profile that is bought alone: see `PaidRelease`.

    Args:
        wanted: the profile.
        account: which pays.
        engine: which reads.
        releaser: which adds noise.
        replay: which finds what is kept.
    """

    wanted: ProfileRequest
    account: str
    engine: Reader
    releaser: Releaser
    replay: Replay

    @cached_property
    def request(self) -> ChargeRequest:
        """Returns the charge of a profile alone."""
        plan, program = self.wanted.plan, self.wanted.program
        return ChargeRequest(
            accounts=(self.account,),
            event=program.event,
            question=canonical(program.question),
            replay_key=sha256(f"{self.wanted.place} {plan.columns} {plan.by}".encode()).hexdigest(),
            terms=QueryBudget(self.wanted.epsilon, Fraction(0)).text,
            asked=self.wanted.epsilon,
        )

    @property
    def stage(self) -> str:
        """Returns what is planned, in public words."""
        return f"Reading {self.wanted.plan.table} and adding noise"

    def find(self) -> Profile | None:
        """Returns a profile that is kept, if it is as precise."""
        return self.replay.profile(self.wanted.plan, self.wanted.place) if self.wanted.kept else None

    def prepare(self) -> None:
        """Does nothing: the plan was checked."""

    def execute(self, charge: ChargeRun) -> ReleaseOutcome:
        """Reads and adds noise."""
        charge.require_paid(self.wanted.program.event)
        payload = self.wanted.release_profile(self.engine, self.releaser)
        return ReleaseOutcome(event=self.wanted.program.event, replay_key=self.wanted.place, payload=payload)

    def read(self, kept: ChargedRelease) -> Profile | None:
        """Returns the stored profile."""
        return self.replay.unpacked_profile(kept.payload, self.wanted.plan)


def _serves(known: Profile, wanted: ProfilePlan, epsilon: Fraction) -> bool:
    """Returns whether a profile is about all that is asked for, with no more noise."""
    about = set(wanted.columns) <= set(known.plan.columns) and set(wanted.by) <= set(known.plan.by)
    return about and known.epsilon >= epsilon


def _check_column(option: str, name: str, schema: TableSchema) -> None:
    if name not in schema.stored_columns or name in schema.ids:
        hint = f"Its columns are {', '.join(sorted(set(schema.stored_columns) - schema.ids))}."
        raise InvalidParameter(option, name, f"to name a column of {schema.name!r} that is not an id", hint)
