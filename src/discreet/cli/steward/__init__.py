"""A steward's day: budgets and caps, acts on accounts, the history of the ledger, its backups."""
