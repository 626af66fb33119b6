"""A synthetic table before its charge: which rows are read, what they may be, which generator, and what it costs.

Everything here follows from the text, the declarations and what the caller says in public; nothing is read or spent.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, fields, replace
from fractions import Fraction
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check, synthetic
from discreet.curator.catalog.declarations import declaration
from discreet.curator.measurement_plan import QueryBudget
from discreet.curator.paid_release import ChargeRequest
from discreet.curator.synthesis.declared_domain import (
    BINS,
    DomainColumn,
    checked_bins,
    domain_columns,
    given_domains,
    whole_domain,
)
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.hint_text import Hint
from discreet.measurement.probes.probes import read_by
from discreet.measurement.program.execution import Reader, cut_notes, note_rows_without_id
from discreet.measurement.releases.releaser import Releaser
from discreet.mechanisms import PartitionSelection
from discreet.noise import Bits
from discreet.plan.canonical import canonical
from discreet.plan.expressions.calls import call
from discreet.plan.model.nodes import Aggregate, ColumnRef, Key, Output, Question, Relation
from discreet.plan.model.readings import ContributionBounding, Groups, Reading, Statistic
from discreet.plan.model.relations import BaseTable, LinkedTable, children
from discreet.plan.model.schema import TableSchema
from discreet.privacy import ZCDP, ApproxDP, Loss, Neighbours
from discreet.privacy.events import Calibrated, Event
from discreet.sql.training_rows import TrainingRows
from discreet.synthetic import Model
from discreet.synthetic.coded_rows import CodedRows, rows_within_limit
from discreet.synthetic.domain import Domain, FrameKind
from discreet.synthetic.domain.text_keys import is_key
from discreet.synthetic.found_keys import Texts, key_selection, selection_terms, unknown_columns
from discreet.synthetic.generator import Generator
from discreet.synthetic.measurement_log import MOST_ROWS_PER_UNIT

__all__ = ["BINS", "SynthesisPlan", "synthesis"]

VERSION = 1
SEVERAL_ROWS = 2
"""The version of tables of people with several rows, whose equal rows counted once before."""

_KNOWN: dict[str, type[Generator]] = {
    name.lower(): each
    for name in synthetic.__all__
    if isinstance(each := getattr(synthetic, name), type) and issubclass(each, Generator)
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthesisPlan:
    """A synthetic table with everything it is made from.

    Args:
        rows: what is selected.
        columns: how columns are read.
        domain: what rows may be.
        generator: which measures and fits.
        event: what it will release.
        rows_per_unit: how many rows of one unit are kept at most.
        account: which pays.
        schemas: the declared tables by name.
        salt: of the rule by which rows are kept.
        sql: what was asked, for people.
    """

    rows: TrainingRows
    columns: tuple[DomainColumn, ...]
    domain: Domain
    generator: Generator
    event: Event
    rows_per_unit: int
    account: str
    schemas: Mapping[str, TableSchema] = field(repr=False)
    salt: str = field(repr=False)
    sql: str = field(default="", repr=False)

    @property
    def table(self) -> str:
        """Returns the protected table that is read."""
        return self.rows.schema.name

    # ------------------------------------------------------------------------------------------------------- reading

    @property
    def reading(self) -> Reading:
        """Returns how many people have each row of keys and steps; where each may have several, whose they are as well.

        A person with several different rows keeps as many as they may have, by the keyed rule of groups. Equal rows of
        one person are counted up to the limit, and `encode_rows` keeps no more than it of all of them.
        """
        keys, most = tuple(column.key for column in self.columns), self.rows_per_unit
        unit = self.rows.schema.unit
        limit = None if unit is None else ContributionBounding(unit=unit, groups=most, rows=most, salt=self.salt)
        return Reading(
            table=self.table,
            source=self.rows.relation,
            keys=(*self._whose, *keys),
            bounding=limit,
            statistics=(Statistic(kind="rows"),),
        )

    @property
    def _whose(self) -> tuple[ColumnRef, ...]:
        """Returns the id of whose row it is, as the engine counts it, if a person may have several."""
        unit = self.rows.schema.unit
        return (ColumnRef(unit, self.rows.schema.columns[unit].type),) if unit and self.rows_per_unit > 1 else ()

    def key_reading(self, name: str) -> Reading:
        """Returns how many people have each text of a column whose keys are to be found.

        A person with more different texts than they may have rows keeps as many, by the same keyed rule.
        """
        (key,) = (column.key for column in self.columns if column.name == name)
        known, reading = call("not", call("is_null", key)), self.reading
        limit = None if reading.bounding is None else replace(reading.bounding, rows=1)
        return replace(reading, keys=(key,), where=known, bounding=limit, statistics=(Statistic(kind="units"),))

    def encode_rows(self, groups: Groups, people: Mapping[str, Groups]) -> tuple[CodedRows, dict[str, Texts]]:
        """Returns all rows as fine codes of the domain, and the texts of columns whose keys are to be found.

        Args:
            groups: what was read; no row is one like any other.
            people: what was read of the texts of such columns.
        """
        whose, *values = list(zip(*groups, strict=True)) if groups else [()] * len(self.reading.keys)
        if not self._whose:
            values = [whose, *values]
        decoded = {column.name: column.decode(each) for column, each in zip(self.columns, values, strict=True)}
        texts = {name: _texts(decoded[name], found) for name, found in people.items()}
        decoded |= {name: found.numbers(decoded[name]).tolist() for name, found in texts.items()}
        counts = np.array([count for (count,) in groups.values()], dtype=np.int64)
        codes = self.domain.codes(decoded, fine=True)
        sizes, rows = self.domain.fine_sizes, np.repeat(codes, counts, axis=0)
        if self._whose:
            owners = np.repeat(unit_names(whose, self.salt), counts)
            rows = rows_within_limit(owners, rows, self.rows_per_unit)
        return CodedRows(sizes | {name: found.size for name, found in texts.items()}, rows), texts

    def learn_model(self, engine: Reader, releaser: Releaser) -> Model:
        """Reads what was paid for, and returns a model of it."""
        people = [engine.read(self.key_reading(name)) for name in self.selections]
        model: Model = releaser.model(self, [engine.read(self.reading), *people])
        return model

    def fit(self, groups: Sequence[Groups], bits: Bits) -> Model:
        """Fits the generator to what was read: all rows, then the texts of columns whose keys are to be found."""
        rows, *people = groups
        coded, texts = self.encode_rows(rows, dict(zip(self.selections, people, strict=True)))
        return self.generator.fit_coded(
            coded, self.domain, rows_per_unit=self.rows_per_unit, kind=FrameKind.PYARROW, texts=texts, bits=bits
        )

    # ------------------------------------------------------------------------------------------------------ identity

    @property
    def question(self) -> str:
        """Returns what is asked, as the ledger keeps it."""
        made: dict[str, Any] = {"generator": type(self.generator).__name__, "parameters": _parameters(self.generator)}
        version = VERSION if self.rows_per_unit == 1 else SEVERAL_ROWS
        made |= {"domain": json.loads(self.domain.to_json()), "version": version}
        form = {**json.loads(canonical(self._reading_query)), "synthesize": made}
        return json.dumps(form, sort_keys=True, separators=(",", ":"), allow_nan=False)

    @property
    def replay_key(self) -> str:
        """Returns the key under which it is kept: of rows, generator, domain, declarations, versions and relation."""
        tables = [[declaration(table), table.version] for table in read_by(self._reading_query, self.schemas)]
        parts = [self.question, tables, self.rows.schema.neighbours.value, self.rows_per_unit]
        return f"synthesize:{sha256(json.dumps(parts).encode()).hexdigest()}"

    @property
    def charge(self) -> Event:
        """Returns what the account is charged with: the noise, and the epsilon and the delta of the whole."""
        return calibrated_event(self.generator, self.event)

    @property
    def request(self) -> ChargeRequest:
        """Returns the charge; what it may spend is among the generator's parameters, which the question holds."""
        return ChargeRequest(
            accounts=(self.account,),
            event=self.charge,
            question=self.question,
            replay_key=self.replay_key,
            terms="",
            sql=self.sql,
            asked=Fraction(self.generator.epsilon),
            periods=self.rows.periods,
        )

    @property
    def _reading_query(self) -> Question:
        """Returns the reading as a question, which is never answered as one."""
        return Question(
            table=self.table,
            source=self.rows.relation,
            keys=tuple(Key(f"#{place}", column.key) for place, column in enumerate(self.columns)),
            aggregates=(Aggregate(name="#n", kind="count"),),
            outputs=tuple(
                Output(column.name, ColumnRef(column.name, column.column.type)) for column in self.rows.columns
            ),
        )

    @property
    def selections(self) -> dict[str, PartitionSelection]:
        """Returns how keys are found, by column."""
        terms = selection_terms(self.domain, self.generator.epsilon, self.generator.delta)
        relation = self.generator.neighbours
        return {
            name: key_selection(each, neighbours=relation, rows_per_unit=self.rows_per_unit)
            for name, each in terms.items()
        }

    @property
    def notes(self) -> tuple[str, ...]:
        """Returns what limits and domains mean for the table; functions of public facts."""
        said = []
        if self.rows.schema.unit is not None:
            people = self.rows.schema.people or "unit"
            said.append(f"At most {self.rows_per_unit} row(s) per {people} are counted.")
            said += cut_notes(self.rows.relation, people)
            said.append(note_rows_without_id(people, "counted"))
        said += [f"{name}: {detail}." for name, detail in self.domain.details.items() if detail != "the declared value"]
        said += [
            f"{name}: a key is found if the noisy number of people who have it reaches {selection.threshold}."
            for name, selection in self.selections.items()
        ]
        said.append("A value that is missing, or not among a column's public values, is None.")
        return tuple(said)


