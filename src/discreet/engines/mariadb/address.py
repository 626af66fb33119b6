"""Where a MariaDB server is: an address without a password, and the table that it may name.

A password comes from where the server's own programs look for it: MYSQL_PWD, or the group [client] of ~/.my.cnf. So
nothing that is kept here is a secret, and still no more of it is shown than the host, the database and the table.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.server_address import MYSQL, hide_secrets

_FORM = "mysql://HOST/DATABASE"
_OPTIONS = ("socket", "ssl_ca")
_PORT = 3306
_HINT = f"Write {_FORM}/TABLE, with special characters escaped, such as %40 for @."
_SECRETS = "Put the password into MYSQL_PWD, or into ~/.my.cnf below [client]."


def is_mariadb(source: object) -> bool:
    """Returns whether something is the address of a MariaDB or MySQL server.

    >>> is_mariadb("mysql://db.example/clinic/visits"), is_mariadb("visits.csv")
    (True, False)
    """
    return isinstance(source, str) and source.startswith(MYSQL)


@dataclass(frozen=True, slots=True, repr=False)
class MariaDBAddress:
    """The address of a database of a MariaDB server.

    Args:
        host: its name; empty for a socket, or where ~/.my.cnf names it.
        port: of the server.
        database: the name of the database.
        user: who connects; empty where ~/.my.cnf names it.
        options: `socket`, a path, and `ssl_ca`, a file of certificates by which the server's is checked.

    >>> MariaDBAddress.of("mysql://ana@db.example:3307/clinic?ssl_ca=/etc/ca.pem")
    MariaDBAddress(mysql://db.example:3307/clinic)
    """

    host: str
    port: int
    database: str
    user: str = ""
    options: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, url: str) -> Self:
        """Reads the address of a database.

        Raises:
            InvalidParameter: if it is none, or has a password in it, which is not repeated.
        """
        made, rest = cls._read(url, "server")
        if rest:
            raise InvalidParameter("server", hide_secrets(url), f"to be like {_FORM}", "Remove what follows it.")
        return made

    @classmethod
    def _read(cls, url: str, name: str) -> tuple[Self, list[str]]:
        """Returns an address, and the parts of the path behind the database."""
        user, password, parts = _split_user(url, name)
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        if password or "password" in options or "passwd" in options:
            raise InvalidParameter(name, "an address", "to have no password in it", _SECRETS)
        unknown = sorted(options.keys() - set(_OPTIONS))
        if unknown:
            hint = f"Known are {', '.join(_OPTIONS)}; all else is read from ~/.my.cnf."
            raise InvalidParameter(name, "an address", "to have known parameters only", hint)
        path = [unquote(part) for part in parts.path.strip("/").split("/") if part]
        try:
            port = parts.port or _PORT
        except ValueError:
            raise InvalidParameter(name, "an address", f"to be like {_FORM}", _HINT) from None
        if not path or "#" in url or not is_mariadb(url):
            raise InvalidParameter(name, "an address", f"to be like {_FORM}", _HINT)
        listed = tuple(sorted(options.items()))
        return cls(parts.hostname or "", port, path[0], unquote(user), listed), path[1:]

    def arguments(self) -> dict[str, Any]:
        """Returns what the driver is told, the password included where the environment has one."""
        file = Path.home() / ".my.cnf"
        options = dict(self.options)
        given = {
            "host": self.host,
            "user": self.user,
            "unix_socket": options.get("socket", ""),
            "ssl_ca": options.get("ssl_ca", ""),
            "password": os.environ.get("MYSQL_PWD", ""),
            "read_default_file": str(file) if file.is_file() else "",
        }
        named: dict[str, Any] = {name: value for name, value in given.items() if value}
        if "ssl_ca" in named:
            named |= {"ssl_verify_cert": True, "ssl_verify_identity": True}
        return {**named, **({"port": self.port} if self.host else {})}

    def __repr__(self) -> str:
        return f"MariaDBAddress({self})"

    def __str__(self) -> str:
        port = "" if self.port == _PORT else f":{self.port}"
        return f"mysql://{self.host}{port}/{self.database}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MariaDBTable:
    """A table of a database of a MariaDB server.

    >>> MariaDBTable.of("mariadb://db.example/clinic/visits")
    MariaDBTable(server=MariaDBAddress(mysql://db.example/clinic), table='visits')
    """

    server: MariaDBAddress
    table: str

    @classmethod
    def of(cls, url: str) -> Self:
        """Reads an address that ends in a table.

        Raises:
            InvalidParameter: if it is none, or has a password in it, which is not repeated.
        """
        server, rest = MariaDBAddress._read(url, "source")
        if len(rest) != 1:
            hint = "Write the database and the table, like mysql://db.example/clinic/visits."
            raise InvalidParameter("source", hide_secrets(url), f"to be like {_FORM}/TABLE", hint)
        return cls(server=server, table=rest[0])


def _split_user(url: str, name: str) -> tuple[str, str, Any]:
    """Returns the user, the password and the other parts of an address."""
    try:
        parts = urlsplit(url)
    except ValueError:  # whose text repeats what it was given
        raise InvalidParameter(name, "an address", f"to be like {_FORM}", _HINT) from None
    user, _, password = parts.netloc.rpartition("@")[0].partition(":")
    if "@" in user or "@" in parts.path:  # perhaps a part of a password
        raise InvalidParameter(name, "an address", f"to be like {_FORM}", _HINT)
    return user, password, parts
