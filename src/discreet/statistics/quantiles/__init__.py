"""Medians and quantiles with intervals for those of the population."""
