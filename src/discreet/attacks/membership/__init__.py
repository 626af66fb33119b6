"""Attacks that find who is in a group: from means, from statistics of genomes, and from trained models."""
