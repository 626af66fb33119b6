"""AIM: marginals are chosen one after another where the model so far is worst, until the budget is spent."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from itertools import combinations

import numpy as np

from discreet import check
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.progress import stage
from discreet.synthetic.coded_rows import MOST_CELLS, CodedRows, Integers, checked_shape
from discreet.synthetic.domain import Domain
from discreet.synthetic.generator import Generator, LearnedModel
from discreet.synthetic.inference.estimation import GraphicalModel, fit
from discreet.synthetic.inference.factors import Attributes, Factor, Table, cells
from discreet.synthetic.inference.junction_tree import tree_size
from discreet.synthetic.measurement_log import STEPS, MeasurementLog, concentrated_budget, l1_error

MOST_WORKLOAD = 1 << 14
_CHOICE = Fraction(1, 10)  # the part of a round's price that pays for its choice
_ROUNDS = 16  # for each column, unless rounds are made dearer on the way
_EXPECTED = math.sqrt(2 / math.pi)  # of the absolute value of a standard normal number
_LARGEST_WEIGHT = 1 << 20
_DEARER = 4  # half the noise of a measurement, twice the epsilon of a choice


@dataclass(frozen=True, kw_only=True)
class AIM(Generator):
    """Chooses and measures marginals round by round, each where a model of what was measured is furthest off.

    McKenna, Mullins, Sheldon, Miklau 2022, in zCDP and whole numbers. Of a budget rho and d columns:

    - at first a round costs rho / (16 d), a tenth of it for the choice. The columns are measured by themselves at nine
      tenths of that price each;
    - the candidates of a round are the subsets r of workload sets whose junction tree, together with what was measured,
      has at most `most_cells` times the part of the budget that will be spent after the round;
    - one is chosen by the exponential mechanism with the score w_r (|M_r - E_r|_1 - sqrt(2 / pi) sigma n_r): by how
      much the measured counts will be closer than the model's E_r, since normal noise on n_r cells has that expected
      L1 norm. The weight w_r is the sum over workload sets s of |r and s together|: it depends on the workload alone.
      E_r, sigma, n_r and w_r are public, so that the score moves by at most max w_r times the L1 sensitivity;
    - it is measured, and the model fitted again. If the model moved there by less than noise of sigma would, noise
      hides the rest: rounds then cost four times as much (half the sigma, twice the epsilon);
    - when fewer than two rounds are affordable, the next one is the last and costs all that remains.

    Formal guarantee: that of `Generator`. Prices are chosen by what was released, and their sum is the budget exactly:
    a zCDP filter, so that `event` is the promise of rho-zCDP.

    Args:
        degree: the workload is all sets of so many columns.
        workload: or these sets.
        most_cells: the most cells of all cliques of the model: what memory and time depend on.

    >>> frame = {"a": [0, 0, 1, 1] * 500, "b": [0, 0, 1, 1] * 500, "c": [0, 1] * 1000}
    >>> model = AIM(epsilon=10, delta=1e-9, random_state=1).fit(frame, domain=dict.fromkeys("abc", [0, 1]))
    >>> sum(rho for about, rho in model.charges) == model.rho
    True
    """

    degree: int = 2
    workload: tuple[tuple[str, ...], ...] | None = None
    most_cells: int = 1 << 20

    def __post_init__(self) -> None:
        super().__post_init__()
        check.integer(degree=self.degree, at_least=1, at_most=8)
        check.integer(most_cells=self.most_cells, at_least=1)

    def whole_rho(self) -> Fraction:
        """Returns the zCDP of the budget."""
        return concentrated_budget(self.epsilon, self.delta)

    def plan_releases(self, domain: Domain) -> None:
        """Returns None: the sum of prices is known in advance, and no single one of them."""
        self.weights(domain)
        fixed = [zero.attributes for zero in domain.zeros()]
        for attributes in fixed:
            checked_shape(attributes, domain.sizes)
        size = tree_size(domain.sizes, fixed)
        if size > self.most_cells:
            told = f">= {size}, the cells of the columns and the forbidden combinations alone"
            raise InvalidParameter("most_cells", self.most_cells, told)

    def weights(self, domain: Domain) -> dict[Attributes, int]:
        """Returns the candidates and their weights: functions of the workload, which is public."""
        names, known = tuple(domain.columns), set(domain.columns)
        degree = min(self.degree, len(names))
        count = math.comb(len(names), degree) if self.workload is None else len(self.workload)
        if not 1 <= count <= MOST_WORKLOAD:
            raise InvalidParameter("workload", f"{count} sets", f"to be 1 to {MOST_WORKLOAD:,}", "Lower the degree.")
        sets = [set(each) for each in (combinations(names, degree) if self.workload is None else self.workload)]
        if not all(each and each <= known and len(each) <= 8 for each in sets):
            raise InvalidParameter("workload", self.workload, f"to be sets of up to 8 of the columns {list(names)}")
        return _weights(names, sets, domain.sizes)

    def measure_and_fit(
        self, log: MeasurementLog, rows: CodedRows, domain: Domain, total: float | None
    ) -> LearnedModel:
        """Measures columns, then rounds until the budget is spent."""
        price, zeros = log.budget / (_ROUNDS * len(domain.columns)), domain.zeros()
        stage("Measuring columns")
        for name in domain.columns:
            log.marginal(rows, (name,), rho=(1 - _CHOICE) * price)
        state = _Rounds(
            log=log,
            rows=rows,
            zeros=zeros,
            weights=self.weights(domain),
            most_cells=self.most_cells,
            total=total,
            price=price,
            model=fit(domain.sizes, log.marginals, total=total, zeros=zeros),
        )
        stage("Choosing combinations of columns and measuring them")  # once: what is chosen, and how often, is drawn
        while log.remaining:
            state.run()
        return LearnedModel(fit=state.model, marginals=log.marginals, merges={})


def _weights(names: Attributes, sets: Sequence[set[str]], sizes: Mapping[str, int]) -> dict[Attributes, int]:
    """Returns for each subset of a workload set how much of the workload it touches."""
    found: dict[Attributes, int] = {}
    for subset in _subsets(names, sets):
        if subset not in found and cells(subset, sizes) <= MOST_CELLS:
            found[subset] = min(sum(len(each.intersection(subset)) for each in sets), _LARGEST_WEIGHT)
    return found


def _subsets(names: Attributes, sets: Sequence[set[str]]) -> Iterator[Attributes]:
    for each in sets:
        ordered = [name for name in names if name in each]
        for size in range(1, len(ordered) + 1):
            yield from combinations(ordered, size)


@dataclass(kw_only=True)
class _Rounds:
    """The state of a run: the model so far, and what a round costs now."""

    log: MeasurementLog
    rows: CodedRows
    zeros: list[Factor]
    weights: Mapping[Attributes, int]
    most_cells: int
    total: float | None
    price: Fraction
    model: GraphicalModel
    counted: dict[Attributes, Integers] = field(default_factory=dict)

    def refit(self) -> None:
        """Fits the model to all that was measured."""
        marginals = self.log.marginals
        self.model = fit(self.rows.sizes, marginals, total=self.total, zeros=self.zeros, start=self.model)

    def run(self) -> None:
        """Does one round: a choice, a measurement, a fit, and the price of the next."""
        if self.log.remaining < 2 * self.price:
            self.price = self.log.remaining
        price = (1 - _CHOICE) * self.price
        sigma = self.log.sigma(price)
        candidates = self._candidates()
        found = zip(candidates, self.model.many_counts(candidates), strict=True)
        scores = [self._score(names, estimate, sigma) for names, estimate in found]
        most = max(self.weights[names] for names in candidates)
        chosen = candidates[self.log.choose(scores, rho=_CHOICE * self.price, weight=most)]
        before = self.model.counts(chosen)
        self.log.marginal(self.rows, chosen, rho=price)
        self.refit()
        moved = float(np.abs(self.model.counts(chosen) - before).sum())
        if moved <= _EXPECTED * sigma * before.size:
            self.price *= _DEARER

    def _candidates(self) -> list[Attributes]:
        """Returns the sets that the model has room for; single columns always have a place in it."""
        used = (self.log.spent + self.price) / self.log.budget
        limit = float(self.most_cells * used)
        known = [marginal.attributes for marginal in self.log.marginals] + [zero.attributes for zero in self.zeros]
        sizes = self.rows.sizes
        alone = [names for names in self.weights if len(names) == 1]
        found = [names for names in self.weights if len(names) > 1 and tree_size(sizes, [*known, names]) <= limit]
        return found + alone

    def _score(self, names: Attributes, estimate: Table, sigma: float) -> int:
        if names not in self.counted:
            self.counted[names] = self.rows.counts(names)
        counts = self.counted[names]
        penalty = round(_EXPECTED * sigma * counts.size * STEPS)
        return self.weights[names] * (l1_error(counts, estimate) - penalty)
