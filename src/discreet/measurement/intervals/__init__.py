"""Errors of aggregates: reaches of noise, interval arithmetic, and estimators of sums and means."""
