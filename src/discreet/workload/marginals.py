"""Tables by sets of attributes, planned and released together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from discreet import check
from discreet.check import Number, assign
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.noise import Bits, source_of
from discreet.privacy import Estimate, Neighbours
from discreet.privacy.events import Event
from discreet.privacy.losses import Loss
from discreet.workload.budget_currency import gaussian_or_pure
from discreet.workload.counted_tables import CountedTables
from discreet.workload.gaussian_residuals import GaussianResiduals, plan_gaussian
from discreet.workload.laplace_tables import LaplaceTables, plan_laplace
from discreet.workload.product_domain import MOST_SETS, Attributes, ProductDomain
from discreet.workload.released_tables import ReleasedTables
from discreet.workload.residuals import assemble_table, table_variance

MOST_ROWS = 1 << 20


@dataclass(frozen=True, slots=True, init=False)
class Marginals:
    """Tables of counts by sets of attributes of a public product domain, which is never written out.

    Args:
        domain: for each attribute how many values it has, or the values themselves; public.
        sets: the sets of attributes to count by; () is the number of rows. A set named twice costs what one costs.
        weights: how much the error of each set's cells matters, 1 if left out; a set named twice has their sum.

    Raises:
        InvalidParameter: if the domain is empty, an attribute is unknown, no set is given, or a table is too large.

    Formal guarantee of its plans: see `MarginalsPlan`.

    >>> from discreet.privacy import Budget
    >>> marginals = Marginals({"a": 2, "b": 3}, [("a",), ("b",), ("a", "b")])
    >>> plan = marginals.plan(budget=Budget(rho=0.5))
    >>> round(plan.total_variance, 6)
    16.379882
    >>> {names: round(variance, 6) for names, variance in plan.variances.items()}
    {('a',): 2.251001, ('b',): 1.721604, ('a', 'b'): 1.118845}
    """

    domain: ProductDomain
    tables: dict[Attributes, Fraction]

    def __init__(
        self,
        domain: Mapping[str, int | Sequence[Any]] | ProductDomain,
        sets: Iterable[Sequence[str]],
        *,
        weights: Sequence[Number] | None = None,
    ) -> None:
        known = domain if isinstance(domain, ProductDomain) else ProductDomain(domain)
        if isinstance(sets, str) or not isinstance(sets, Iterable):
            raise InvalidParameter("sets", sets, "to be sets of attributes", "Pass e.g. [('sex',), ('sex', 'region')].")
        found = [known.order_attributes(attributes) for attributes in sets]
        if not 1 <= len(found) <= MOST_SETS:
            hint = "Ask for at least one table."
            raise InvalidParameter("sets", f"{len(found)} sets", f"to be 1 to {MOST_SETS:,}", hint)
        amounts = [Fraction(1)] * len(found) if weights is None else [check.positive(weights=w) for w in weights]
        if len(amounts) != len(found):
            raise InvalidParameter("weights", f"{len(amounts)} numbers", f"to be {len(found)}, one for each set")
        tables = dict.fromkeys(found, Fraction(0))
        for attributes, amount in zip(found, amounts, strict=True):
            tables[attributes] += amount
        assign(self, domain=known, tables=tables)

    def plan(
        self,
        *,
        budget: Loss,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
        rows_per_unit: int = 1,
    ) -> MarginalsPlan:
        """Returns how the tables are released within a budget.

        Args:
            budget: ``Budget(rho=...)`` or ``Budget(epsilon=..., delta=...)`` for normal noise, ``Budget(epsilon=...)``
                for Laplace noise.
            neighbours: the relation to protect. A unit that is replaced may also have stood in no cell.
            rows_per_unit: how many rows one unit has, at most.

        Raises:
            InvalidParameter: if the budget is none, or too small or too large for any float.
        """
        relation = Neighbours(neighbours)
        rows = check.integer(rows_per_unit=rows_per_unit, at_least=1, at_most=MOST_ROWS)
        mu_squared, epsilon = gaussian_or_pure(budget)
        weights = {attributes: float(weight) for attributes, weight in self.tables.items()}
        noise: GaussianResiduals | LaplaceTables
        if epsilon is None:
            noise = plan_gaussian(weights, self.domain, mu_squared / rows**2, relation)
        else:
            noise = plan_laplace(weights, self.domain, epsilon / rows, relation)
        return MarginalsPlan(
            domain=self.domain, sets=tuple(weights), noise=noise, neighbours=relation, rows_per_unit=rows
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginalsPlan:
    """How tables are released: what is measured with which noise, its error, and its event; all of it is public.

    Formal guarantee: one release is described by `event`, for all tables that differ in one unit's rows, under
    `neighbours`. With a rho or a delta the residuals of all tables get normal noise, shaped like what one unit can
    move and correctly rounded, so that mu-GDP holds exactly; under ADD_REMOVE no Gaussian mechanism has a smaller
    total variance (Xiao, He, Zhang, Kifer 2023). With an epsilon alone, tables get discrete Laplace noise. What is
    computed from them afterwards is post-processing.

    Attributes:
        domain: the attributes.
        sets: what is asked for.
        noise: of each measurement.
        neighbours: the relation.
        rows_per_unit: how many rows a unit has, at most.
    """

    domain: ProductDomain
    sets: tuple[Attributes, ...]
    noise: GaussianResiduals | LaplaceTables
    neighbours: Neighbours
    rows_per_unit: int

    @property
    def event(self) -> Event:
        """Returns what one release costs, for accounting."""
        return self.noise.event_of_rows(self.rows_per_unit)

    @property
    def variances(self) -> dict[Attributes, float]:
        """Returns the variance of each cell of each table."""
        scales = self.noise.scales
        return {attributes: table_variance(attributes, scales, self.domain) for attributes in self.sets}

    @property
    def total_variance(self) -> float:
        """Returns the sum of the variances of all cells of all tables."""
        return sum(variance * self.domain.cells(attributes) for attributes, variance in self.variances.items())

    def release(self, counts: Any, *, confidence: Number = CONFIDENCE, bits: Bits | None = None) -> ReleasedTables:
        """Releases the tables, which agree with each other wherever they overlap.

        Args:
            counts: integers over the whole domain, one axis for each attribute; or ``{('a', 'b'): table, ...}`` with
                a table for each set, or for one that contains it, all counted from the same rows; or columns of rows,
                ``{'a': codes, ...}`` or a frame; rows with a value outside of the domain count nowhere.
            confidence: of each interval, for the count of these very rows.
            bits: the source of randomness; None is the secure one.

        Raises:
            InvalidParameter: if the confidence is not strictly between 0 and 1.
            InvalidValue: if the counts have not the form, the type or the shape of counts over this domain.
        """
        chance = check.probability(confidence=confidence)
        tables = CountedTables(counts, self.sets, self.domain)
        source = source_of(bits)
        components = self.noise.components(tables, source)
        estimates, event = {}, self.event
        for attributes in self.sets:
            value = assemble_table(attributes, components, self.domain)[()]
            half = self.noise.reach(attributes, 1 - chance)
            low, high = value - half, value + half
            estimates[attributes] = Estimate(value, low, high, event, confidence=chance, private=source.private)
        return ReleasedTables(domain=self.domain, estimates=estimates, variances=self.variances, private=source.private)
