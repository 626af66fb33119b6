"""Buckets and web servers behind one protocol: names, and objects that are read by ranges.

pyarrow's file systems read the clouds and fsspec the web; nothing here knows how a cloud signs or lists. What they say
when they fail names hosts, objects and requests: it goes no further than to whether and why a steward is told.
"""

from __future__ import annotations

import datetime as dt
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeVar

from discreet.dataclass import dataclass
from discreet.engines.objects.object_address import AZURE, GCS, S3, WEB, ObjectAddress
from discreet.engines.objects.profiles import options_of
from discreet.errors import DiscreetError, InvalidParameter
from discreet.lazy import load

T = TypeVar("T")
Version = tuple[tuple[str, str], ...]
"""What a server says of an object that changes whenever its content does."""

_CONNECT, _ANSWER = 5, 10  # seconds without a connection, and without a byte
_CREDENTIALS = ("AWS_", "AZURE_", "GOOGLE_", "CLOUDSDK_")  # how the names of their variables begin
_VERSIONS = ("etag", "generation", "version-id", "last-modified", "updated", "content-length", "size")
_DENIED = ("ACCESS_DENIED", "INVALID_ACCESS_KEY", "SIGNATURE", "EXPIRED_TOKEN", "PERMISSION", "UNAUTH", " 401", " 403")
_MISSING = ("NO_SUCH", "NOT_FOUND", "NOTFOUND", "NO SUCH", " 404")


class ObjectUnavailable(Exception):
    """An object, a bucket or a host that cannot be read; says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An object as it is opened."""

    size: int
    version: Version
    read: Callable[[int, int], bytes]


