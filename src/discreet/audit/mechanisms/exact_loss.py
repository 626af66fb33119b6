"""The exact privacy loss of a mechanism between two neighbours: both laws are written out, nothing is sampled."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from discreet import mechanisms
from discreet.audit.mechanisms import additive_laws, selection_laws
from discreet.audit.mechanisms.additive_laws import Ends, Recipe
from discreet.audit.mechanisms.epsilon_bound import claim_of
from discreet.check import Number
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.exact import float_above, float_below, settle
from discreet.mechanisms import Mechanism
from discreet.privacy import Neighbours
from discreet.privacy.events import Event
from discreet.report.display import Display, DisplayMixin

_DIGITS = 40
_SHOWN = Fraction(1, 10**12)

LAWS: dict[type[Mechanism], Callable[[Any, Any, Any], Recipe]] = {
    mechanisms.Laplace: additive_laws.laplace,
    mechanisms.DiscreteLaplace: additive_laws.discrete_laplace,
    mechanisms.Staircase: additive_laws.staircase,
    mechanisms.DiscreteGaussian: additive_laws.discrete_gaussian,
    mechanisms.ProposeTestRelease: additive_laws.propose_test_release,
    mechanisms.Exponential: selection_laws.exponential,
    mechanisms.PermuteAndFlip: selection_laws.permute_and_flip,
    mechanisms.ReportNoisyMax: selection_laws.noisy_max,
    mechanisms.RandomizedResponse: selection_laws.randomized_response,
    mechanisms.Quantile: selection_laws.quantile,
    mechanisms.PartitionSelection: selection_laws.partition_selection,
    mechanisms.SparseVector: selection_laws.sparse_vector,
}
"""Which mechanisms have a law that can be written out. `Gaussian` has one for each epsilon, see `exact`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactLoss(DisplayMixin):
    """Reports what two neighbours really cost, next to the claim.

    Attributes:
        mechanism: what was audited.
        epsilon: between which two rationals the largest privacy loss of any output lies, in either direction; None if
            there is none.
        epsilon_claimed: what the mechanism says of itself.
        delta: between which two rationals the smallest delta at the claimed epsilon lies, in either direction.
        delta_claimed: what the mechanism says of itself.
    """

    mechanism: str
    epsilon: Ends | None
    epsilon_claimed: float
    delta: Ends
    delta_claimed: float

    @property
    def passed(self) -> bool:
        """Returns whether these two neighbours keep to the claim, as far as forty digits show; others may not."""
        return self.delta[0] <= Fraction(self.delta_claimed)

    def summary(self) -> str:
        """Returns the finding in plain sentences."""
        most = "without bound" if self.epsilon is None else _between(self.epsilon)
        verdict = "within" if self.passed else "above"
        return (
            f"{self.mechanism}: on these two neighbours the largest privacy loss is {most}; at the claimed epsilon "
            f"{self.epsilon_claimed:.6g} delta is {_between(self.delta)}, {verdict} the claimed "
            f"{self.delta_claimed:.3g}. Other neighbours may cost more."
        )

    def _display(self) -> Display:
        rows = [
            ("largest privacy loss", "without bound" if self.epsilon is None else _between(self.epsilon)),
            ("epsilon, claimed", f"{self.epsilon_claimed:.6g}"),
            ("delta at that epsilon", _between(self.delta)),
            ("delta, claimed", f"{self.delta_claimed:.3g}"),
            ("verdict", "within the claim on these two neighbours" if self.passed else "above the claim"),
        ]
        notes = ("Other neighbours may cost more.",)
        return Display(title=f"{self.mechanism}, exactly", columns=("", ""), rows=rows, notes=notes)


def exact(
    mechanism: Mechanism,
    a: Any,
    b: Any,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    event: Event | None = None,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
) -> ExactLoss:
    """Computes the exact privacy loss between two values of a mechanism whose law can be written out.

    Args:
        mechanism: one of the discrete ones, or `Gaussian`.
        a: what `release` takes; a tuple (value, distance) for `ProposeTestRelease`.
        b: the same on a neighbour. That the two are neighbours is for the caller to know.
        epsilon: what is claimed, instead of the mechanism's event.
        delta: at which the claim is looked at; see `distinguish`.
        event: the claim, instead of the mechanism's own.
        neighbours: the relation for which the event is priced.

    Returns:
        An `ExactLoss`, in enclosures that contain the true numbers.

    Raises:
        InvalidParameter: if the law cannot be written out; `distinguish` takes every mechanism.

    Formal guarantee: the law is that of the parameters of the mechanism; that the code draws this law is the business
        of `fits` and `distinguish`. For delta = 0 the claim holds for the pair exactly if no output's ratio exceeds
        e^epsilon. Ratios that no number of digits separates from e^epsilon count as equal.

    >>> from discreet.mechanisms import Laplace, PermuteAndFlip
    >>> exact(Laplace(epsilon=1, sensitivity=1), 0, 1).passed
    True
    >>> print(exact(Laplace(epsilon=1, sensitivity=1), 0, 3).summary())
    Laplace: on these two neighbours the largest privacy loss is 3; at the claimed epsilon 1 delta is 0.632121, above \
the claimed 0. Other neighbours may cost more.
    """
    claim = claim_of(mechanism, epsilon=epsilon, delta=delta, event=event, neighbours=Neighbours(neighbours))
    if math.isinf(claim.epsilon):
        hint = "At this delta the event has no epsilon: pass a larger one, e.g. delta=1e-5."
        raise InvalidParameter("delta", delta, "to be one at which something is claimed", hint)
    at = Fraction(claim.epsilon)
    recipe = _law(mechanism, a, b, at)

    def enclose_losses(digits: int) -> tuple[Ends | None, Ends]:
        pieces = recipe(digits)
        losses = [side.loss() for side in (pieces, pieces.swapped_pieces)]
        known = [loss for loss in losses if loss is not None]
        both = (max(low for low, _ in known), max(high for _, high in known)) if len(known) == 2 else None
        excesses = [side.excess(at) for side in (pieces, pieces.swapped_pieces)]
        return both, (max(low for low, _ in excesses), max(high for _, high in excesses))

    loss, excess = settle(enclose_losses, digits=_DIGITS)
    return ExactLoss(
        mechanism=type(mechanism).__name__,
        epsilon=loss,
        epsilon_claimed=claim.epsilon,
        delta=excess,
        delta_claimed=claim.delta,
    )


def _law(mechanism: Mechanism, a: Any, b: Any, epsilon: Fraction) -> Recipe:
    if isinstance(mechanism, mechanisms.Gaussian):
        return additive_laws.gaussian(mechanism, a, b, epsilon)
    for kind in type(mechanism).__mro__:
        if kind in LAWS:
            return LAWS[kind](mechanism, a, b)
    hint = "Its law has no closed form here. Use audit.distinguish."
    raise InvalidParameter("mechanism", type(mechanism).__name__, "to have a law that can be written out", hint)


def _between(ends: Ends) -> str:
    low, high = ends
    if high - low <= _SHOWN:
        middle = (low + high) / 2
        return f"{float(middle):.6g}" if middle > _SHOWN or not high else f"at most {float_above(high):.1g}"
    return f"between {float_below(low):.6g} and {float_above(high):.6g}"
