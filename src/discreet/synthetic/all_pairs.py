"""All pairs of columns at once, in the residual basis; what the model is made of is chosen afterwards, for free."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np

from discreet import accounting, check
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.privacy.events import Event
from discreet.progress import stage
from discreet.synthetic.coded_rows import MOST_CELLS, CodedRows, checked_shape
from discreet.synthetic.domain import Domain
from discreet.synthetic.generator import Generator, LearnedModel
from discreet.synthetic.independent import cells_weight
from discreet.synthetic.inference.estimation import GraphicalModel, fit
from discreet.synthetic.inference.factors import Attributes, Factor, Sizes, cells
from discreet.synthetic.inference.junction_tree import tree_size
from discreet.synthetic.inference.noisy_marginals import NoisyMarginal, residual
from discreet.synthetic.measurement_log import MeasurementLog, noise_event
from discreet.synthetic.merged_values import Merge, merged_marginal, merged_zeros, rare_values
from discreet.synthetic.pair_shrinkage import PairPrior, pair_prior

MOST_PAIR_CELLS = 1 << 25
"""Of all pairs together: a public limit on memory."""

COLUMNS = Fraction(2, 5)
"""The part of the budget for columns by themselves."""

_BITS = 40  # of the square of a weight
_ROUNDS = 4
_CHEAP = 64  # a pair is cheap that grows the model by no more than such a part of the room
_FAILURES = 200  # pairs in a row that find no room before a round ends


@dataclass(frozen=True, kw_only=True)
class AllPairs(Generator):
    """Measures all columns, then all pairs of columns in one release, and chooses by what came out what to model.

    Of a budget rho:

    - two fifths buy the columns by themselves, a column of n values at a share proportional to n^(2/3): what is
      wrong with a column is wrong with all its pairs. Values below `rare` deviations of the noise are merged to one,
      as in MST;
    - the rest buys the residuals of all pairs (Xiao, He, Zhang, Kifer 2023): what a pair adds to its columns, so
      that nothing is paid for twice. A pair of n and m merged values has (n - 1) (m - 1) free numbers. Noise of
      deviation s on it costs p / s^2, p = (1 - 1/n) (1 - 1/m), and has an expected L1 norm proportional to
      n m s sqrt(p). By a Lagrange multiplier the sum of these is least where prices are proportional to
      ((n - 1) (m - 1))^(2/3); but a model does not follow noise where there is much of it, so that a pair of many
      cells gains less from its price than that, and prices are proportional to ((n - 1) (m - 1))^(1/2);
    - all else is post-processing, which costs nothing however often it looks. Each pair has a prior that is fitted to
      what was released of it (`pair_shrinkage`): it says how much of the residual to believe, cell by cell, and by how
      much a model gains that follows it. Pairs are added to a junction tree of at most `most_cells` cells in a few
      rounds: cheap ones, which grow it little, before costly ones, and in both groups those first from which the model
      so far gains most. Pairs that noise explains are left out.

    Formal guarantee: that of `Generator`. Both releases are normal noise, which together are mu-GDP with mu^2 the sum
    of their mu^2, whether the second depends on what came out of the first or not (Dong, Roth, Su 2022, Corollary 3.3).
    mu is the largest that keeps to (epsilon, delta) by the exact curve (Balle, Wang 2018): rho = mu^2 / 2.

    Args:
        most_cells: the most cells of all cliques of the model: what memory and time depend on.
        rare: below how many deviations of its noise a count is rare.
        certain: a pair is modelled if it is more likely than independent columns by as much as a normal number that
            is so many deviations from its mean.

    >>> frame = {"a": [0, 0, 1, 1] * 500, "b": [0, 0, 1, 1] * 500, "c": [0, 1] * 1000}
    >>> model = AllPairs(epsilon=10, delta=1e-9, random_state=1).fit(frame, domain=dict.fromkeys("abc", [0, 1]))
    >>> [about for about, rho in model.charges]
    [('a',), ('b',), ('c',), ('pairs',)]
    """

    most_cells: int = 1 << 22
    rare: check.Number = 3
    certain: check.Number = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check.integer(most_cells=self.most_cells, at_least=1)
        check.not_negative(rare=self.rare)
        check.not_negative(certain=self.certain)

    def whole_rho(self) -> Fraction:
        """Returns mu^2 / 2 of the budget."""
        mu = 1 / accounting.gaussian_sigma(self.epsilon, self.delta)
        return mu * mu / 2

    def prices(self, domain: Domain) -> tuple[dict[str, Fraction], Fraction]:
        """Returns the price of each column, and that of all pairs together."""
        rho = self.rho(domain)
        columns = rho if len(domain.columns) == 1 else COLUMNS * rho
        weights = {name: cells_weight(size) for name, size in domain.sizes.items()}
        return {name: columns * weight / sum(weights.values()) for name, weight in weights.items()}, rho - columns

    def plan_releases(self, domain: Domain) -> Sequence[Event]:
        """Returns the releases: columns, and all pairs."""
        fixed = [zero.attributes for zero in domain.zeros()]
        for attributes in fixed:
            checked_shape(attributes, domain.sizes)
        self._check_sizes(domain.sizes, fixed)
        columns, pairs = self.prices(domain)
        return [noise_event(price) for price in columns.values()] + ([noise_event(pairs)] if pairs else [])

    def _check_sizes(self, sizes: Sizes, fixed: Sequence[Attributes]) -> None:
        alone = tree_size(sizes, fixed)
        if alone > self.most_cells:
            told = f">= {alone}, the cells of the columns and the forbidden combinations alone"
            raise InvalidParameter("most_cells", self.most_cells, told)
        whole = (sum(sizes.values()) ** 2 - sum(size**2 for size in sizes.values())) // 2
        if whole > MOST_PAIR_CELLS:
            told = f"to have at most {MOST_PAIR_CELLS:,} cells in all pairs of columns"
            raise InvalidParameter("domain", f"{whole:,} cells", told, "Use wider bins.")

    def measure_and_fit(
        self, log: MeasurementLog, rows: CodedRows, domain: Domain, total: float | None
    ) -> LearnedModel:
        """Measures columns, then pairs, chooses pairs, and fits."""
        prices, price = self.prices(domain)
        stage("Measuring columns")
        columns = [log.marginal(rows, (name,), rho=one) for name, one in prices.items()]
        whole = fit(domain.sizes, columns, total=total, zeros=domain.zeros())
        shares = {name: whole.model.marginal((name,)) for name in domain.columns}
        merges = rare_values(domain, columns, shares, deviations=float(check.not_negative(rare=self.rare)))
        sizes = {name: merges[name].size if name in merges else size for name, size in domain.sizes.items()}
        merged = [merged_marginal(m, merges, whole.total * shares[m.attributes[0]]) for m in columns]
        if price:
            stage("Measuring pairs of columns")
        measured = _measured_pairs(log, rows, merges, sizes, price) if price else []
        choice = _Choice(
            sizes=sizes,
            columns=[*merged, *(one for one in measured if not one.residual)],
            pairs=[one for one in measured if one.residual],
            zeros=merged_zeros(domain.zeros(), merges),
            total=whole.total,
            most_cells=self.most_cells,
            certain=float(check.not_negative(certain=self.certain)),
        )
        return LearnedModel(fit=choice.choose_and_fit(), marginals=[*merged, *measured], merges=merges)


def pair_weight(free: int) -> int:
    """Returns the square root of a pair's free numbers, in steps of 2^-20: what its price is proportional to."""
    return math.isqrt(free << _BITS)


