"""Buys profiles of tables: planned from declarations, charged, read with noise, kept, and found again for nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from fractions import Fraction
from hashlib import sha256

from discreet.check import Number, positive
from discreet.curator.asking.performer import charged
from discreet.curator.catalog.catalog import Catalog
from discreet.curator.catalog.declarations import Terms
from discreet.curator.measurement_plan import ChargeRequest, MeasurementPlan
from discreet.curator.replay.replay import Replay, profile_key
from discreet.curator.replay.stored_releases import pack
from discreet.errors import InvalidParameter, QueryFailed
from discreet.ledger import Book, Receipt
from discreet.measurement.profile.parts import ProfilePlan, chosen
from discreet.measurement.profile.profile import Profile
from discreet.measurement.program.execution import Reader, run
from discreet.measurement.releases.releaser import Releaser
from discreet.plan.canonical import canonical
from discreet.plan.model.schema import TableSchema
from discreet.privacy import events

KeySet = str | Sequence[str]
"""A set of keys: a column, or several."""


class Profiler:
    """Buys profiles under the ledger.

    Args:
        catalog: the tables.
        book: where profiles are charged and kept.
        engine: which reads.
        releaser: which adds noise.
        replay: which finds what is kept.
        salt: tells the secret by which rows of an account's people are kept.
    """

    def __init__(
        self,
        catalog: Catalog,
        book: Book,
        engine: Reader,
        releaser: Releaser,
        *,
        replay: Replay,
        salt: Callable[[str], str],
    ) -> None:
        self._catalog, self._book, self._engine, self._releaser = catalog, book, engine, releaser
        self._replay, self._salt = replay, salt

    def plan(self, table: str, columns: Sequence[str] | None, by: Sequence[KeySet] | None) -> ProfilePlan:
        """Returns what a profile would count.

        Raises:
            UnknownTable: if no such table is protected.
            InvalidParameter: if something is not a column of it, or cannot be counted.
        """
        schema = self._catalog.schema(table)
        sets = None if by is None else [(one,) if isinstance(one, str) else tuple(one) for one in by]
        for option, names in (("columns", columns or ()), ("by", [name for one in sets or () for name in one])):
            for name in names:
                _check_column(option, name, schema)
        wanted, keys = chosen(schema, columns, sets)
        salt = self._salt(self._catalog.account_of(table))
        return ProfilePlan(table=schema.name, schemas=self._catalog.schemas, columns=wanted, by=keys, salt=salt)

    def buy(self, plan: ProfilePlan, terms: Terms, *, analyst: str, key: str | None, project: str) -> Profile:
        """Returns a profile that was paid now, or one that is kept and as good; see `Curator.profile`."""
        account = self._catalog.account_of(plan.table)
        self._book.admit(account, analyst, project)
        if not self._book.is_charged(analyst, key):
            known = self._replay.profile(plan.schema, plan.schemas, plan.salt)
            if known is not None and _serves(known, plan, terms):
                return known
        with charged(self._book, self.request(plan, terms), analyst=analyst, key=key, project=project) as receipt:
            if not receipt.repeated:
                self._measure(plan, terms, receipt)
            found = self._kept(plan, receipt)
        if found is None:
            raise QueryFailed
        return found

    def buy_first(
        self, measurement: MeasurementPlan, terms: Terms, epsilon: Number, *, analyst: str, project: str
    ) -> None:
        """Buys a profile of the table that a question is about, if both together can be paid.

        Raises:
            InsufficientBudget, NotPermitted: if they cannot; nothing was spent.
        """
        plan = self.plan(measurement.plan.table, None, None)
        own = Terms(positive(profile=epsilon), Fraction(0))
        both = events.Composed([self.request(plan, own).event, measurement.price(terms)])
        known = self._replay.profile(plan.schema, plan.schemas, plan.salt)
        if known is not None and _serves(known, plan, own):
            return
        refusal = self._book.refusal(measurement.account, both, analyst=analyst, project=project)
        if refusal is not None:
            raise refusal
        self.buy(plan, own, analyst=analyst, key=None, project=project)

    def request(self, plan: ProfilePlan, terms: Terms) -> ChargeRequest:
        """Returns the charge of a profile."""
        program = plan.program(terms.epsilon)
        return ChargeRequest(
            account=self._catalog.account_of(plan.table),
            event=program.event,
            question=canonical(program.question),
            replay_key=sha256(f"{profile_key(plan.schema)} {plan.columns} {plan.by}".encode()).hexdigest(),
            terms=terms.text,
        )

    def _measure(self, plan: ProfilePlan, terms: Terms, receipt: Receipt) -> None:
        """Reads and keeps a profile; causes of a failure can depend on data, so all of them are dropped."""
        payload: str | None = None
        with suppress(Exception):
            released = run(plan.program(terms.epsilon), self._engine, self._releaser)
            about = {"profile": {"columns": list(plan.columns), "by": [list(one) for one in plan.by]}}
            payload = pack(released, terms, private=self._releaser.bits.private, beside=about)
        if payload is None:
            self._book.fail(receipt)
        else:
            self._book.store_answer(receipt, profile_key(plan.schema), payload)

    def _kept(self, plan: ProfilePlan, receipt: Receipt) -> Profile | None:
        payload = self._book.answer(receipt)
        return None if payload is None else self._replay.unpacked_profile(payload, plan.schema, plan.schemas, plan.salt)


def _serves(known: Profile, wanted: ProfilePlan, terms: Terms) -> bool:
    """Whether a profile is about all that is asked for, with no more noise."""
    about = set(wanted.columns) <= set(known.plan.columns) and set(wanted.by) <= set(known.plan.by)
    return about and known.epsilon >= terms.epsilon


def _check_column(option: str, name: str, schema: TableSchema) -> None:
    if name not in schema.stored or name in schema.ids:
        hint = f"Its columns are {', '.join(sorted(set(schema.stored) - schema.ids))}."
        raise InvalidParameter(option, name, f"to name a column of {schema.name!r} that is no id", hint)
