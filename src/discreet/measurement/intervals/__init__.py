"""How wrong aggregates are: variances and intervals of what is computed from noisy statistics."""