def _measured_pairs(
    log: MeasurementLog, rows: CodedRows, merges: Mapping[str, Merge], sizes: Sizes, price: Fraction
) -> list[NoisyMarginal]:
    """Returns the residuals of all pairs of columns that have two values or more after merging.

    Without any such pair the price is spent on the first column again: the releases are those that were planned.
    """
    small = rows.recode_columns({name: merge.places for name, merge in merges.items()}, sizes)
    weights = {
        (one, other): pair_weight((sizes[one] - 1) * (sizes[other] - 1))
        for one, other in combinations(sizes, 2)
        if min(sizes[one], sizes[other]) > 1 and cells((one, other), sizes) <= MOST_CELLS
    }
    if not weights:
        return [log.marginal(small, (next(iter(sizes)),), rho=price)]
    return log.residuals(small, weights, rho=price)


@dataclass(frozen=True, kw_only=True)
class _Choice:
    """Chooses the pairs that a model is made of, from what was released."""

    sizes: Sizes
    columns: Sequence[NoisyMarginal]
    pairs: Sequence[NoisyMarginal]
    zeros: Sequence[Factor]
    total: float
    most_cells: int
    certain: float

    def choose_and_fit(self) -> GraphicalModel:
        """Returns the model, fitted again after each round of choices; every round may use its part of the room."""
        chosen: list[NoisyMarginal] = []
        model = self._fit(chosen, {}, None)
        priors = self._priors(model)
        for number in range(1, _ROUNDS + 1):
            found = self._choose_pairs(model, priors, chosen, self.most_cells * number // _ROUNDS)
            if not found:
                continue
            chosen += found
            model = self._fit(chosen, priors, model)
        return model

    def _priors(self, independent: GraphicalModel) -> dict[Attributes, PairPrior]:
        """Returns the priors of pairs that noise does not explain."""
        shares = {name: independent.model.marginal((name,)) for name in self.sizes}
        found = {}
        for pair in self.pairs:
            first, second = pair.attributes
            prior = pair_prior(pair, self.total * np.multiply.outer(shares[first], shares[second]))
            if prior.evidence > self.certain**2:
                found[pair.attributes] = prior
        return found

    def _fit(
        self, chosen: Sequence[NoisyMarginal], priors: Mapping[Attributes, PairPrior], start: GraphicalModel | None
    ) -> GraphicalModel:
        ridges = {pair.attributes: priors[pair.attributes].ridge for pair in chosen}
        marginals = [*self.columns, *chosen]
        return fit(self.sizes, marginals, total=self.total, zeros=self.zeros, start=start, ridges=ridges)

    def _choose_pairs(
        self, model: GraphicalModel, priors: Mapping[Attributes, PairPrior], before: Sequence[NoisyMarginal], limit: int
    ) -> list[NoisyMarginal]:
        """Returns further pairs for which there is room, those first by which the model gains most."""
        taken = {marginal.attributes for marginal in before}
        left = [pair for pair in self.pairs if pair.attributes in priors and pair.attributes not in taken]
        tables = model.many_counts([pair.attributes for pair in left])
        gains = [
            priors[pair.attributes].gain(pair.values - residual(table))
            for pair, table in zip(left, tables, strict=True)
        ]
        order = [left[place] for place in sorted(range(len(left)), key=lambda place: -gains[place])]
        sets = [*taken, *(zero.attributes for zero in self.zeros)]
        found: list[NoisyMarginal] = []
        for most in (limit // _CHEAP, limit):  # a costly pair may take the room of many that gain little but are cheap
            size, failures = tree_size(self.sizes, sets), 0
            for pair in order:
                if pair.attributes in sets:
                    continue
                grown = tree_size(self.sizes, [*sets, pair.attributes])
                if grown <= limit and grown - size <= most:
                    sets.append(pair.attributes)
                    found.append(pair)
                    size, failures = grown, 0
                else:
                    failures += 1
                if failures > _FAILURES:
                    break
        return found
