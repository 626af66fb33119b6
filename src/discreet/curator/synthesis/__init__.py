"""Synthetic tables made under the ledger."""
