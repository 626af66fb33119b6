"""Guarantees as exact amounts: how they add up, which implies which, and what they give to a group; budgets.

Every amount is a rational. A float means its shortest decimal, so 0.1 is one tenth and ten of them are exactly
one. Where a formula leaves the rationals the result is rounded up: a loss may be overstated in its last digits, never
understated.

Notation: P, Q are the output laws on two neighbouring datasets, in either order; D_a is the Renyi divergence of
order a.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import fields
from fractions import Fraction
from typing import Any, Self, TypeVar, overload

from discreet import check
from discreet.check import Number, assign
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.exact import root_above
from discreet.privacy.amounts import below_one, decimal, group_delta, group_size, repetitions, short
from discreet.privacy.unit import Neighbours

L = TypeVar("L", bound="Loss")


class Loss(ABC):
    """A differential-privacy guarantee, as one or two exact amounts.

    ``a + b`` is the guarantee of releasing both, ``a * k`` of k releases. ``a <= b`` says that a implies b,
    by an elementary theorem named at `_implied_guarantees`; where no such theorem leads from one kind to the other,
    ``<=`` is False both ways.
    """

    __slots__ = ()

    @abstractmethod
    def _implied_guarantees(self) -> dict[type[Loss], tuple[Fraction, ...]]:
        """Returns this guarantee's amounts in its own kind and in each kind that an elementary theorem leads to."""

    @abstractmethod
    def _sum(self, other: Loss) -> Loss | None:
        """Returns the composition with another loss, or None if the kinds have no common rule."""

    @abstractmethod
    def _times(self, count: int) -> Self:
        """Returns the composition of so many releases."""

    @abstractmethod
    def group(self, size: int) -> Self:
        """Returns the guarantee for a group of so many units that change together."""

    @classmethod
    def compose(cls, releases: Iterable[tuple[Self, int]]) -> Self:
        """Returns the composition of so many releases of each loss; that of none is zero.

        >>> print(ApproxDP.compose([(ApproxDP(1, 1e-6), 2), (ApproxDP(0.5, 0), 1)]))
        epsilon=2.5, delta=2e-06
        """
        total: Any = cls(*[0] * len(fields(cls)))  # type: ignore[arg-type]
        for loss, count in releases:
            total = total + loss * count
        return total  # type: ignore[no-any-return]

    def __add__(self, other: Loss) -> Loss:
        if not isinstance(other, Loss):
            return NotImplemented
        total = self._sum(other)
        if total is None:
            raise TypeError(
                f"{type(self).__name__} and {type(other).__name__} do not add up. Account for both in one kind, "
                "e.g. state a pure epsilon as ZCDP(epsilon**2 / 2), or let accounting.epsilon compose their events."
            )
        return total

    def __mul__(self, count: int) -> Self:
        return self._times(repetitions(count))

    def __rmul__(self, count: int) -> Self:
        return self * count

    def __le__(self, other: Loss) -> bool:
        if not isinstance(other, Loss):
            return NotImplemented
        if self.is_zero:
            return True
        mine, limits = self._implied_guarantees().get(type(other)), other._implied_guarantees()[type(other)]
        return mine is not None and all(amount <= limit for amount, limit in zip(mine, limits, strict=True))

    def __lt__(self, other: Loss) -> bool:
        if not isinstance(other, Loss):
            return NotImplemented
        return self <= other and not other <= self

    def __ge__(self, other: Loss) -> bool:
        if not isinstance(other, Loss):
            return NotImplemented
        return other <= self

    def __gt__(self, other: Loss) -> bool:
        if not isinstance(other, Loss):
            return NotImplemented
        return other < self

    @property
    def is_zero(self) -> bool:
        """Returns whether the output laws are equal on neighbours, which implies every guarantee."""
        return not any(self._implied_guarantees()[type(self)])

    def _set(self, **amounts: Number) -> None:
        """Sets its amounts, while it is being built."""
        assign(self, **{name: _amount(name, amount) for name, amount in amounts.items()})


