"""Readings as SQL: expressions, relations, bounded contributions and statements."""
