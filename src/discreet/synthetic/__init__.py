"""Synthetic tables: models of noisy marginals, and rows drawn from them."""
