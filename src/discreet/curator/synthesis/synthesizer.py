"""Makes synthetic tables under the ledger: planned from public facts, paid, and only then are rows read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from discreet import check
from discreet.curator.asking.explanation import caps
from discreet.curator.catalog.catalog import Catalog
from discreet.curator.paid_release import (
    ChargedRelease,
    ChargeRequest,
    ChargeRun,
    PricedResult,
    ReleaseOutcome,
    release_once,
)
from discreet.curator.synthesis.linked_tables import KeptTables, SyntheticTables, most_people
from discreet.curator.synthesis.synthetic_table import KeptTable, SyntheticTable, checked_rows, most_rows
from discreet.dataclass import dataclass
from discreet.errors import InternalError, InvalidParameter
from discreet.hint_text import Hint
from discreet.lazy import load, pa
from discreet.ledger import OWNER, Caller, Ledger
from discreet.ledger.cost import Cost, cost_now
from discreet.ledger.tallies import RemainingBudget
from discreet.measurement.program.execution import Reader, check_readable
from discreet.measurement.releases.releaser import Releaser
from discreet.privacy.events import Event
from discreet.progress import Progress, stage, telling
from discreet.requests.refused_budgets import refusal_text
from discreet.sql.examples import quote_name

if TYPE_CHECKING:
    from discreet.curator.synthesis.linked_plan import LinkedPlan
    from discreet.curator.synthesis.synthesis_plan import SynthesisPlan
    from discreet.synthetic import Domain

    AnyPlan: TypeAlias = SynthesisPlan | LinkedPlan

__all__ = ["SynthesisPrice", "Synthesizer", "SyntheticTable", "SyntheticTables"]

TableKind = TypeVar("TableKind", KeptTable, KeptTables)

_WHAT = "A synthetic table"


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthesisPrice:
    """The price of a synthetic table: what it would release and cost, before anything is read.

    Attributes:
        generator: the name of its class.
        domain: what its rows may be.
        event: what would be released.
        cost: what that costs the account.
        remaining: what the account has left before it.
        notes: what limits and domains mean for the rows.
        free: whether the same is stored, and would be given again for nothing.
        caps: what the caps of the analyst and of the project leave, if they have any.
        refusal: why it would be refused now; None if it would not.
    """

    generator: str
    domain: Domain
    event: Event
    cost: Cost
    remaining: RemainingBudget
    notes: tuple[str, ...]
    free: bool
    caps: Mapping[str, RemainingBudget] = field(default_factory=dict)
    refusal: str | None = None

    def __str__(self) -> str:
        sizes = [f"  {name}: {size} values" for name, size in self.domain.sizes.items()]
        cost = "nothing, it is stored" if self.free else str(self.cost)
        lines = [f"{self.generator} of {len(sizes)} columns", *sizes, f"cost: {cost}; remaining: {self.remaining}"]
        lines += [f"{who}: {left} left" for who, left in self.caps.items()]
        if self.refusal is not None:
            lines.append(f"It would be refused now. {self.refusal}")
        return "\n".join([*lines, *(f"- {note}" for note in self.notes)])


class Synthesizer:
    """Makes synthetic tables; what one releases is known before it is paid, and what failed stays paid.

    Formal guarantee: the event that was charged describes all that is returned, for units as the account has them: each
    has at most `rows_per_unit` of the rows that are measured, chosen from its own rows alone. Rows are drawn from the
    released model, which is post-processing.

    Args:
        catalog: the tables.
        ledger: where tables are charged and kept.
        engine: which reads.
        releaser: which has generators add their noise.
        salt: returns the secret by which rows of an account's people are kept.
    """

    def __init__(
        self, catalog: Catalog, ledger: Ledger, engine: Reader, releaser: Releaser, *, salt: Callable[[str], str]
    ) -> None:
        self._catalog, self._ledger, self._engine, self._releaser, self._salt = catalog, ledger, engine, releaser, salt

    @telling
    def synthesize(
        self,
        question: str,
        *,
        rows: int | None = None,
        analyst: str = OWNER,
        key: str | None = None,
        project: str = "",
        progress: Progress | None = None,  # noqa: ARG002 - the decorator reports to it
        **how: Any,
    ) -> SyntheticTable:
        """Returns synthetic rows like those of a table; charged before anything is read.

        The same again gives the stored table for nothing; another number of rows is drawn from the stored model, for
        nothing as well, and is not kept.

        Args:
            question: the name of a protected table, for all columns but ids; or one SELECT of columns.
            rows: how many to make up; None is the private estimate of how many there are.
            analyst: who asks, and pays from their cap.
            key: an idempotency key, as for `ask`.
            project: whose cap it counts against, in addition to the analyst's and the account's.
            progress: is called with the name of every stage that begins.
            how: epsilon, delta, generator, domain, forbidden, bins, within, rows_per_unit, as `plan` takes them.

        Raises:
            UnsupportedQuery: if a column has no public values, or rows are of several protected tables.
            InvalidParameter: if an argument is outside its domain. All else as for `ask`.
        """
        plan = self.plan(question, analyst=analyst, project=project, **how)
        wanted = checked_rows(rows, most_rows(len(plan.columns)))

        def draw(model: Any) -> KeptTable:
            return KeptTable.sample_from(model, wanted, self._releaser.bits)

        def show(bought: PricedResult[KeptTable]) -> SyntheticTable:
            return self._build_table(plan, bought, wanted)

        caller = Caller(analyst=analyst, project=project, key=key)
        return release_once(self._ledger, self._make_paid_synthesis(plan, KeptTable, draw), caller, show)

    @telling
    def synthesize_tables(
        self,
        people: str,
        events: str,
        *,
        rows: int | None = None,
        analyst: str = OWNER,
        key: str | None = None,
        project: str = "",
        progress: Progress | None = None,  # noqa: ARG002 - the decorator reports to it
        **how: Any,
    ) -> SyntheticTables:
        """Returns synthetic people and their events, linked by a synthetic key; charged before anything is read.

        The same again gives the stored tables for nothing; another number of people is drawn from the stored models,
        for nothing as well, and is not kept.

        Args:
            people: the table with a row of attributes for each, by its name or as one SELECT of columns.
            events: the table of their events, of the same account.
            rows: how many people to make up; None is the private estimate of how many there are.
            analyst: who asks, and pays from their cap.
            key: an idempotency key, as for `ask`.
            project: whose cap it counts against, in addition to the analyst's and the account's.
            progress: is called with the name of every stage that begins.
            how: as `plan_tables` takes it.

        Raises:
            UnsupportedQuery: if a column has no public values, or a SELECT is of several protected tables.
            InvalidParameter: if the tables are of different accounts or people, or an argument is outside its domain.
                All else as for `ask`.
        """
        plan = self.plan_tables(people, events, analyst=analyst, project=project, **how)
        wanted = checked_rows(rows, most_people(plan.linked))

        def draw(model: Any) -> KeptTables:
            return KeptTables.sample_from(model, plan.key, wanted, self._releaser.bits)

        def show(bought: PricedResult[KeptTables]) -> SyntheticTables:
            kept, left = bought.result, bought.remaining
            if wanted is not None and wanted != kept.rows:
                kept = draw(kept.model)
            return SyntheticTables(
                people=pa.table(dict(kept.people)),
                events=pa.table(dict(kept.events)),
                key=plan.key,
                names=plan.linked.names,
                model=kept.model,
                cost=bought.paid,
                remaining=left,
                event=kept.model.event,
                replayed=bought.cost is None,
                notes=plan.notes,
                private=kept.model.private,
            )

        caller = Caller(analyst=analyst, project=project, key=key)
        return release_once(self._ledger, self._make_paid_synthesis(plan, KeptTables, draw), caller, show)

    def _make_paid_synthesis(
        self, plan: AnyPlan, keeps: type[TableKind], draw: Callable[[Any], TableKind]
    ) -> PaidSynthesis[TableKind]:
        return PaidSynthesis(plan, keeps, draw, self._ledger, self._engine, self._releaser)

    def price(
        self, question: str, events: str | None = None, *, analyst: str = OWNER, project: str = "", **how: Any
    ) -> SynthesisPrice:
        """Returns what `synthesize`, or with `events` `synthesize_tables`, would release and cost.

        Reads nothing, costs nothing. Takes what they take.
        """
        if events is not None:
            linked = self.plan_tables(question, events, analyst=analyst, project=project, **how)
            return self._price(linked, self._find_stored_table(linked, KeptTables), analyst=analyst, project=project)
        plan = self.plan(question, analyst=analyst, project=project, **how)
        return self._price(plan, self._find_stored_table(plan, KeptTable), analyst=analyst, project=project)

    def _price(self, plan: AnyPlan, kept: object | None, *, analyst: str, project: str) -> SynthesisPrice:
        account, periods = self._ledger.account(plan.account), plan.request.periods
        state = self._ledger.admit(plan.account, analyst, periods=periods)
        free, refusal = kept is not None, None
        if not free:
            whose = {"analyst": analyst, "project": project}
            refusal = self._ledger.refusal(account.name, plan.charge, periods=periods, **whose)
        return SynthesisPrice(
            generator=type(plan.generator).__name__,
            domain=plan.domain,
            event=plan.event,
            cost=cost_now(account, state, plan.charge, plan.request.asked),
            remaining=state.remaining,
            notes=plan.notes,
            free=free,
            caps=caps(self._ledger, account.name, analyst, project),
            refusal=refusal_text(refusal, pure=False),
        )

    def plan(
        self,
        question: str,
        *,
        epsilon: check.Number | None = None,
        delta: check.Number | None = None,
        generator: Any = "aim",
        domain: Any = None,
        forbidden: Iterable[Mapping[str, Any]] = (),
        bins: int | None = None,
        within: str = "uniform",
        rows_per_unit: int = 1,
        analyst: str = OWNER,
        project: str = "",
    ) -> SynthesisPlan:
        """Returns a synthetic table with everything it is made from.

        Args:
            question: the name of a protected table, or one SELECT of columns.
            epsilon: what the table may cost; left out if the generator has one.
            delta: its chance of more; a hundredth of the account's delta unless it is given.
            generator: "aim", "mst", "independent", or one of `discreet.synthetic`.
            domain: public values of columns that declare none, or others than those declared, as `Domain` takes them.
            forbidden: combinations of values that cannot occur, as `Domain` takes them.
            bins: into how many bins of equal width declared bounds of numbers are cut; 16 unless it is given.
            within: how numbers get their place within such bins back: "uniform", evenly, or "histogram", by a private
                histogram for which a tenth of the budget is paid.
            rows_per_unit: how many rows of a unit are kept at most; the noise grows with it.
            analyst: who asks.
            project: whose cap it counts against.

        Raises:
            UnsupportedQuery: if the rows cannot be synthesized privately.
            InvalidParameter: if an argument is refused.
            NotPermitted: if the analyst may not ask.
        """
        stage("Planning")
        plans = load("discreet.curator.synthesis.synthesis_plan", _WHAT)
        text = self._select(check.instance(str, question=question))
        rows = self._catalog.parse_rows(text)
        account = self._catalog.account_of(rows.schema.name)
        budget = self._ledger.admit(account, analyst, project).budget
        found: SynthesisPlan = plans.synthesis(
            rows,
            generator,
            (epsilon, delta),
            budget,
            domain=domain,
            forbidden=forbidden,
            bins=plans.BINS if bins is None else bins,
            within=within,
            rows_per_unit=rows_per_unit,
            account=account,
            schemas=self._catalog.schemas,
            salt=self._salt(account),
        )
        for reading in (found.reading, *map(found.key_reading, found.selections)):
            check_readable(reading, self._catalog.schemas)  # what an engine would refuse must not be paid for
        return replace(found, sql=text)

    def plan_tables(
        self,
        people: str,
        events: str,
        *,
        domain: Mapping[str, Any] | None = None,
        forbidden: Mapping[str, Iterable[Mapping[str, Any]]] | None = None,
        rows_per_unit: int | None = None,
        **how: Any,
    ) -> LinkedPlan:
        """Returns two synthetic tables of the same people with everything they are made from.

        Args:
            people: as for `synthesize_tables`.
            events: as for `synthesize_tables`.
            domain: for each of the two tables, by its name, what `plan` takes.
            forbidden: likewise: rules about columns of one table.
            rows_per_unit: how many events of a unit are kept at most, and drawn; the noise grows with it. As many as
                the table of events was declared with, unless it is given.
            how: epsilon, delta, generator, bins, within, analyst, project, as `plan` takes them.

        Raises:
            UnsupportedQuery: if the rows of one cannot be synthesized privately.
            InvalidParameter: if an argument is refused, or the tables are not of the same people.
            NotPermitted: if the analyst may not ask.
        """
        linked = load("discreet.curator.synthesis.linked_plan", _WHAT)
        names = [self._table(check.instance(str, people=people)), self._table(check.instance(str, events=events))]
        domains, rules = _by_table("domain", domain, names), _by_table("forbidden", forbidden, names)
        schema = self._catalog.schemas[names[1]]
        if rows_per_unit is None and schema.private_limits is not None and not schema.private_limits.found:
            hint = "Pass {rows_per_unit}, or ask a query first, so that the limits are chosen privately."
            raise InvalidParameter("rows_per_unit", None, "to be given while limits are not known", Hint(hint))
        limit = schema.limits.rows if rows_per_unit is None else rows_per_unit
        plans = [
            self.plan(text, domain=domains.get(name), forbidden=rules.get(name, ()), rows_per_unit=most, **how)
            for text, name, most in ((people, names[0], 1), (events, names[1], limit))
        ]
        found: LinkedPlan = linked.linked_plan(*plans)
        for reading in found.readings:
            check_readable(reading, self._catalog.schemas)
        return found

    def _table(self, question: str) -> str:
        """Returns the protected table that a question is about."""
        return self._catalog.parse_rows(self._select(question)).schema.name

    def _select(self, question: str) -> str:
        """Returns a SELECT as it is; of a table's name, one of all its columns but those that say whose row it is."""
        if len(question.split()) > 1 and question not in self._catalog.schemas:
            return question
        schema = self._catalog.schema(question)
        hidden = schema.ids | set(schema.parts)
        names = [name for name, column in schema.stored_columns.items() if name not in hidden and not column.link]
        if not names:
            hint = "There is nothing to synthesize."
            raise InvalidParameter("question", question, "to have columns besides ids", hint)
        columns = ", ".join(quote_name(name) for name in names)
        return f"SELECT {columns} FROM {quote_name(schema.name)}"  # noqa: S608 - read by our own parser, names quoted

    def _build_table(self, plan: SynthesisPlan, bought: PricedResult[KeptTable], rows: int | None) -> SyntheticTable:
        """Returns what is kept, with as many rows as are wanted, and what this call is about."""
        kept, remaining = bought.result, bought.remaining
        if rows is not None and rows != kept.rows:
            kept = KeptTable.sample_from(kept.model, rows, self._releaser.bits)
        return SyntheticTable(
            table=pa.table(dict(kept.columns)),
            model=kept.model,
            cost=bought.paid,
            remaining=remaining,
            event=kept.model.event,
            replayed=bought.cost is None,
            notes=plan.notes,
            private=kept.model.private,
            name=plan.table,
        )

    def _find_stored_table(self, plan: AnyPlan, keeps: type[TableKind]) -> TableKind | None:
        """Returns the newest stored table of the same kind."""
        return newest(self._ledger, plan, keeps, private=self._releaser.bits.private)


