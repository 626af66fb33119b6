"""Streams under the ledger: charged once, released one period at a time."""
