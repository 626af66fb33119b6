"""What a ledger tells, as a page: budgets over time, who asked what, what was released, whether its chain is whole."""