def synthesis(
    rows: TrainingRows,
    generator: Any,
    terms: tuple[check.Number | None, check.Number | None],
    budget: Loss,
    *,
    domain: Any,
    forbidden: Iterable[Mapping[str, Any]],
    bins: int,
    within: str,
    rows_per_unit: int,
    account: str,
    schemas: Mapping[str, TableSchema],
    salt: str,
) -> SynthesisPlan:
    """Returns a synthetic table before its charge.

    Args:
        rows: what is selected.
        generator: the name of one, or one.
        terms: epsilon and delta, as they were given.
        budget: of the account.
        domain: what is public in addition to declarations.
        forbidden: combinations of values that cannot occur.
        bins: into how many declared bounds of numbers are cut.
        within: how numbers get their place within such bins back.
        rows_per_unit: how many rows of one unit are kept at most.
        account: which pays.
        schemas: the declared tables by name.
        salt: of the rule by which rows are kept.

    Raises:
        UnsupportedQuery: if rows are made of several protected tables, or nothing public is known of a column.
        InvalidParameter: if the generator, its budget, the domain or a limit is refused.
    """
    _check_one_table(rows, schemas)
    most = _limit(rows, rows_per_unit)
    columns = domain_columns(rows, given_domains(domain), checked_bins(bins), within)
    known = whole_domain(columns, domain, forbidden)
    chosen = generator_of(generator, terms, budget, rows.schema.neighbours)
    _check_payable(known, budget)
    plan = SynthesisPlan(
        rows=rows,
        columns=columns,
        domain=known,
        generator=chosen,
        event=chosen.plan_event(known),
        rows_per_unit=most,
        account=account,
        schemas=schemas,
        salt=salt,
    )
    _ = plan.selections  # a limit that is too large for the budget is refused now
    return plan


