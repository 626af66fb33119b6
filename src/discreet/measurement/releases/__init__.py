"""Releases: every exact number meets its noise here."""
