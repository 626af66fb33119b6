"""How wrong aggregates are: reaches of noise, interval arithmetic, and estimators of sums and means."""
