"""Addresses of PostgreSQL databases: recognised by how they begin, and never with a password in them.

libpq takes passwords from PGPASSWORD, from a password file (`~/.pgpass`) or through a service file; there they are not
printed. An address is written into configuration files and shown in errors, so one with a password is refused.
"""

from __future__ import annotations

from urllib.parse import parse_qsl, quote, urlencode

from discreet.errors import InvalidParameter

_BEGINNINGS = ("postgresql://", "postgres://")
_SECRETS = {"password", "sslpassword"}


def is_postgres(place: object) -> bool:
    """Returns whether something is the address of a PostgreSQL database.

    >>> is_postgres("postgresql://ledger.example.org/clinic"), is_postgres("clinic.ledger")
    (True, False)
    """
    return isinstance(place, str) and place.startswith(_BEGINNINGS)


def without(url: str, *names: str, called: str = "url") -> tuple[str, dict[str, str]]:
    """Returns an address without parameters of our own, which libpq would refuse, and these.

    Args:
        url: the address.
        names: of our own parameters.
        called: what the caller calls the address, for the error.

    Raises:
        InvalidParameter: if there is a password in it, or it cannot be read; the address is not repeated.

    >>> without("postgresql://host/clinic?schema=audit&sslmode=require", "schema")
    ('postgresql://host/clinic?sslmode=require', {'schema': 'audit'})
    >>> without("postgresql://ana:secret@host/clinic")
    Traceback (most recent call last):
    discreet.errors.InvalidParameter: Expected url='an address' to have no password in it. Put the password ...
    """
    scheme, _, rest = url.partition("://")
    place, _, query = rest.partition("?")
    server, slash, database = place.partition("/")
    given = parse_qsl(query, keep_blank_values=True)
    user, at, _ = server.rpartition("@")
    if (at and ":" in user) or any(name in _SECRETS for name, _ in given):
        hint = "Put the password into ~/.pgpass, PGPASSWORD or a service file."
        raise InvalidParameter(called, "an address", "to have no password in it", hint)
    if "@" in user + database or "#" in url:  # perhaps a part of a password
        hint = "Write it like postgresql://host/database, with special characters escaped, such as %40 for @."
        raise InvalidParameter(called, "an address", "to be that of a PostgreSQL database", hint)
    kept = urlencode([(name, value) for name, value in given if name not in names], quote_via=quote)
    return f"{scheme}://{server}{slash}{database}{kept and '?'}{kept}", dict(pair for pair in given if pair[0] in names)
