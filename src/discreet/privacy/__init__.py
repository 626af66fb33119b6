"""What is promised to whom: units and neighbours, losses and budgets, events, and estimates that carry them."""

from discreet.privacy import events
from discreet.privacy.budget import AnyBudget, Budget, RenewalSchedule, RenewingBudget
from discreet.privacy.estimate import Estimate
from discreet.privacy.losses import GDP, ZCDP, ApproxDP, Loss, PureDP, convert
from discreet.privacy.unit import Neighbours, Unit

__all__ = [
    "GDP",
    "ZCDP",
    "AnyBudget",
    "ApproxDP",
    "Budget",
    "Estimate",
    "Loss",
    "Neighbours",
    "PureDP",
    "RenewalSchedule",
    "RenewingBudget",
    "Unit",
    "convert",
    "events",
]
