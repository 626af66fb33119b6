"""Budgets that renew: by which clock, and when."""
