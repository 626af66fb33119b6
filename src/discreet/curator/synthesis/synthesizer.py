"""Makes synthetic tables under the ledger: planned from public facts, paid, and only then are rows read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from discreet import check
from discreet.curator.asking.explanation import caps
from discreet.curator.asking.performer import charged
from discreet.curator.catalog.catalog import Catalog
from discreet.curator.synthesis.synthetic_table import KeptTable, SyntheticTable, checked_rows
from discreet.errors import InternalError, InvalidParameter, QueryFailed
from discreet.lazy import load, pa
from discreet.ledger import OWNER, Book, Receipt, Remaining
from discreet.ledger.tallies import prices
from discreet.measurement.program.execution import Reader, check_readable
from discreet.measurement.releases.releaser import Releaser
from discreet.privacy import Loss
from discreet.privacy.events import Event
from discreet.progress import Progress, stage, telling
from discreet.sql.examples import quoted

if TYPE_CHECKING:
    from discreet.curator.synthesis.synthesis_plan import SynthesisPlan
    from discreet.synthetic import Domain

__all__ = ["SynthesisPrice", "Synthesizer", "SyntheticTable"]

_WHAT = "A synthetic table"


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthesisPrice:
    """What a synthetic table would release and cost, before anything is read.

    Attributes:
        generator: the name of its class.
        domain: what its rows may be.
        event: what would be released.
        cost: what that costs the account; None if its budget is of a kind that cannot pay for it.
        remaining: what the account has left before it.
        notes: what limits and domains mean for the rows.
        free: whether the same is stored, and would be given again for nothing.
        caps: what the caps of the analyst and of the project leave, if they have any.
        refusal: why it would be refused now; None if it would not.
    """

    generator: str
    domain: Domain
    event: Event
    cost: Loss | None
    remaining: Loss
    notes: tuple[str, ...]
    free: bool
    caps: Mapping[str, Loss] = field(default_factory=dict)
    refusal: str | None = None

    def __str__(self) -> str:
        sizes = [f"  {name}: {size} values" for name, size in self.domain.sizes.items()]
        cost = "nothing, it is stored" if self.free else str(self.cost)
        lines = [f"{self.generator} of {len(sizes)} columns", *sizes, f"cost: {cost}; remaining: {self.remaining}"]
        lines += [f"{who}: {left} left" for who, left in self.caps.items()]
        if self.refusal is not None:
            lines.append(f"Asked now, it would be refused. {self.refusal}")
        return "\n".join([*lines, *(f"- {note}" for note in self.notes)])


class Synthesizer:
    """Makes synthetic tables; what one releases is known before it is paid, and what failed stays paid.

    Formal guarantee: the event that was charged describes all that is returned, for units as the account has them: each
    has at most `rows_per_unit` of the rows that are measured, chosen from its own rows alone. Rows are drawn from the
    released model, which is post-processing.

    Args:
        catalog: the tables.
        book: where tables are charged and kept.
        engine: which reads.
        releaser: which has generators add their noise.
        salt: tells the secret by which rows of an account's people are kept.
    """

    def __init__(
        self, catalog: Catalog, book: Book, engine: Reader, releaser: Releaser, *, salt: Callable[[str], str]
    ) -> None:
        self._catalog, self._book, self._engine, self._releaser, self._salt = catalog, book, engine, releaser, salt

    @telling
    def synthesize(
        self,
        question: str,
        *,
        rows: int | None = None,
        analyst: str = OWNER,
        key: str | None = None,
        project: str = "",
        progress: Progress | None = None,  # noqa: ARG002 - it is told all along
        **how: Any,
    ) -> SyntheticTable:
        """Returns made-up rows like those of a table; charged before anything is read.

        The same again gives the stored table for nothing; another number of rows is drawn from the stored model, for
        nothing as well, and is not kept.

        Args:
            question: the name of a protected table, for all columns but ids; or one SELECT of columns.
            rows: how many to make up; None is the private estimate of how many there are.
            analyst: who asks, and pays from their cap.
            key: an idempotency key, as for `ask`.
            project: whose cap it counts against, beside the analyst's and the account's.
            progress: is called with the name of every stage that begins.
            how: epsilon, delta, generator, domain, forbidden, bins, within, rows_per_unit, as `plan` takes them.

        Raises:
            UnsupportedQuery: if a column has no public values, or rows are of several protected tables.
            InvalidParameter: if an argument is outside its domain. All else as for `ask`.
        """
        plan = self.plan(question, analyst=analyst, project=project, **how)
        wanted = checked_rows(rows, len(plan.columns))
        state = self._book.admit(plan.account, analyst, project)
        if not self._book.is_charged(analyst, key):
            known = self._kept(plan)
            if known is not None:
                return self._given(plan, known, wanted, Remaining.of(state.spent, state.budget), None)
        with charged(self._book, plan.request, analyst=analyst, key=key, project=project) as receipt:
            if receipt.repeated:
                return self._given(plan, self._of_charge(receipt), wanted, receipt.left, None)
            payload = self._read_and_fit(plan, receipt, wanted)
            found = self._store(plan, receipt, payload)
            return self._given(plan, found, wanted, receipt.left, receipt.cost)

    def price(self, question: str, *, analyst: str = OWNER, project: str = "", **how: Any) -> SynthesisPrice:
        """Returns what `synthesize` would release and cost; reads nothing, costs nothing. Takes what it takes."""
        plan = self.plan(question, analyst=analyst, project=project, **how)
        account, balance = self._book.account(plan.account), self._book.balance(plan.account)
        free, refusal = self._kept(plan) is not None, None
        if not free:
            refusal = self._book.refusal(account.name, plan.event, analyst=analyst, project=project)
        return SynthesisPrice(
            generator=type(plan.generator).__name__,
            domain=plan.domain,
            event=plan.event,
            cost=prices(plan.event, balance.total, account.neighbours).spent(balance.total),
            remaining=balance.remaining.loss,
            notes=plan.notes,
            free=free,
            caps=caps(self._book, account.name, analyst, project),
            refusal=None if refusal is None else str(refusal),
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
            domain: public values of columns of which none are declared, or others than those, as `Domain` takes them.
            forbidden: combinations of values that cannot occur, as `Domain` takes them.
            bins: into how many bins of equal width declared bounds of numbers are cut; 16 unless it is given.
            within: how numbers get their place within such bins back: "uniform", evenly, or "histogram", by a private
                histogram for which a tenth of the budget is paid.
            rows_per_unit: how many different rows of a unit are kept at most; the noise grows with it.
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
        budget = self._book.admit(account, analyst, project).budget
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

    def _select(self, question: str) -> str:
        """A SELECT as it is; of a table's name, one of all its columns but those that say whose row it is."""
        if len(question.split()) > 1 and question not in self._catalog.schemas:
            return question
        schema = self._catalog.schema(question)
        hidden = schema.ids | set(schema.parts)
        names = [name for name, column in schema.stored.items() if name not in hidden and not column.link]
        if not names:
            raise InvalidParameter("question", question, "to have columns beside ids", "There is nothing to make up.")
        columns = ", ".join(quoted(name) for name in names)
        return f"SELECT {columns} FROM {quoted(schema.name)}"  # noqa: S608 - read by our own parser, names quoted

    def _given(
        self, plan: SynthesisPlan, kept: KeptTable, rows: int | None, remaining: Remaining, cost: Loss | None
    ) -> SyntheticTable:
        """What is kept, with as many rows as are wanted, and what this call is about."""
        if rows is not None and rows != kept.rows:
            kept = KeptTable.drawn(kept.model, rows, self._releaser.bits)
        return SyntheticTable(
            table=pa.table(dict(kept.columns)),
            model=kept.model,
            cost=remaining.loss * 0 if cost is None else cost,
            remaining=remaining,
            event=kept.model.event,
            replayed=cost is None,
            notes=plan.notes,
            private=kept.model.private,
            name=plan.table,
        )

    def _kept(self, plan: SynthesisPlan) -> KeptTable | None:
        """Returns the newest stored table of the same kind."""
        found = (self._read(stored.payload) for stored in reversed(self._book.stored(plan.replay_key)))
        return next((kept for kept in found if kept is not None), None)

    def _read(self, payload: bytes) -> KeptTable | None:
        """Returns a stored table, also if another version of the library would release otherwise.

        It was paid for when it was stored. None if one of the two has seeded noise: what a test released must never
        come back as private.
        """
        kept = KeptTable.from_json(payload)
        return kept if kept.model.private is self._releaser.bits.private else None

    def _read_and_fit(self, plan: SynthesisPlan, receipt: Receipt, rows: int | None) -> str | None:
        """Returns a table as it is kept, made of what was read for a charge.

        Returns:
            None if anything went wrong: causes can depend on data, so all of them are dropped. It uses up one failure
            credit.
        """
        payload: str | None = None
        with suppress(Exception):
            payload = self._learned(plan, receipt, rows)
        if payload is None:
            self._book.fail(receipt)
        return payload

    def _learned(self, plan: SynthesisPlan, receipt: Receipt, rows: int | None) -> str:
        """Returns a table as text; the charge may be one of another version, if it pays for what this one releases."""
        account = self._book.account(plan.account)
        asked, paid = (prices(each, account.budget, account.neighbours) for each in (plan.event, receipt.event))
        if plan.event != receipt.event and not asked.covered(paid):
            raise InternalError("A synthetic table costs more than its charge.")
        stage(f"Reading {plan.reading.table}")
        people = {name: self._engine.read(plan.key_reading(name)) for name in plan.selections}
        coded, texts = plan.coded(self._engine.read(plan.reading), people)
        stage(f"Fitting {type(plan.generator).__name__}")
        kind = load("discreet.synthetic.domain", _WHAT).FrameKind.PYARROW
        how = {"rows_per_unit": plan.rows_per_unit, "kind": kind, "texts": texts}
        model = self._releaser.model(plan.generator, coded, plan.domain, **how)
        if model.event != plan.event or model.private is not self._releaser.bits.private:
            raise InternalError("A generator released something else than it planned.")
        stage("Drawing rows")
        return KeptTable.drawn(model, rows, self._releaser.bits).to_json()

    def _store(self, plan: SynthesisPlan, receipt: Receipt, payload: str | None) -> KeptTable:
        """Keeps a table, durably, and returns what was kept, and nothing beside it.

        Raises:
            QueryFailed: if the charge ended without one.
        """
        if payload is not None and self._book.store_answer(receipt, plan.replay_key, payload):
            return KeptTable.from_json(payload)
        return self._of_charge(receipt)

    def _of_charge(self, receipt: Receipt) -> KeptTable:
        """Returns the table of a charge that has ended.

        Raises:
            QueryFailed: if it ended without one.
        """
        payload = self._book.answer(receipt)
        kept = None if payload is None else self._read(payload)
        if kept is None:
            raise QueryFailed
        return kept
