"""What every guarantee can do: compose, repeat, be compared, cover a group, change its neighbour relation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Self, TypeVar

from discreet.errors import InvalidParameter
from discreet.privacy.amounts import repetitions
from discreet.privacy.unit import Neighbours

L = TypeVar("L", bound="Loss")


class Loss(ABC):
    """A differential-privacy guarantee, as one or two exact amounts.

    ``a + b`` is the guarantee of releasing both, ``a * k`` of k releases. ``a <= b`` says that whoever has a has b,
    by an elementary theorem named at `_implied`; where no such theorem leads from one kind to the other, ``<=`` is
    False both ways.
    """

    __slots__ = ()

    @abstractmethod
    def _implied(self) -> dict[type[Loss], tuple[Fraction, ...]]:
        """The amounts of this guarantee in its own kind and in each kind that an elementary theorem leads to."""

    @abstractmethod
    def _sum(self, other: Loss) -> Loss | None:
        """The composition with another loss, or None if the kinds have no common rule."""

    @abstractmethod
    def _times(self, count: int) -> Self:
        """The composition of so many releases."""

    @abstractmethod
    def group(self, size: int) -> Self:
        """Returns the guarantee for a group of so many units that change together."""

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
        mine, limits = self._implied().get(type(other)), other._implied()[type(other)]
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
        """Tells whether the output laws are equal on neighbours, which implies every guarantee."""
        return not any(self._implied()[type(self)])


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