def _amount(name: str, amount: Number) -> Fraction:
    """Returns an amount of at least 0, and below 1 if it is a delta."""
    return below_one(delta=amount) if name == "delta" else check.not_negative(**{name: amount})  # type: ignore[arg-type]


def convert(loss: L, *, given: Neighbours | str, wanted: Neighbours | str) -> L:
    """Returns a guarantee for one neighbour relation, restated for another.

    Args:
        loss: what holds for the relation `given`.
        given: the relation it holds for.
        wanted: the relation to restate it for.

    Returns:
        The loss itself if the relations are equal. From ADD_REMOVE to REPLACE the loss of a group of two.

    Raises:
        InvalidParameter: from REPLACE to ADD_REMOVE, or if the group bound is refused (see `Loss.group`).

    Formal guarantee: to replace a unit is to remove one and to add one, a path of two neighbours, so group privacy
    applies. The way back does not exist: under REPLACE the number of units may be released exactly.

    >>> from discreet.privacy import PureDP
    >>> print(convert(PureDP(0.5), given="add_remove", wanted="replace"))
    epsilon=1
    """
    if not isinstance(loss, Loss):
        raise InvalidParameter("loss", loss, "to be a Loss", "Pass e.g. PureDP(1).")
    relations = Neighbours(given), Neighbours(wanted)
    if relations[0] is relations[1]:
        return loss
    if relations == (Neighbours.ADD_REMOVE, Neighbours.REPLACE):
        return loss.group(2)
    raise InvalidParameter(
        "wanted",
        relations[1].value,
        "to follow from a guarantee for 'replace'",
        "Under 'replace' the number of units may be public. Compute the loss from sensitivities for 'add_remove'.",
    )


@dataclass(frozen=True, slots=True, init=False)
class PureDP(Loss):
    """Pure differential privacy: P(S) <= e^epsilon Q(S) for every set S of outputs.

    Args:
        epsilon: at least 0.

    Raises:
        InvalidParameter: if epsilon is negative, not finite or no number.

    Formal guarantee: composition adds epsilons, also under adaptive choice (Dwork, McSherry, Nissim, Smith 2006).

    >>> sum([PureDP(0.1)] * 10, start=PureDP(0)) == PureDP(1)
    True
    """

    epsilon: Fraction

    def __init__(self, epsilon: Number) -> None:
        self._set(epsilon=epsilon)

    def __str__(self) -> str:
        return f"epsilon={decimal(self.epsilon)}"

    def _implied_guarantees(self) -> dict[type[Loss], tuple[Fraction, ...]]:
        """Approximate DP with delta 0; zCDP with rho = epsilon^2 / 2 (Bun and Steinke 2016, Proposition 1.4)."""
        return {
            PureDP: (self.epsilon,),
            ApproxDP: (self.epsilon, Fraction(0)),
            ZCDP: (self.epsilon**2 / 2, Fraction(0)),
        }

    @overload
    def __add__(self, other: PureDP) -> PureDP: ...
    @overload
    def __add__(self, other: ApproxDP) -> ApproxDP: ...
    @overload
    def __add__(self, other: Loss) -> Loss: ...
    def __add__(self, other: Loss) -> Loss:
        return Loss.__add__(self, other)

    def _sum(self, other: Loss) -> Loss | None:
        if isinstance(other, PureDP):
            return PureDP(short(self.epsilon + other.epsilon))
        return other._sum(self) if isinstance(other, ApproxDP) else None

    def _times(self, count: int) -> PureDP:
        return PureDP(self.epsilon * count)

    def group(self, size: int) -> PureDP:
        """Multiplies epsilon by the size: the definition applied along a path of neighbours.

        >>> print(PureDP(0.1).group(3))
        epsilon=0.3
        """
        return PureDP(self.epsilon * group_size(size))


