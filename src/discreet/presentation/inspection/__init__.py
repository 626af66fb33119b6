"""Checks a file for its steward before it is protected; only the steward sees what is private in it."""
