"""Intervals for a population: the error of drawing people at random, added to that of noise. Post-processing."""
