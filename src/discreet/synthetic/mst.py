"""MST: the pairs of a spanning tree of columns, chosen privately, carry how columns are related."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

from discreet import check
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.privacy.events import Event
from discreet.progress import stage
from discreet.synthetic.coded_rows import MOST_CELLS, CodedRows, checked_shape
from discreet.synthetic.domain import Domain
from discreet.synthetic.generator import Generator, LearnedModel
from discreet.synthetic.inference.estimation import GraphicalModel, fit
from discreet.synthetic.inference.factors import Attributes, Sizes, cells
from discreet.synthetic.inference.junction_tree import tree_size
from discreet.synthetic.measurement_log import (
    MeasurementLog,
    choice_event,
    concentrated_budget,
    l1_error,
    noise_event,
)
from discreet.synthetic.merged_values import merged_marginal, merged_zeros, rare_values

MOST_TREE_CELLS = 1 << 24


@dataclass(frozen=True, kw_only=True)
class MST(Generator):
    """Measures all columns, chooses a spanning tree of pairs that are far from independent, and measures these.

    McKenna, Miklau, Sheldon 2021. Of a budget rho and d columns, with the shares (a, b, c) that add up to 1:

    - each column is measured at a rho / d. Values below `rare` deviations of the noise are merged to one, and are
      separated by what was measured when rows are drawn;
    - d - 1 pairs are chosen by the exponential mechanism, each at b rho / (d - 1), among those that join two parts that
      were not joined before, as Kruskal's algorithm does. The score of a pair is the L1 distance of its counts from
      those of independent columns, a public estimate: it moves by at most 1 under ADD_REMOVE and by 2 under REPLACE.
      A price of r buys epsilon = sqrt(8 r), since the mechanism costs epsilon^2 / 8;
    - each of these pairs is measured at c rho / (d - 1). A price of r buys sigma = 1 / sqrt(2 r) at L2 sensitivity 1.

    Prices are constants of the domain, so that the releases are known in advance although their subjects are not.

    Formal guarantee: that of `Generator`, by zCDP. Sensitivities are derived in `measurement_log`.

    Args:
        shares: of columns, choices and pairs, three positive numbers; equal ones unless given.
        rare: below how many deviations of its noise a count is rare.

    >>> frame = {"a": [0, 0, 1, 1] * 500, "b": [0, 0, 1, 1] * 500, "c": [0, 1] * 1000}
    >>> model = MST(epsilon=10, delta=1e-9, random_state=1).fit(frame, domain=dict.fromkeys("abc", [0, 1]))
    >>> [about for about, rho in model.charges][-2:]
    [('a', 'b'), ('b', 'c')]
    """

    shares: tuple[check.Number, check.Number, check.Number] = (1, 1, 1)
    rare: check.Number = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(check.instance(tuple, shares=self.shares)) != 3:
            raise InvalidParameter("shares", self.shares, "to be three numbers", "Pass e.g. shares=(1, 1, 1).")
        for share in self.shares:
            check.positive(shares=share)
        check.not_negative(rare=self.rare)

    def whole_rho(self) -> Fraction:
        """Returns the zCDP of the budget."""
        return concentrated_budget(self.epsilon, self.delta)

    def prices(self, domain: Domain) -> tuple[Fraction, Fraction, Fraction]:
        """Returns the price of one column, of one choice and of one pair."""
        rho, columns = self.rho(domain), len(domain.columns)
        if columns == 1:
            return rho, Fraction(0), Fraction(0)
        parts = [check.positive(shares=share) for share in self.shares]
        first, second, third = (rho * part / sum(parts) for part in parts)
        return first / columns, second / (columns - 1), third / (columns - 1)

    def plan_releases(self, domain: Domain) -> Sequence[Event]:
        """Returns the releases: columns, choices, pairs."""
        for zero in domain.zeros():
            checked_shape(zero.attributes, domain.sizes)
        columns, (one, choice, pair) = len(domain.columns), self.prices(domain)
        if len(_find_components(list(domain.columns), _pairs(domain.sizes))) > 1:
            hint = f"Use wider bins: pairs of columns may have {MOST_CELLS:,} cells."
            raise InvalidParameter("domain", domain.sizes, "to have pairs that connect all columns", hint)
        if columns == 1:
            return [noise_event(one)]
        choices, pairs = [choice_event(choice)] * (columns - 1), [noise_event(pair)] * (columns - 1)
        return [noise_event(one)] * columns + choices + pairs

    def measure_and_fit(
        self, log: MeasurementLog, rows: CodedRows, domain: Domain, total: float | None
    ) -> LearnedModel:
        """Measures columns, chooses pairs, measures them, and fits."""
        one, choice, price = self.prices(domain)
        stage("Measuring columns")
        columns = [log.marginal(rows, (name,), rho=one) for name in domain.columns]
        whole = fit(domain.sizes, columns, total=total, zeros=domain.zeros())
        shares = {name: whole.model.marginal((name,)) for name in domain.columns}
        merges = rare_values(domain, columns, shares, deviations=float(check.not_negative(rare=self.rare)))
        sizes = {name: merges[name].size if name in merges else size for name, size in domain.sizes.items()}
        zeros = merged_zeros(domain.zeros(), merges)
        merged = [merged_marginal(m, merges, whole.total * shares[m.attributes[0]]) for m in columns]
        if len(sizes) == 1 or not choice:
            found = fit(sizes, merged, total=whole.total, zeros=zeros)
            return LearnedModel(fit=found, marginals=merged, merges=merges)
        stage("Choosing pairs of columns and measuring them")
        small = rows.recode_columns({name: merge.places for name, merge in merges.items()}, sizes)
        base = fit(sizes, merged, total=whole.total, zeros=zeros)
        fixed = [zero.attributes for zero in zeros]
        tree = spanning_tree(log, small, base, _pairs(domain.sizes), fixed=fixed, rho=choice)
        marginals = [*merged, *(log.marginal(small, pair, rho=price) for pair in tree)]
        found = fit(sizes, marginals, total=total, zeros=zeros)
        return LearnedModel(fit=found, marginals=marginals, merges=merges)


def spanning_tree(
    log: MeasurementLog,
    rows: CodedRows,
    base: GraphicalModel,
    pairs: Sequence[Attributes],
    *,
    fixed: Sequence[Attributes],
    rho: Fraction,
) -> list[Attributes]:
    """Returns pairs that join all columns, each chosen at a price among those that join two parts.

    Args:
        log: which chooses.
        rows: the private rows.
        base: a public model, from which pairs shall be far.
        pairs: the candidates.
        fixed: sets of columns that are in one clique anyway.
        rho: the price of one choice.
    """
    found = zip(pairs, base.many_counts(pairs), strict=True)
    errors = {pair: l1_error(rows.counts(pair), estimate) for pair, estimate in found}
    chosen: list[Attributes] = []
    for _ in range(len(rows.sizes) - 1):
        parts = _find_components(list(rows.sizes), chosen)
        place = {name: number for number, part in enumerate(parts) for name in part}
        joining = [pair for pair in pairs if place[pair[0]] != place[pair[1]]]
        allowed = _small_enough(joining, [*chosen, *fixed], rows.sizes) if fixed else joining
        picked = log.choose([errors[pair] for pair in allowed], rho=rho, about=("pair",))
        chosen.append(allowed[picked])
    return chosen


def _small_enough(pairs: list[Attributes], before: Sequence[Attributes], sizes: Sizes) -> list[Attributes]:
    """Returns the pairs whose junction tree is within the limit, or else the least one: public facts decide."""
    found = {pair: tree_size(sizes, [*before, pair]) for pair in pairs}
    within = [pair for pair in pairs if found[pair] <= MOST_TREE_CELLS]
    return within or [min(pairs, key=found.__getitem__)]


def _pairs(sizes: Sizes) -> list[Attributes]:
    return [pair for pair in combinations(sizes, 2) if cells(pair, sizes) <= MOST_CELLS]


def _find_components(names: Sequence[str], pairs: Sequence[Attributes]) -> list[set[str]]:
    """Returns the parts into which pairs join the columns."""
    parts = [{name} for name in names]
    for first, second in pairs:
        one, other = (next(part for part in parts if name in part) for name in (first, second))
        if one is not other:
            parts.remove(other)
            one |= other
    return parts
