"""The role that reads a table and can do nothing else: the lines that make one, for an administrator to run."""

from __future__ import annotations

from collections.abc import Sequence

from discreet.engines.postgres.dialect import DIALECT
from discreet.errors import InvalidParameter
from discreet.server_address import ServerTable

ROLE = "discreet_reader"
"""What a role is called unless it is given another name."""

SILENT = {
    "log_min_error_statement": "panic",  # no statement is logged because it failed
    "log_min_duration_statement": "-1",  # nor because it took long
    "log_statement": "none",
    "log_duration": "off",
    "log_parameter_max_length": "0",
    "log_parameter_max_length_on_error": "0",
    "log_error_verbosity": "terse",  # without details, in which values are
    "auto_explain.log_min_duration": "-1",
}
"""What only a superuser sets for a role: the server's log does not repeat what is asked."""


def role_statements(
    table: ServerTable, columns: Sequence[str] = (), *, role: str = ROLE, seconds: int = 600
) -> list[str]:
    """Returns the statements that make a role which can read some columns of a table, and nothing else.

    The role has no password: set one in psql, or let a certificate or the host's own user tell who it is. A role can
    lift the limits that it was given for its own session, but not those of the log.

    Args:
        table: which it may read.
        columns: of these alone; without any, all that the table has now and later.
        role: its name.
        seconds: after which its statements are stopped, unless a session sets another limit.

    >>> print(role_statements(ServerTable.of("postgresql://db/clinic/visits"), ["ward"])[3])
    GRANT SELECT ("ward") ON "public"."visits" TO "discreet_reader"
    """
    if not role or seconds < 1:
        raise InvalidParameter("role", role, "to have a name, and a timeout of at least one second")
    if not table.server.database:
        hint = "Write it into the address, like postgresql:///clinic?service=clinic."
        raise InvalidParameter("server", str(table.server), "to name its database", hint)
    who, schema = DIALECT.quote_name(role), DIALECT.quote_name(table.schema)
    listed = f" ({', '.join(map(DIALECT.quote_name, columns))})" if columns else ""
    return [
        f"CREATE ROLE {who} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOINHERIT",
        f"GRANT CONNECT ON DATABASE {DIALECT.quote_name(table.server.database)} TO {who}",
        f"GRANT USAGE ON SCHEMA {schema} TO {who}",
        f"GRANT SELECT{listed} ON {schema}.{DIALECT.quote_name(table.table)} TO {who}",
        f"ALTER ROLE {who} SET default_transaction_read_only = 'on'",
        f"ALTER ROLE {who} SET statement_timeout = '{seconds}s'",
        *silent_statements(role),
    ]


def silent_statements(role: str) -> list[str]:
    """Returns the statements after which the server's log does not repeat what a role asks.

    >>> print(silent_statements("curators")[0])
    ALTER ROLE "curators" SET log_min_error_statement = 'panic'
    """
    return [f"ALTER ROLE {DIALECT.quote_name(role)} SET {name} = '{value}'" for name, value in SILENT.items()]
