"""The report of a ledger: budgets over time, who asked what, what was released, whether its chain is whole."""
