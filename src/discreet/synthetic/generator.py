"""Generators share a budget, a plan before any row is read, and the way from a frame to a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Self

from discreet import check
from discreet.check import Number
from discreet.dataclass import dataclass
from discreet.errors import InternalError, InvalidParameter
from discreet.exact import root_below
from discreet.noise import Bits
from discreet.privacy import ApproxDP, Neighbours
from discreet.privacy.events import Composed, Concentrated, Event, Gaussian
from discreet.progress import stage
from discreet.synthetic.coded_rows import CodedRows, rows_within_limit
from discreet.synthetic.domain import Bins, Domain, FrameKind
from discreet.synthetic.domain.frame_columns import columns_of, kind_of
from discreet.synthetic.fitted_model import Model, sampling_bits
from discreet.synthetic.found_keys import (
    Texts,
    found_keys,
    found_rows,
    key_selection,
    selection_event,
    selection_terms,
    unknown_columns,
)
from discreet.synthetic.inference.estimation import GraphicalModel
from discreet.synthetic.inference.noisy_marginals import NoisyMarginal
from discreet.synthetic.measurement_log import MOST_ROWS_PER_UNIT, MeasurementLog, noise_event
from discreet.synthetic.merged_values import Merge

HISTOGRAM_SHARE = Fraction(1, 10)
"""Of the budget, for the histograms of all columns together."""


def histogram_prices(domain: Domain, rho: Fraction) -> dict[str, Fraction]:
    """Returns the price of the histogram of each column that asks for one: equal parts of a tenth of the budget.

    >>> domain = Domain({"age": Bins([0, 50, 100], within="histogram"), "level": Bins([0, 1, 2], within="histogram")})
    >>> histogram_prices(domain, Fraction(1, 2))  # a bin of a single whole number has one piece: nothing to measure
    {'age': Fraction(1, 20)}
    """
    asked = _histogram_columns(domain)
    return {name: HISTOGRAM_SHARE * rho / len(asked) for name in asked}


def measured_pieces(log: MeasurementLog, rows: CodedRows, domain: Domain) -> Domain:
    """Returns a domain whose bins know the shares of their pieces, from histograms that spend a log's whole budget.

    Every row is in exactly one piece of a column; what is missing is a cell of its own. So the histogram of all pieces
    is one marginal, of rows that have pieces for codes: one unit of at most k rows moves it as it moves any other
    marginal, and the log perturbs and charges it as one.

    Args:
        log: whose budget they have in equal parts.
        rows: fine codes.
        domain: which asks for some.
    """
    asked, found = _histogram_columns(domain), {}
    for name, column in asked.items():
        noisy, pieces = log.marginal(rows, (name,), rho=log.budget / len(asked)), column.pieces
        found[name] = column.with_shares(pieces.shares(noisy.values[: pieces.bins.size], noisy.sigma))
    return domain.with_columns(found)


def coarse(rows: CodedRows, domain: Domain) -> CodedRows:
    """Returns rows of codes, made of rows of fine codes by a public table."""
    places = {name: column.code_of_fine for name, column in domain.columns.items() if column.fine_size != column.size}
    return rows.recode_columns(places, domain.sizes) if places else rows


def _histogram_columns(domain: Domain) -> dict[str, Bins]:
    return {name: column for name, column in domain.columns.items() if isinstance(column, Bins) and column.asks}


_UNIT = "Without a unit, each row is one person. Name the column that says whose row it is."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LearnedModel:
    """Holds what was measured of a table, and the model that was fitted to it.

    Args:
        fit: the model, over merged values.
        marginals: what was measured.
        merges: values that are one.
    """

    fit: GraphicalModel
    marginals: Sequence[NoisyMarginal]
    merges: Mapping[str, Merge]


@dataclass(frozen=True, kw_only=True)
class Generator(ABC):
    """Learns a table under differential privacy and makes up rows like it.

    Formal guarantee: a model is (epsilon, delta)-DP for the units of privacy under `neighbours`, and `model.event` says
    how; `plan_event` returns it before any row is read. All private rows are seen through one `MeasurementLog`, which
    refuses to exceed the budget. The choice of what is measured depends on the public domain and on earlier releases.

    Args:
        epsilon: what one model may cost.
        delta: what one model may cost.
        neighbours: "add_remove" or "replace".
        random_state: None for secure noise; a whole number is a seed, for tests, and gives no privacy.
        share: the part of the budget that is spent: several models, whose shares add up to 1, keep to it together.
    """

    epsilon: Number
    delta: Number
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE
    random_state: int | None = None
    share: Number = 1

    def __post_init__(self) -> None:
        check.positive(epsilon=self.epsilon)
        check.probability(delta=self.delta)
        Neighbours(self.neighbours)
        sampling_bits(self.random_state)
        if check.positive(share=self.share) > 1:
            raise InvalidParameter("share", self.share, "to be at most 1", "It is a part of the budget.")

    @abstractmethod
    def whole_rho(self) -> Fraction:
        """Returns the budget of zCDP that (epsilon, delta) is."""

    def spent_rho(self) -> Fraction:
        """Returns the budget of zCDP that all charges add up to: this generator's share of the whole."""
        return self.whole_rho() * check.positive(share=self.share)

    def rho(self, domain: Domain) -> Fraction:
        """Returns what of it pays for the model: all but the histograms of places within bins."""
        whole = self.spent_rho()
        return whole - sum(histogram_prices(domain, whole).values())

    @abstractmethod
    def plan_releases(self, domain: Domain) -> Sequence[Event] | None:
        """Returns all releases in order, if they are known in advance; None if only their sum is.

        Raises:
            InvalidParameter: if the generator cannot work on such a domain.
        """

    @abstractmethod
    def measure_and_fit(
        self, log: MeasurementLog, rows: CodedRows, domain: Domain, total: float | None
    ) -> LearnedModel:
        """Measures rows through a log until its budget is spent, and fits a model."""

    def plan_event(self, domain: Any, *, forbidden: Iterable[Mapping[str, Any]] = ()) -> Event:
        """Returns what a model of a table of this domain costs, from public facts alone: reads no data, costs nothing.

        Args:
            domain: as for `fit`.
            forbidden: as for `fit`.
        """
        return self._plan(Domain.of(domain, forbidden=forbidden))

    def _plan(self, domain: Domain) -> Event:
        terms = selection_terms(domain, self.epsilon, self.delta)
        if not terms:
            return self.model_event(domain)
        if check.positive(share=self.share) != 1:
            hint = "Pass share=1. Models that find keys must be planned together."
            raise InvalidParameter("share", self.share, "to be 1 if keys are to be found", hint)
        return Composed([*map(selection_event, terms.values()), self.rest(domain).promised_event(domain)])

    def model_event(self, domain: Domain) -> Event:
        """Returns what a model costs whose domain is known: its releases one by one, or their sum."""
        planned, whole = self.plan_releases(domain), self.spent_rho()
        if planned is None:
            return Concentrated(whole)
        return Composed([*(noise_event(price) for price in histogram_prices(domain, whole).values()), *planned])

    def promised_event(self, domain: Domain) -> Event:
        """Returns what a model costs at most whose prices depend on how many keys were found: their sum does not.

        Given what was found, all that is normal noise alone is mu-GDP with mu^2 = 2 rho together.
        """
        event, rho = self.model_event(domain), self.spent_rho()
        if isinstance(event, Composed) and all(isinstance(one, Gaussian) for one in event.events):
            return Gaussian(noise_multiplier=root_below(1 / (2 * rho)))
        return Concentrated(rho)

    def rest(self, domain: Domain) -> Self:
        """Returns the generator with what selections of keys leave of its epsilon and delta."""
        terms = selection_terms(domain, self.epsilon, self.delta).values()
        if not terms:
            return self
        epsilon = check.positive(epsilon=self.epsilon) - sum(paid for paid, _ in terms)
        delta = check.probability(delta=self.delta) - sum(paid for _, paid in terms)
        return replace(self, epsilon=epsilon, delta=delta)

    def fit(
        self,
        frame: Any,
        *,
        domain: Any,
        forbidden: Iterable[Mapping[str, Any]] = (),
        unit: str | None = None,
        rows_per_unit: int = 1,
        rows: int | None = None,
    ) -> Model:
        """Returns a model of a table.

        Args:
            frame: a frame of pandas, polars or PyArrow, or a dict of lists.
            domain: the public values of each column, as `Domain` takes them.
            forbidden: combinations of values that cannot occur, as `Domain` takes them.
            unit: the column that says whose a row is; None means that each row is a person of its own. Rows without
                an id are dropped, and the column is not part of the model.
            rows_per_unit: how many rows of a unit are kept at most; the noise grows with it.
            rows: the number of rows, if it is public; estimated from what was measured if not.

        Raises:
            InvalidParameter: for what is public only: names, types, declarations.
        """
        known = Domain.of(domain, forbidden=forbidden)
        limit = check.integer(rows_per_unit=rows_per_unit, at_least=1, at_most=MOST_ROWS_PER_UNIT)
        if unit is None and limit != 1:
            raise InvalidParameter("rows_per_unit", rows_per_unit, "to be 1 without a unit", _UNIT)
        total = None if rows is None else float(check.integer(rows=rows, at_least=1))
        self._plan(known)  # what is refused is refused before values are looked at
        for terms in selection_terms(known, self.epsilon, self.delta).values():
            key_selection(terms, neighbours=self.neighbours, rows_per_unit=limit)
        kind, bits = kind_of(frame), sampling_bits(self.random_state)
        coded, texts = _encode_rows(frame, known, unit, limit)
        return self.fit_coded(coded, known, rows_per_unit=limit, kind=kind, bits=bits, total=total, texts=texts)

    def fit_coded(
        self,
        rows: CodedRows,
        domain: Domain,
        *,
        rows_per_unit: int,
        kind: FrameKind,
        bits: Bits,
        total: float | None = None,
        texts: Mapping[str, Texts] | None = None,
    ) -> Model:
        """Returns a model of rows that are codes already, and within the limit.

        Args:
            rows: at most `rows_per_unit` of one unit, as the caller has made sure.
            domain: whose fine codes they are.
            rows_per_unit: the limit.
            kind: the library of frames that are drawn.
            bits: the source of noise.
            total: the number of rows, if it is public.
            texts: of each column whose keys are to be found, whose codes are numbers of these texts.
        """
        how: dict[str, Any] = {"rows_per_unit": rows_per_unit, "kind": kind, "bits": bits, "total": total}
        how["promise"] = ApproxDP(self.epsilon, self.delta)
        terms = selection_terms(domain, self.epsilon, self.delta)
        if not terms:
            return self.fit_known(rows, domain, self._plan(domain), **how)
        written, found = texts or {}, {}
        for name, column in unknown_columns(domain).items():
            stage(f"Finding keys of {name}")
            selection = key_selection(terms[name], neighbours=self.neighbours, rows_per_unit=rows_per_unit)
            found[name] = found_keys(column, written[name], selection, bits)
        known = domain.with_columns(found)
        coded = found_rows(rows, known, written)
        return self.rest(domain).fit_known(coded, known, self._plan(domain), **how)

    def fit_known(
        self,
        rows: CodedRows,
        domain: Domain,
        event: Event,
        *,
        rows_per_unit: int,
        kind: FrameKind,
        bits: Bits,
        total: float | None,
        promise: ApproxDP,
    ) -> Model:
        """Returns a model of a domain whose keys are all known.

        Args:
            rows: fine codes, within the limit.
            domain: whose codes they are.
            event: what is charged for it.
            rows_per_unit: the limit.
            kind: the library of frames that are drawn.
            bits: the source of noise.
            total: the number of rows, if it is public.
            promise: the (epsilon, delta) that all that is released together keeps to.
        """
        planned, rho, whole = self.model_event(domain), self.rho(domain), self.spent_rho()
        limits: dict[str, Any] = {"neighbours": self.neighbours, "rows_per_unit": rows_per_unit, "bits": bits}
        log, charges, known = MeasurementLog(rho=rho, **limits), [], domain
        if rho < whole:
            stage("Measuring places within bins")
            pieces = MeasurementLog(rho=whole - rho, **limits)
            known = measured_pieces(pieces, rows, domain)
            charges += pieces.charges
        found = self.measure_and_fit(log, coarse(rows, domain), domain, total)
        charges += log.charges
        drawn = Composed([charge.event for charge in charges])
        if sum(charge.rho for charge in charges) != whole or (isinstance(planned, Composed) and drawn != planned):
            raise InternalError("What was charged is not what was planned.")
        fitted = {id(marginal) for marginal in found.marginals}
        return Model(
            generator=type(self).__name__,
            domain=known,
            event=event,
            rho=whole,
            promise=promise,
            charges=tuple((charge.about, charge.rho) for charge in charges),
            neighbours=log.neighbours,
            rows_per_unit=rows_per_unit,
            measurements=tuple(found.marginals),
            unmerged=tuple(marginal for marginal in log.marginals if id(marginal) not in fitted),
            rows=round(found.fit.total),
            kind=kind,
            merges=dict(found.merges),
            private=log.private,
            law=found.fit.model,
            potentials=tuple(found.fit.potentials.values()),
        )


def _encode_rows(frame: Any, domain: Domain, unit: str | None, limit: int) -> tuple[CodedRows, dict[str, Texts]]:
    """Returns rows as codes, within the limit of each unit, and the texts of columns whose keys are to be found."""
    columns = columns_of(frame)
    if unit is not None and (unit not in columns or unit in domain.columns):
        hint = "It says whose row it is, and has no domain."
        raise InvalidParameter("unit", unit, f"to be a column of the frame, {list(columns)}", hint)
    owners = None if unit is None else columns[unit]
    found = {name: Texts.of_rows(columns[name], owners, limit) for name in unknown_columns(domain) if name in columns}
    columns |= {name: texts.numbers(columns[name]) for name, texts in found.items()}
    codes = domain.codes(columns, ignore=() if unit is None else (unit,), fine=True)
    if owners is not None:
        codes = rows_within_limit(owners, codes, limit)
    return CodedRows(domain.fine_sizes | {name: texts.size for name, texts in found.items()}, codes), found
