"""The one way to say how much may be spent."""

from __future__ import annotations

from typing import overload

from discreet import check
from discreet.check import Number
from discreet.errors import InvalidParameter
from discreet.privacy.amounts import below_one
from discreet.privacy.loss import Loss
from discreet.privacy.losses import ZCDP, ApproxDP, PureDP

_CHOICES = "Pass epsilon=1, or epsilon=1 with delta=1e-6, or rho=0.1, or rho=0.1 with delta=1e-6."


@overload
def Budget(*, epsilon: Number) -> PureDP: ...
@overload
def Budget(*, epsilon: Number, delta: Number) -> ApproxDP: ...
@overload
def Budget(*, rho: Number, delta: Number = ...) -> ZCDP: ...
@overload
def Budget(*, epsilon: Number | None = ..., delta: Number | None = ..., rho: Number | None = ...) -> Loss: ...
def Budget(*, epsilon: Number | None = None, delta: Number | None = None, rho: Number | None = None) -> Loss:
    """The largest loss that may be spent: pure, approximate or zero-concentrated, by the amounts that are named.

    Args:
        epsilon: above 0; alone it makes a `PureDP`, with delta an `ApproxDP`.
        delta: strictly between 0 and 1; it accompanies epsilon or rho. Leave it out to say zero.
        rho: above 0; it makes a `ZCDP`, with delta the approximate form.

    Returns:
        The loss that no sum of charges may exceed.

    Raises:
        InvalidParameter: if an amount is outside its domain, or the amounts do not go together.

    >>> print(Budget(epsilon=1), "|", Budget(epsilon=2, delta=1e-6), "|", Budget(rho=0.1))
    epsilon=1 | epsilon=2, delta=1e-06 | rho=0.1
    """
    if (epsilon is None) == (rho is None):
        raise _wrong_mixture(epsilon, delta, rho)
    if delta is not None:
        check.positive(delta=delta)
        below_one(delta=delta)
    if rho is not None:
        return ZCDP(check.positive(rho=rho), 0 if delta is None else delta)
    amount = check.positive(epsilon=epsilon)
    return PureDP(amount) if delta is None else ApproxDP(amount, delta)


def _wrong_mixture(epsilon: object, delta: object, rho: object) -> InvalidParameter:
    if epsilon is not None:
        return InvalidParameter("rho", rho, "without epsilon: a budget has one currency", _CHOICES)
    if delta is not None:
        return InvalidParameter("delta", delta, "to accompany epsilon or rho", _CHOICES)
    return InvalidParameter("epsilon", None, "or rho to be given", _CHOICES)
