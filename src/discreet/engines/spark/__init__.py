"""Spark: SQL of a session of ours, on a cluster or on this machine."""

from discreet.engines.spark.engine import Spark

__all__ = ["Spark"]
