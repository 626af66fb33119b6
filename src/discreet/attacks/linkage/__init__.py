"""Attacks on released records: who a row is about, what it reveals about them, and who is in the data."""
