"""A curator elsewhere: `connect` gives one whose methods, answers and errors are those of `Curator`.

`remote_curator` has its methods, `http_transport` speaks to the service with the standard library alone, `dbapi` is the
same as a database for Python (PEP 249).
"""

from discreet.remote.remote_curator import RemoteCurator, connect

__all__ = ["RemoteCurator", "connect"]
