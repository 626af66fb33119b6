"""A MariaDB server as an engine: the whole aggregation happens there, in one read-only snapshot."""

from discreet.engines.mariadb.engine import MariaDB

__all__ = ["MariaDB"]