@dataclass(frozen=True, slots=True, init=False)
class ApproxDP(Loss):
    """Approximate differential privacy: P(S) <= e^epsilon Q(S) + delta for every set S of outputs.

    Args:
        epsilon: at least 0.
        delta: at least 0 and below 1, since with delta = 1 the inequality says nothing.

    Raises:
        InvalidParameter: if an amount is outside its domain, or a composition reaches delta = 1.

    Formal guarantee: composition adds both amounts, also under adaptive choice (Dwork, Kenthapadi, McSherry, Mironov,
    Naor 2006).

    >>> print(ApproxDP(1, 1e-6) + PureDP(0.5))
    epsilon=1.5, delta=1e-06
    """

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Number, delta: Number) -> None:
        self._set(epsilon=epsilon, delta=delta)

    def __str__(self) -> str:
        return f"epsilon={decimal(self.epsilon)}, delta={decimal(self.delta)}"

    def _implied_guarantees(self) -> dict[type[Loss], tuple[Fraction, ...]]:
        """Pure DP if delta is 0; approximate zCDP with (epsilon^2 / 2, delta) (Bun and Steinke 2016, section 8)."""
        forms: dict[type[Loss], tuple[Fraction, ...]] = {
            ApproxDP: (self.epsilon, self.delta),
            ZCDP: (self.epsilon**2 / 2, self.delta),
        }
        return forms if self.delta else forms | {PureDP: (self.epsilon,)}

    @overload
    def __add__(self, other: PureDP | ApproxDP) -> ApproxDP: ...
    @overload
    def __add__(self, other: Loss) -> Loss: ...
    def __add__(self, other: Loss) -> Loss:
        return Loss.__add__(self, other)

    def _sum(self, other: Loss) -> Loss | None:
        if not isinstance(other, PureDP | ApproxDP):
            return None
        delta = other.delta if isinstance(other, ApproxDP) else 0
        return ApproxDP(short(self.epsilon + other.epsilon), short(self.delta + delta))

    def _times(self, count: int) -> ApproxDP:
        return ApproxDP(self.epsilon * count, self.delta * count)

    def group(self, size: int) -> ApproxDP:
        """Returns (k epsilon, delta (e^(k epsilon) - 1) / (e^epsilon - 1)) for k units, delta rounded up.

        The sum of delta e^(i epsilon) for i below k, from the definition along a path of k neighbours (Vadhan 2017,
        Lemma 2.2). The true delta of one mechanism can be far smaller: recompute it at k times its sensitivity if you
        can.

        Raises:
            InvalidParameter: if delta would reach 1, where the bound says nothing.

        >>> print(ApproxDP(1, 1e-5).group(2))
        epsilon=2, delta=3.71829e-05
        """
        size = group_size(size)
        if size == 1:
            return self
        return ApproxDP(self.epsilon * size, group_delta(self.epsilon, self.delta, size))


