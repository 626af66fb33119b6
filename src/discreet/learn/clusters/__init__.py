"""Clusters of rows, from a private coreset."""