@dataclass(frozen=True)
class PaidSynthesis(Generic[TableKind]):
    """A synthetic table, or two linked ones, that are made once: see `PaidRelease`.

    Args:
        plan: what is made.
        keeps: what is kept of it.
        draw: draws rows from a released model.
        ledger: where tables are kept.
        engine: which reads.
        releaser: which has generators add their noise.
    """

    plan: AnyPlan
    keeps: type[TableKind]
    draw: Callable[[Any], TableKind]
    ledger: Ledger
    engine: Reader
    releaser: Releaser

    @cached_property
    def request(self) -> ChargeRequest:
        """Returns the charge of the table."""
        return self.plan.request

    @property
    def stage(self) -> str:
        """Returns what is planned, in public words."""
        return f"Reading {self.plan.table} and fitting {type(self.plan.generator).__name__}"

    def find(self) -> TableKind | None:
        """Returns the newest stored table of the same kind."""
        return newest(self.ledger, self.plan, self.keeps, private=self.releaser.bits.private)

    def prepare(self) -> None:
        """Does nothing: the plan was checked."""

    def execute(self, charge: ChargeRun) -> ReleaseOutcome:
        """Reads and fits; the charge may be one of another version, if it pays for what this one releases."""
        plan = self.plan
        charge.require_paid(plan.charge)
        model = plan.learn_model(self.engine, self.releaser)
        if model.event != plan.event or model.private is not self.releaser.bits.private:
            raise InternalError("A generator released something else than it planned.")
        return ReleaseOutcome(event=plan.charge, replay_key=plan.replay_key, payload=self.draw(model).to_json())

    def read(self, kept: ChargedRelease) -> TableKind | None:
        """Returns the stored table."""
        return _table(self.keeps, kept.payload, private=self.releaser.bits.private)


def newest(ledger: Ledger, plan: AnyPlan, keeps: type[TableKind], *, private: bool) -> TableKind | None:
    """Returns the newest stored table of the same kind."""
    found = (
        _table(keeps, stored.payload, private=private) for stored in reversed(ledger.read_answers(plan.replay_key))
    )
    return next((kept for kept in found if kept is not None), None)


def _table(keeps: type[TableKind], payload: bytes, *, private: bool) -> TableKind | None:
    """Returns a stored table, also if another version of the library would release otherwise.

    It was paid for when it was stored. None if one of the two has seeded noise: what a test released must never come
    back as private.
    """
    kept = keeps.from_json(payload)
    return kept if kept.model.private is private else None


def _by_table(role: str, given: Any, names: Sequence[str]) -> Mapping[str, Any]:
    """Returns what is said for each of two tables."""
    told = {} if given is None else given
    if not isinstance(told, Mapping) or not set(told) <= set(names):
        hint = f"Its keys are the names of the tables, {names[0]!r} and {names[1]!r}."
        raise InvalidParameter(role, told, f"to be a dict by table, of {' and '.join(names)}", hint)
    return told
