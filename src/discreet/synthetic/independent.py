"""Single columns: all one-way marginals, and rows in which columns are independent."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from discreet import accounting
from discreet.dataclass import dataclass
from discreet.privacy.events import Event
from discreet.progress import stage
from discreet.synthetic.coded_rows import CodedRows, checked_shape
from discreet.synthetic.domain import Domain
from discreet.synthetic.generator import Generator, LearnedModel
from discreet.synthetic.inference.estimation import fit
from discreet.synthetic.measurement_log import MeasurementLog, noise_event

_BITS = 60  # of the cube of a weight


@dataclass(frozen=True, kw_only=True)
class Independent(Generator):
    """Measures every column alone; rows that are drawn have independent columns, but for what is forbidden.

    The share of a column with n values is proportional to n^(2/3): the expected L1 error of a column of price r is
    proportional to n / sqrt(r), and by a Lagrange multiplier the sum of these at a fixed sum of prices is least where
    n r^(-3/2) is the same for all columns.

    Formal guarantee: that of `Generator`. All releases are normal noise of fixed scales, which together are mu-GDP with
    mu^2 the sum of their mu^2 (Dong, Roth, Su 2022, Corollary 3.3); mu is the largest that keeps to (epsilon, delta) by
    the exact curve (Balle, Wang 2018), so that there is more to spend than zCDP would allow: rho = mu^2 / 2.

    >>> model = Independent(epsilon=1, delta=1e-9, random_state=1).fit(
    ...     {"sex": ["F", "M"] * 500, "age": [20, 30, 40, 70] * 250},
    ...     domain={"sex": ["F", "M"], "age": range(0, 100, 25)},
    ... )
    >>> len(model.sample(20)["age"]), abs(model.rows - 1000) < 100
    (20, True)
    """

    def whole_rho(self) -> Fraction:
        """Returns mu^2 / 2 of the budget."""
        mu = 1 / accounting.gaussian_sigma(self.epsilon, self.delta)
        return mu * mu / 2

    def _prices(self, domain: Domain) -> dict[str, Fraction]:
        weights = {name: cells_weight(size) for name, size in domain.sizes.items()}
        return {name: self.rho(domain) * weight / sum(weights.values()) for name, weight in weights.items()}

    def plan_releases(self, domain: Domain) -> Sequence[Event]:
        """Returns one release for each column."""
        for zero in domain.zeros():
            checked_shape(zero.attributes, domain.sizes)
        return [noise_event(price) for price in self._prices(domain).values()]

    def measure_and_fit(
        self, log: MeasurementLog, rows: CodedRows, domain: Domain, total: float | None
    ) -> LearnedModel:
        """Measures each column, and fits."""
        stage("Measuring columns")
        for name, price in self._prices(domain).items():
            log.marginal(rows, (name,), rho=price)
        found = fit(domain.sizes, log.marginals, total=total, zeros=domain.zeros())
        return LearnedModel(fit=found, marginals=log.marginals, merges={})


def cells_weight(cells: int) -> int:
    """Returns cells^(2/3) in steps of 2^-20, in whole numbers, the same on all machines.

    >>> cells_weight(8) / 2**20
    4.0
    """
    target = cells * cells << _BITS
    root = 1 << -(-target.bit_length() // 3)
    while root**3 > target:  # Newton's method from above, which ends at the floor of the cube root
        root = (2 * root + target // root**2) // 3
    return root
