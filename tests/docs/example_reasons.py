"""Public names whose docstrings have no example of their own and that no example elsewhere shows, and why.

The list may only shrink: a name that gets an example, or is shown by one, has to leave it.
"""

REASONS: dict[str, str] = {}
"""Names by reason."""
