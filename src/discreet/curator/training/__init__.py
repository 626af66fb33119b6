"""Learners trained under the ledger."""
