"""Profiles: a paid description of a table, and what follows from it about what answers leave out."""
