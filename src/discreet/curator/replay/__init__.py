"""Stored releases, and what follows from them for nothing."""
