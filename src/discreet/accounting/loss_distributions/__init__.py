"""Distributions of privacy losses: dominating pairs of laws, one for each event, and how their losses add up."""
