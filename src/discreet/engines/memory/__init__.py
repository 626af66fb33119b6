"""The reference engine, in plain Python."""

from discreet.engines.memory.engine import Memory

__all__ = ["Memory"]
