"""The story that `make demo` tells."""

from discreet.demo.story import tell

__all__ = ["tell"]
