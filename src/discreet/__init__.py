"""Learn from private data without exposing anyone in it."""
