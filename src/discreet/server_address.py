"""Where a PostgreSQL server is: an address without a password, and the table that it may name.

Passwords come from where libpq looks for them (`postgres_url`). So nothing that is kept here is a secret, and still no
more of it is shown than the host, the database and the table.
"""

from __future__ import annotations

from typing import Self
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.postgres_url import is_postgres, without

MYSQL = ("mysql://", "mariadb://")
"""How the addresses of MariaDB servers begin (`engines.mariadb.address`)."""

_FORM = "postgresql://HOST/DATABASE"
_SERVERS = ("postgres:/", "postgresql:/", *(beginning.removesuffix("/") for beginning in MYSQL))  # one slash as a path


@dataclass(frozen=True, slots=True, repr=False)
class ServerAddress:
    """The address of a database of a PostgreSQL server.

    Args:
        netloc: user, host and port, as libpq reads them; empty where the environment or a service gives them.
        database: the name of the database; empty where the environment or a service gives it.
        options: other parameters of libpq, such as sslmode, in the order of their names.

    >>> ServerAddress.of("postgresql://ana@db.example:5433/clinic?sslmode=verify-full")
    ServerAddress(postgresql://db.example:5433/clinic)
    """

    netloc: str
    database: str
    options: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, url: str) -> Self:
        """Reads the address of a database.

        Raises:
            InvalidParameter: if it is none, or has a password in it, which is not repeated.
        """
        netloc, parts, options = _taken_apart(url, "server")
        if len(parts) > 1:
            raise InvalidParameter(
                "server", hide_secrets(url), f"to be like {_FORM}", "Remove what follows the database."
            )
        return cls(netloc, parts[0] if parts else "", options)

    @property
    def conninfo(self) -> str:
        """The address as libpq reads it."""
        return f"postgresql://{self.netloc}/{quote(self.database, safe='')}" + (
            f"?{urlencode(self.options)}" if self.options else ""
        )

    @property
    def host(self) -> str:
        """The host and the port, without a user."""
        return self.netloc.rpartition("@")[2]

    @property
    def user(self) -> str:
        """The role that connects; empty where the environment or a service gives it."""
        return unquote(self.netloc.rpartition("@")[0])

    def __repr__(self) -> str:
        return f"ServerAddress({self})"

    def __str__(self) -> str:
        return f"postgresql://{self.host}/{self.database}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTable:
    """A table of a database of a PostgreSQL server.

    >>> ServerTable.of("postgresql://db.example/clinic/care.visits")
    ServerTable(server=ServerAddress(postgresql://db.example/clinic), schema='care', table='visits')
    """

    server: ServerAddress
    schema: str = "public"
    table: str

    @classmethod
    def of(cls, url: str) -> Self:
        """Reads an address that ends in a table, or in a schema, a point and a table.

        Raises:
            InvalidParameter: if it is none, or has a password in it, which is not repeated.
        """
        netloc, parts, options = _taken_apart(url, "source")
        if len(parts) != 2 or not parts[1]:
            hint = "Write the database and the table, like postgresql://db.example/clinic/public.visits."
            raise InvalidParameter("source", hide_secrets(url), f"to be like {_FORM}/SCHEMA.TABLE", hint)
        return cls.within(ServerAddress(netloc, parts[0], options), parts[1])

    @classmethod
    def within(cls, server: ServerAddress, name: str) -> Self:
        """Returns the table of a database that SCHEMA.TABLE names, or TABLE of the schema public."""
        schema, point, table = name.partition(".")
        return cls(server=server, schema=schema, table=table) if point else cls(server=server, table=name)


COPY = r"""psql ADDRESS -c "\copy (SELECT * FROM TABLE) TO 'FILE.csv' WITH (FORMAT csv, HEADER)" """.rstrip()
"""The command that copies a table of a server to a file."""


def check_is_file(path: object, name: str = "source") -> None:
    """Refuses the address of a server where a file is wanted; it is not repeated, for there may be a password in it.

    >>> check_is_file("visits.csv")
    """
    if str(path).startswith(_SERVERS):
        raise InvalidParameter(name, "an address", "to be a file", f"Copy the rows to one first: {COPY}")


def hide_secrets(url: str) -> str:
    """Returns an address to be shown: without user, password and parameters.

    >>> hide_secrets("postgresql://ana:secret@db/clinic/visits?password=secret")
    'postgresql://db/clinic/visits'
    """
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _taken_apart(url: str, name: str) -> tuple[str, list[str], tuple[tuple[str, str], ...]]:
    """Returns the network location, the parts of the path and the parameters of an address without a password."""
    if not is_postgres(url):
        raise InvalidParameter(name, hide_secrets(url), f"to be like {_FORM}")
    parts = urlsplit(without(url, called=name)[0])
    path = [unquote(part) for part in parts.path.removeprefix("/").split("/")] if parts.path.strip("/") else []
    return parts.netloc, path, tuple(sorted(parse_qsl(parts.query, keep_blank_values=True)))