def _check_payable(domain: Domain, budget: Loss) -> None:
    """Refuses to find keys for an account without any delta: a key that one person has could be shown."""
    unknown = list(unknown_columns(domain))
    if unknown and not (isinstance(budget, ApproxDP | ZCDP) and budget.delta):
        hint = "Finding keys has a chance delta of showing one that a single person has. Declare them: Keys([...])."
        raise InvalidParameter(f"domain of {unknown[0]}", "UnknownKeys", "to be paid from a budget with a delta", hint)


def unit_names(units: Sequence[Any], salt: str) -> NDArray[np.str_]:
    """Returns a text for each id that an engine gave: of different ids different ones, mixed with an account secret.

    The rule that keeps some rows of a unit ranks them by it; ids are counted by the engine's own rule.
    """
    return np.array([sha256(f"{salt} {unit!a}".encode()).hexdigest() for unit in units], dtype=np.str_)


def _texts(values: Iterable[Any], people: Groups) -> Texts:
    """Returns the texts of a column, and how many people each counts for."""
    units = {str(text): count for (text,), (count,) in people.items() if is_key(text)}
    texts = tuple(sorted({value for value in values if is_key(value)} | set(units)))
    return Texts(texts, np.array([units.get(text, 0) for text in texts], dtype=np.int64))


