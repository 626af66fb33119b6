"""Attacks on released records: who a row is about, what it tells about them, and who is in the data."""
