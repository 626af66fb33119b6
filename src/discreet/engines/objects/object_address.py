"""Where objects are: the address of a bucket or a web server without any secret, and the places that may be read.

An address is kept in the ledger. So it has no user, no password and no query string: credentials come from where the
cloud's own tools find them, or from a profile that the address names (`profiles`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Self
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter

S3, GCS, AZURE, WEB = "s3", "gs", "az", "https"
_SCHEMES: Mapping[str, str] = {"s3": S3, "gs": GCS, "az": AZURE, "abfs": AZURE, "abfss": AZURE, "https": WEB}
_REFUSED = ("http", "s3a", "s3n", "gcs", "wasb", "wasbs")  # like one of ours
_BEGINNING = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,220}[A-Za-z0-9]")
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]{1,5})?")
_ACCOUNT = re.compile(r"[a-z0-9]{3,24}")
_PROFILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_FORMS = "s3://BUCKET/PATH, gs://BUCKET/PATH, az://CONTAINER/PATH or https://HOST/PATH"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectAddress:
    """An object, or all objects whose names begin with a path.

    Args:
        scheme: s3, gs, az or https.
        place: the bucket, the container or the host.
        path: the name, without a slash at its beginning or its end.
        account: of Azure, where the address says it.
        profile: which credentials open it; those of the environment if it is empty.
    """

    scheme: str
    place: str
    path: str = ""
    account: str = ""
    profile: str = ""

    @classmethod
    def of(cls, given: str, name: str = "source") -> Self:
        """Reads an address.

        Raises:
            InvalidParameter: if it is none, or has a secret in it. It is not repeated: it may have one.

        >>> print(ObjectAddress.of("s3://lake/visits/#profile=clinic"))
        s3://lake/visits
        """
        scheme = _scheme(given)
        if scheme not in _SCHEMES:
            hint = "Use https." if scheme == "http" else ""
            raise InvalidParameter(name, f"an address with {scheme}://", f"to be like {_FORMS}", hint)
        if not given.isprintable():
            raise InvalidParameter(name, "an address", "to have no control characters", "Delete them.")
        parts = urlsplit(given)
        _require_no_secret(parts, name)
        account, place = _split_place(_SCHEMES[scheme], parts.netloc, name)
        path = parts.path.strip("/")
        plain = unquote(path) if scheme == WEB else path
        if path and (not plain.isprintable() or any(part in ("", ".", "..") for part in plain.split("/"))):
            hint = "Write each part of the path once, without dots alone and without control characters."
            raise InvalidParameter(name, f"an address with {scheme}://", "to have a plain path", hint)
        return cls(
            scheme=_SCHEMES[scheme], place=place, path=path, account=account, profile=_profile(parts.fragment, name)
        )

    @property
    def root(self) -> str:
        """The bucket or the host."""
        return f"abfs://{self.place}@{self.account}" if self.account else f"{self.scheme}://{self.place}"

    @property
    def parts(self) -> list[str]:
        """The parts of the path, as the server reads them."""
        return [part for part in (unquote(self.path) if self.scheme == WEB else self.path).split("/") if part]

    @property
    def origin(self) -> str:
        """What the ledger says of where rows are from: however an address of the web is written, the same."""
        return "/".join([self.root, *self.parts])

    def holds(self, other: ObjectAddress) -> bool:
        """Returns whether another address is in the same bucket or on the same host, at this path or below it."""
        places = [(one.scheme, one.place, self.account and one.account) for one in (self, other)]
        return places[0] == places[1] and other.parts[: len(self.parts)] == self.parts

    def __str__(self) -> str:
        return f"{self.root}/{self.path}" if self.path else self.root


def is_address(given: Any) -> bool:
    """Returns whether something is the address of objects, or would be one with another beginning.

    >>> is_address("gs://lake/visits"), is_address("http://data.example/visits.csv"), is_address("visits.csv")
    (True, True, False)
    """
    return isinstance(given, str) and _scheme(given) in (*_SCHEMES, *_REFUSED)


@dataclass(frozen=True, slots=True)
class AllowedPlaces:
    """Buckets, hosts and parts of them that may be read.

    Args:
        places: their addresses; None for all that there are.
    """

    places: tuple[ObjectAddress, ...] | None = None

    @classmethod
    def of(cls, given: Sequence[str]) -> Self:
        """Reads the addresses of an owner.

        Raises:
            InvalidParameter: if one of them is none.
        """
        return cls(tuple(ObjectAddress.of(one, name="objects") for one in given))

    def require(self, address: ObjectAddress) -> None:
        """Refuses an address that is in none of the places.

        Raises:
            InvalidParameter: with what an owner has to write.
        """
        if self.places is not None and not any(place.holds(address) for place in self.places):
            hint = f'The owner lists what may be read at the beginning of discreet.toml: objects = ["{address.root}"]'
            raise InvalidParameter("source", str(address), "to be in a listed bucket or host", hint)


EVERYWHERE = AllowedPlaces()


def _scheme(given: str) -> str:
    found = _BEGINNING.match(given)
    return found[1].lower() if found else ""


def _require_no_secret(parts: SplitResult, name: str) -> None:
    is_container = _SCHEMES[parts.scheme] == AZURE and ":" not in parts.netloc
    if parts.query or "?" in parts.geturl() or ("@" in parts.netloc and not is_container):
        hint = "The ledger keeps addresses. Set credentials in the environment, or in a profile: see #profile=NAME."
        raise InvalidParameter(name, "an address", "to have no user, password or query string", hint)


def _split_place(scheme: str, netloc: str, name: str) -> tuple[str, str]:
    """Returns the account, of Azure, and the bucket, container or host."""
    if scheme == WEB:
        host = netloc.lower().removesuffix(":443")
        if _HOST.fullmatch(host):
            return "", host
        raise InvalidParameter(name, "an address", f"to be like {_FORMS}", "Check the name of the host.")
    bucket, _, server = netloc.partition("@")
    account = server.partition(".")[0]
    if not _BUCKET.fullmatch(bucket) or (server and not _ACCOUNT.fullmatch(account)):
        hint = "Check the name of the bucket: it has three letters or more, and none of them is a colon."
        raise InvalidParameter(name, "an address", f"to be like {_FORMS}", hint)
    return account, bucket


def _profile(fragment: str, name: str) -> str:
    if not fragment:
        return ""
    pairs = parse_qsl(fragment, keep_blank_values=True)
    if len(pairs) != 1 or pairs[0][0] != "profile" or not _PROFILE.fullmatch(pairs[0][1]):
        hint = "Only the name of a profile may follow the sign #, like #profile=clinic."
        raise InvalidParameter(name, "an address", "to end in its path or in a profile", hint)
    return pairs[0][1]
