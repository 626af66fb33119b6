"""Private tests of hypotheses, with levels that count the noise."""
