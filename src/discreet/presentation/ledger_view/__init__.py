"""One view of a ledger, computed once for every face: entries, balances, burn-down and forecasts."""
