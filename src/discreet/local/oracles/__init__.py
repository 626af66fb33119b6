"""Frequency oracles: clients randomize one value each, an aggregator estimates the share of every value."""