@dataclass(frozen=True, slots=True, init=False)
class ZCDP(Loss):
    """Zero-concentrated differential privacy: D_a(P || Q) <= rho a for every order a > 1.

    With delta above 0 it is the approximate form: P = (1 - delta) P' + delta P'' and likewise Q, where P' and Q'
    satisfy the inequality (Bun and Steinke 2016, Definitions 1.1 and 8.1).

    Args:
        rho: at least 0.
        delta: at least 0 and below 1; 0 if left out.

    Raises:
        InvalidParameter: if an amount is outside its domain, or a composition reaches delta = 1.

    Formal guarantee: composition adds both amounts, also under adaptive choice (Bun and Steinke 2016, Lemma 1.7 and
    section 8).

    >>> print(ZCDP(0.25) * 2, "|", ZCDP(0.25) + ZCDP(0.25, 1e-9))
    rho=0.5 | rho=0.5, delta=1e-09
    """

    rho: Fraction
    delta: Fraction

    def __init__(self, rho: Number, delta: Number = 0) -> None:
        self._set(rho=rho, delta=delta)

    def __str__(self) -> str:
        return f"rho={decimal(self.rho)}" + (f", delta={decimal(self.delta)}" if self.delta else "")

    def _implied_guarantees(self) -> dict[type[Loss], tuple[Fraction, ...]]:
        return {ZCDP: (self.rho, self.delta)}

    @overload
    def __add__(self, other: ZCDP) -> ZCDP: ...
    @overload
    def __add__(self, other: Loss) -> Loss: ...
    def __add__(self, other: Loss) -> Loss:
        return Loss.__add__(self, other)

    def _sum(self, other: Loss) -> Loss | None:
        if not isinstance(other, ZCDP):
            return None
        return ZCDP(short(self.rho + other.rho), short(self.delta + other.delta))

    def _times(self, count: int) -> ZCDP:
        return ZCDP(self.rho * count, self.delta * count)

    def group(self, size: int) -> ZCDP:
        """Multiplies rho by the square of the size (Bun and Steinke 2016, Proposition 1.9).

        Raises:
            InvalidParameter: if delta is above 0: the proposition is about the plain form only.

        >>> ZCDP(0.5).group(2) == ZCDP(2)
        True
        """
        size = group_size(size)
        if self.delta and size > 1:
            raise InvalidParameter(
                "delta",
                self.delta,
                "= 0 for the group privacy of zCDP",
                "Convert to (epsilon, delta) first, then group.",
            )
        return ZCDP(self.rho * size**2, self.delta)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class GDP(Loss):
    """Gaussian differential privacy: telling P from Q is no easier than telling N(0, 1) from N(mu, 1).

    Args:
        mu: at least 0. Its square is what is stored, because squares add up exactly.

    Raises:
        InvalidParameter: if mu is negative, not finite or no number.

    Formal guarantee: composition adds squares, also under adaptive choice (Dong, Roth, Su 2022, Corollary 3.3).

    >>> GDP(3) + GDP(4) == GDP(5)
    True
    """

    mu_squared: Fraction

    def __init__(self, mu: Number) -> None:
        self._set(mu_squared=_amount("mu", mu) ** 2)

    @classmethod
    def from_square(cls, mu_squared: Number) -> GDP:
        """Returns the guarantee whose mu is the square root of a rational.

        >>> GDP.from_square(2) <= GDP("1.4142135623731")
        True
        """
        result = cls(0)
        result._set(mu_squared=mu_squared)
        return result

    @property
    def mu(self) -> Fraction:
        """Returns the mean that the guarantee allows.

        It is exact if it is rational, else rounded up in about its 64th bit.
        """
        return root_above(self.mu_squared)

    def __repr__(self) -> str:
        exact = self.mu**2 == self.mu_squared
        return f"GDP({self.mu!r})" if exact else f"GDP.from_square({self.mu_squared!r})"

    def __str__(self) -> str:
        return f"mu={decimal(self.mu)}"

    def _implied_guarantees(self) -> dict[type[Loss], tuple[Fraction, ...]]:
        """zCDP with rho = mu^2 / 2, the divergence of the two normal laws (Dong, Roth, Su 2022)."""
        return {GDP: (self.mu_squared,), ZCDP: (self.mu_squared / 2, Fraction(0))}

    @overload
    def __add__(self, other: GDP) -> GDP: ...
    @overload
    def __add__(self, other: Loss) -> Loss: ...
    def __add__(self, other: Loss) -> Loss:
        return Loss.__add__(self, other)

    def _sum(self, other: Loss) -> Loss | None:
        return GDP.from_square(short(self.mu_squared + other.mu_squared)) if isinstance(other, GDP) else None

    def _times(self, count: int) -> GDP:
        return GDP.from_square(self.mu_squared * count)

    def group(self, size: int) -> GDP:
        """Multiplies mu by the size (Dong, Roth, Su 2022, Theorem 2.14 and the remark on Gaussian trade-offs).

        >>> GDP(1).group(3) == GDP(3)
        True
        """
        return GDP.from_square(self.mu_squared * group_size(size) ** 2)
