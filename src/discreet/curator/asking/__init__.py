"""A question from its bound plan to its answer: planned, charged, read, answered; explained, rehearsed, compared."""