class ObjectStore(ABC):
    """A bucket, or a web server; its errors are those of the library that reads it."""

    @abstractmethod
    def names(self, path: str) -> list[str]:
        """Returns the names of all objects below a path."""

    @abstractmethod
    def find(self, name: str) -> Found:
        """Opens an object; nothing is read yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """How often a request is made again, and when: times are spread, so that not all requests come at once.

    Args:
        waits: seconds before each further request.
        sleep: waits so many seconds.
        clock: any number of nanoseconds, which spreads the times: it decides nothing else.
    """

    waits: Sequence[float] = (0.1, 0.5, 2.0)
    sleep: Callable[[float], object] = time.sleep
    clock: Callable[[], int] = time.monotonic_ns

    def run(self, request: Callable[[], T]) -> T:
        """Returns what a request returns.

        Raises:
            Exception: the last one, if all requests fail, or the first one that another request would not mend.
        """
        for wait in self.waits:
            try:
                return request()
            except Exception as error:
                if reason_of(error) != _NETWORK:
                    raise
            self.sleep(wait * (0.5 + self.clock() % 1000 / 1000))
        return request()


RETRIES = Retries()
_NETWORK = "network"


def reason_of(error: Exception) -> str:
    """Returns whether something is missing, forbidden, or cannot be reached."""
    text = str(error).upper()
    if isinstance(error, PermissionError) or any(mark in text for mark in _DENIED):
        return "denied"
    if isinstance(error, FileNotFoundError) or any(mark in text for mark in _MISSING):
        return "missing"
    return _NETWORK


_HINTS = {
    "denied": "Check the credentials: those of the environment, or name a profile that may read it.",
    "missing": "Check the name: there is no such bucket or object.",
    _NETWORK: "Check the name, the network and the certificate of the server, then try again.",
}


def for_steward(address: ObjectAddress, request: Callable[[], T]) -> T:
    """Returns what a request returns, and makes a sentence for a steward of whatever fails; no query comes here.

    Raises:
        InvalidParameter: with what to check.
        MissingExtra: if what reads it is not installed.
    """
    try:
        return request()
    except DiscreetError:
        raise
    except Exception as error:  # noqa: BLE001 - several libraries, each with its own
        reason = reason_of(error)
    raise InvalidParameter("source", str(address), "to be readable from here", _HINTS[reason])


def with_account(address: ObjectAddress) -> ObjectAddress:
    """Returns an address of Azure with its account, so that one container has one address.

    Raises:
        InvalidParameter: if its profile is not there.
    """
    if address.scheme != AZURE or address.account:
        return address
    found = options_of(address).get("account_name") or os.environ.get("AZURE_STORAGE_ACCOUNT_NAME", "")
    return replace(address, account=str(found))


def store_of(address: ObjectAddress) -> ObjectStore:
    """Returns the bucket or the host of an address.

    Raises:
        InvalidParameter: if its profile is not there.
        MissingExtra: if what reads it is not installed.
    """
    options = tuple(sorted(options_of(address).items()))
    around = tuple(sorted(pair for pair in os.environ.items() if pair[0].startswith(_CREDENTIALS)))
    return _store((address.scheme, address.account, address.place), options, (os.getpid(), around))


@lru_cache(maxsize=16)
def _store(where: tuple[str, str, str], options: tuple[tuple[str, Any], ...], around: object) -> ObjectStore:
    """Returns a store that was made for the same before, by this process: credentials are looked for once."""
    del around
    scheme, account, place = where
    if scheme == WEB:
        web: ObjectStore = load("discreet.engines.objects.web_store", "A file of the web").WebStore(
            place, dict(options)
        )
        return web
    return Bucket(place, _FILE_SYSTEMS[scheme](place, account, dict(options)))


class Bucket(ObjectStore):
    """A bucket that pyarrow reads."""

    def __init__(self, bucket: str, files: Any) -> None:
        self._bucket, self._files = bucket, files

    def names(self, path: str) -> list[str]:
        """Returns the names of all objects below a path; none if there are none, and an error without a bucket."""
        fs = _arrow()
        below = f"{self._bucket}/{path}" if path else self._bucket
        found = self._files.get_file_info(fs.FileSelector(below, recursive=True, allow_not_found=True))
        if not found:  # some say this of a bucket that is not there, too
            self._files.get_file_info(fs.FileSelector(self._bucket, recursive=False, allow_not_found=False))
        start = len(self._bucket) + 1
        return [one.path[start:] for one in found if one.type is fs.FileType.File]

    def find(self, name: str) -> Found:
        """Opens an object; nothing of it is read yet."""
        file = self._files.open_input_file(f"{self._bucket}/{name}")
        facts = {key.lower(): str(value) for key, value in (file.metadata() or {}).items()}
        version = tuple((key, facts[key]) for key in _VERSIONS if key in facts)
        return Found(size=file.size(), version=version, read=lambda start, length: _read_at(file, start, length))


def _read_at(file: Any, start: int, length: int) -> bytes:
    found: bytes = file.read_at(length, start)
    return found


# ------------------------------------------------------------------------------------------------------------- clouds


def _arrow() -> Any:
    return load("pyarrow.fs", "A bucket")


def _s3(bucket: str, account: str, options: dict[str, Any]) -> Any:
    del account
    fs = _arrow()
    with suppress(Exception):  # another part of the program was first
        fs.initialize_s3(fs.S3LogLevel.Off)  # what it logs names buckets and objects
    named = ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE")
    if not (options.keys() & {"region", "endpoint_override"}) and not any(map(os.environ.get, named)):
        with suppress(OSError):  # then the usual region is tried
            options = {**options, "region": fs.resolve_s3_region(bucket)}
    once = fs.AwsStandardS3RetryStrategy(max_attempts=1)  # `Retries` makes further ones
    return fs.S3FileSystem(connect_timeout=_CONNECT, request_timeout=_ANSWER, retry_strategy=once, **options)


def _gcs(bucket: str, account: str, options: dict[str, Any]) -> Any:
    del bucket, account
    return _arrow().GcsFileSystem(retry_time_limit=dt.timedelta(seconds=_CONNECT), **options)


def _azure(bucket: str, account: str, options: dict[str, Any]) -> Any:
    del bucket
    if not account:
        hint = "Write abfs://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH, or set AZURE_STORAGE_ACCOUNT_NAME."
        raise InvalidParameter("source", "an address of Azure", "to come with a storage account", hint)
    options.pop("account_name", None)
    return _arrow().AzureFileSystem(account, **options)


_FILE_SYSTEMS: dict[str, Callable[[str, str, dict[str, Any]], Any]] = {S3: _s3, GCS: _gcs, AZURE: _azure}
