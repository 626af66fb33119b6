"""Expressions: the table of functions, typed calls, and what each function means."""
