"""Attacks on estimates: what wrong rows do to private, robust and other estimators."""
