"""The user that reads a table and can do nothing else: the lines that make one, for an administrator to run."""

from __future__ import annotations

from collections.abc import Sequence

from discreet.engines.mariadb.address import MariaDBTable
from discreet.engines.mariadb.dialect import DIALECT
from discreet.errors import InvalidParameter

ROLE = "discreet_reader"
"""What a user is called unless it is given another name."""


def role_statements(
    table: MariaDBTable, columns: Sequence[str] = (), *, role: str = ROLE, host: str = "%", seconds: int = 600
) -> list[str]:
    """Returns the statements that make a user who can read some columns of a table, and do nothing else.

    Without a password, anyone could be this user: the account is locked until it is given one by
    ``ALTER USER ... IDENTIFIED BY '...' ACCOUNT UNLOCK``.

    Args:
        table: which it may read.
        columns: of these alone; without any, all that the table has now and later.
        role: its name.
        host: the hosts from which it connects, % for all.
        seconds: after which its statements are stopped, unless a session sets another limit.

    >>> print(role_statements(MariaDBTable.of("mysql://db/clinic/visits"), ["ward"])[1])
    GRANT SELECT (`ward`) ON `clinic`.`visits` TO `discreet_reader`@`%`
    """
    if not role or seconds < 1:
        raise InvalidParameter("role", role, "to have a name, and a timeout of at least one second")
    who = f"{DIALECT.quote_name(role)}@{DIALECT.quote_name(host)}"
    listed = f" ({', '.join(map(DIALECT.quote_name, columns))})" if columns else ""
    place = f"{DIALECT.quote_name(table.server.database)}.{DIALECT.quote_name(table.table)}"
    return [
        f"CREATE USER {who} WITH MAX_STATEMENT_TIME {seconds} ACCOUNT LOCK",
        f"GRANT SELECT{listed} ON {place} TO {who}",
    ]
