"""Estimates that few values cannot move far: trimmed means, M-estimates, heavy tails, blocks."""
