"""A question from its text to its answer."""
