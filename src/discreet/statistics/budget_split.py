"""Budgets of one call, and how they are divided between its releases."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from discreet import accounting, check
from discreet.check import Number
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.exact import root_above, root_below
from discreet.privacy import ZCDP, ApproxDP, Loss, PureDP

_HINT = "Pass epsilon=1, or epsilon=1 with delta=1e-6, or rho=0.1."


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """A budget for releases that are fixed in advance: pure epsilon, or a mu of Gaussian DP.

    Formal guarantee: releases whose shares add up to at most 1 satisfy `loss` together. Pure epsilons add up. Gaussian
    releases of shares f_i of mu^2 are sqrt(f_i) mu-GDP each, and mu-GDP together (Dong, Roth, Su 2022, Corollary 3.3);
    mu is the largest that keeps to (epsilon, delta) by the exact profile, or mu = sqrt(2 rho).

    Args:
        loss: what all of it may cost.
        epsilon: of this part, if it is pure.
        mu_squared: of this part, if it is Gaussian.
    """

    loss: Loss
    epsilon: Fraction | None
    mu_squared: Fraction | None

    @classmethod
    def of(cls, epsilon: Number | None = None, delta: Number | None = None, rho: Number | None = None) -> Spending:
        """Returns the budget as a caller states it: epsilon, epsilon and delta, or rho.

        >>> Spending.of(epsilon=1).is_pure, Spending.of(rho=0.5).mu_squared
        (True, Fraction(1, 1))
        """
        if rho is not None:
            if epsilon is not None or delta not in (None, 0):
                raise InvalidParameter("rho", rho, "to come without epsilon and delta", _HINT)
            amount = check.positive(rho=rho)
            return cls(loss=ZCDP(amount), epsilon=None, mu_squared=2 * amount)
        if epsilon is None:
            raise InvalidParameter("epsilon", epsilon, "to be given", _HINT)
        budget = check.positive(epsilon=epsilon)
        if delta is None or delta == 0:
            return cls(loss=PureDP(budget), epsilon=budget, mu_squared=None)
        slack = check.probability(delta=delta)
        mu = 1 / accounting.gaussian_sigma(budget, slack)
        return cls(loss=ApproxDP(budget, slack), epsilon=None, mu_squared=mu * mu)

    @property
    def is_pure(self) -> bool:
        """Returns whether there is no delta, so that noise is Laplace noise or a choice."""
        return self.epsilon is not None

    def share(self, part: Number) -> Spending:
        """Returns a part of it, of epsilon or of mu^2."""
        fraction = check.share(part=part)
        if fraction == 0:
            raise InvalidParameter("part", part, "> 0", "A part without budget releases nothing.")
        epsilon = None if self.epsilon is None else self.epsilon * fraction
        mu_squared = None if self.mu_squared is None else self.mu_squared * fraction
        return Spending(loss=self.loss, epsilon=epsilon, mu_squared=mu_squared)

    def shares(self, weights: Sequence[Number]) -> list[Spending]:
        """Returns parts in proportion to weights, which together are the whole."""
        amounts = [check.positive(weight=weight) for weight in weights]
        return [self.share(amount / sum(amounts)) for amount in amounts]

    @property
    def pure_epsilon(self) -> Fraction:
        """Returns the epsilon of a pure part.

        Raises:
            InvalidParameter: if the budget has a delta or a rho, which a pure release does not use.
        """
        if self.epsilon is None:
            raise InvalidParameter("delta", self.loss, "to be left out", "This needs no delta: pass epsilon only.")
        return self.epsilon

    @property
    def noise_multiplier(self) -> Fraction:
        """Returns sigma / sensitivity of one Gaussian release that uses all of this part, rounded up.

        Raises:
            InvalidParameter: if the budget is pure.
        """
        if self.mu_squared is None:
            hint = "Gaussian noise has no pure guarantee: pass e.g. delta=1e-6 as well."
            raise InvalidParameter("delta", None, "to be given", hint)
        return root_above(1 / self.mu_squared)

    @property
    def rho(self) -> Fraction:
        """Returns the zCDP of a Gaussian part, mu^2 / 2, or of a pure one, epsilon^2 / 2 (Bun and Steinke 2016)."""
        return self.epsilon**2 / 2 if self.epsilon is not None else (self.mu_squared or Fraction(0)) / 2

    @property
    def range_epsilon(self) -> Fraction:
        """Returns the epsilon of one bounded-range choice for this part.

        It is epsilon itself, or sqrt(8 rho), rounded down.
        """
        return self.epsilon if self.epsilon is not None else root_below(8 * self.rho)
