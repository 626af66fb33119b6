"""Statistics that are published again and again: one value per period, and a budget for the whole stream."""

from discreet.stream.factor import Participation
from discreet.stream.running_sum import RunningSum, SlidingWindow

__all__ = ["Participation", "RunningSum", "SlidingWindow"]
