"""A PostgreSQL server as an engine: the whole aggregation happens there, in one read-only transaction."""

from discreet.engines.postgres.engine import Postgres

__all__ = ["Postgres"]
