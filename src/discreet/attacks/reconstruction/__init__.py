"""Attacks on released numbers: secret values computed from counts, totals, averages and models."""
