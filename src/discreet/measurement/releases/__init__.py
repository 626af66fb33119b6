"""Releases: what serves the needs of aggregates. Every exact number meets its noise here."""