def generator_of(
    given: Any, terms: tuple[check.Number | None, check.Number | None], budget: Loss, neighbours: Neighbours
) -> Generator:
    """Returns a generator under the relation of an account, with a budget of its own or with the terms given.

    Raises:
        InvalidParameter: if it is none of this library, has a seed, or two budgets, or there is no delta to pay with.
    """
    epsilon, delta = terms
    if isinstance(given, str):
        if given.lower() not in _KNOWN:
            raise InvalidParameter("generator", given, f"to be one of {', '.join(_KNOWN)}")
        found = QueryBudget.of(epsilon, delta, budget)
        if not found.delta:
            hint: str = Hint("Generators add normal noise. Pass e.g. {delta:1e-9}. A pure budget cannot pay for it.")
            raise InvalidParameter("delta", delta or 0, "to be positive", hint)
        return _KNOWN[given.lower()](epsilon=found.epsilon, delta=found.delta, neighbours=neighbours)
    if type(given) not in _KNOWN.values():
        names = ", ".join(each.__name__ for each in _KNOWN.values())
        raise InvalidParameter("generator", type(given).__name__, f"to be a name, or one of {names}")
    if epsilon is not None or delta is not None:
        raise InvalidParameter("epsilon", epsilon, "to be left out", "The generator already has both.")
    if given.random_state is not None:
        raise InvalidParameter("random_state", given.random_state, "to be None", "A seeded fit is not private.")
    if Neighbours(given.neighbours) not in (Neighbours.ADD_REMOVE, neighbours):
        hint = f"Leave it out, or pass neighbours={neighbours.value!r}."
        raise InvalidParameter("neighbours", given.neighbours, "to be the relation of the account", hint)
    changed: Generator = replace(given, neighbours=neighbours)
    return changed


def _parameters(generator: Generator) -> dict[str, Any]:
    """Returns all parameters as plain data; numbers as exact fractions."""
    found = {one.name: getattr(generator, one.name) for one in fields(generator)}
    exact = {name: str(check.positive(**{name: found[name]})) for name in ("epsilon", "delta")}
    written = {"neighbours": Neighbours(generator.neighbours).value, **exact}
    return {**json.loads(json.dumps(found, default=str)), **written}


def _limit(rows: TrainingRows, rows_per_unit: int) -> int:
    most = check.integer(rows_per_unit=rows_per_unit, at_least=1, at_most=MOST_ROWS_PER_UNIT)
    if most > 1 and rows.schema.unit is None:
        hint = "Each row of this table is a separate person."
        raise InvalidParameter("rows_per_unit", rows_per_unit, "to be 1 without a unit", hint)
    return most


def _check_one_table(rows: TrainingRows, schemas: Mapping[str, TableSchema]) -> None:
    """Refuses rows of several protected tables.

    A person's rows of two tables multiply when they are joined, and what was kept of them would be a random piece of
    neither: people and their events need a model of both.
    """
    names = sorted({name for name in _named_tables(rows.relation) if not schemas[name].public})
    if len(names) > 1:
        reason = f"A synthetic table is made from one protected table, but these rows are of {' and '.join(names)}."
        hint = "Synthesize each one separately, for a charge each: {count}. Their rows will not belong to each other."
        rows.source.refuse(reason, hint)


def _named_tables(relation: Relation) -> Iterator[str]:
    """Yields the tables that a text names; not those that only say whose rows they are."""
    if isinstance(relation, BaseTable | LinkedTable):
        yield relation.name
        return
    for child in children(relation):
        yield from _named_tables(child)


def calibrated_event(generator: Generator, event: Event) -> Event:
    """Returns what a generator releases, with the epsilon and the delta that all of it together is calibrated to."""
    return Calibrated(event, generator.epsilon, generator.delta)
