"""Statistics that are published again and again: one value per period, and a budget for the whole stream."""

from discreet.stream.participation import Participation
from discreet.stream.running_sum import RunningSum
from discreet.stream.sliding_window import SlidingWindow

__all__ = ["Participation", "RunningSum", "SlidingWindow"]
