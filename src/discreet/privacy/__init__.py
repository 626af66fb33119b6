"""What is promised to whom: units and neighbours, losses and budgets, events, and estimates that carry them."""

from discreet.privacy import events
from discreet.privacy.estimate import Estimate
from discreet.privacy.losses import GDP, ZCDP, ApproxDP, Budget, Loss, PureDP, convert
from discreet.privacy.unit import Neighbours, Unit

__all__ = ["GDP", "ZCDP", "ApproxDP", "Budget", "Estimate", "Loss", "Neighbours", "PureDP", "Unit", "convert", "events"]
