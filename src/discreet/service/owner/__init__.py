"""The owner of the ledger: the one process that charges, stores and fails, hands work to workers, reads no table."""
