"""Profiles: named credentials and settings of clouds and web servers, in a file that only the environment names.

An address says `#profile=clinic`, and the variable DISCREET_PROFILES names the file, in TOML. So no secret stands in a
ledger, in a discreet.toml or in an address. Without a profile, a cloud's library looks for credentials where that
cloud's own tools do.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from discreet.engines.objects.object_address import AZURE, GCS, S3, WEB, ObjectAddress
from discreet.errors import InvalidParameter

VARIABLE = "DISCREET_PROFILES"

_OPTIONS: Mapping[str, tuple[str, ...]] = {
    S3: (
        *("access_key", "secret_key", "session_token", "anonymous", "role_arn", "session_name", "external_id"),
        *("region", "endpoint_override", "scheme", "force_virtual_addressing", "tls_ca_file_path"),
    ),
    GCS: ("anonymous", "target_service_account", "endpoint_override", "scheme", "project_id"),
    AZURE: (
        *("account_name", "account_key", "sas_token", "client_id", "client_secret", "tenant_id"),
        *("blob_storage_authority", "blob_storage_scheme", "dfs_storage_authority", "dfs_storage_scheme"),
    ),
    WEB: ("token", "user", "password", "ca_file"),
}
"""What a profile may say: for clouds the arguments of pyarrow's file systems, under their names."""

_ENDPOINTS = {
    "scheme": "endpoint_override",
    "blob_storage_scheme": "blob_storage_authority",
    "dfs_storage_scheme": "dfs_storage_authority",
}
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def options_of(address: ObjectAddress) -> dict[str, Any]:
    """Returns what the profile of an address says; nothing if it names none.

    Raises:
        InvalidParameter: if there is no such profile, or it says what such an address does not have.
    """
    if not address.profile:
        return {}
    given = _read().get(address.profile)
    if not isinstance(given, Mapping):
        hint = f"Add [{address.profile}] to the file that the variable {VARIABLE} names, or leave #profile= out."
        raise InvalidParameter("profile", address.profile, f"to be a profile in the file of {VARIABLE}", hint)
    known = _OPTIONS[address.scheme]
    for key, value in given.items():
        if key not in known or not isinstance(value, str | bool):
            hint = f"For {address.scheme}:// it may have {', '.join(known)}, as texts or true and false."
            raise InvalidParameter(f"profile {address.profile}", key, "to be a setting of such addresses", hint)
    _require_encryption(address.profile, given)
    return dict(given)


def _read() -> Mapping[str, Any]:
    """Returns the file; without the variable there are no profiles."""
    path = os.environ.get(VARIABLE)
    if not path:
        return {}
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):  # what is wrong with it could repeat a secret
        hint = "Write a section for each profile, such as [clinic], and each value in quotes."
        raise InvalidParameter(VARIABLE, path, "to be a file in TOML that can be read", hint) from None


def _require_encryption(profile: str, given: Mapping[str, Any]) -> None:
    """Refuses connections that others can read, but for those to this machine."""
    for key, endpoint in _ENDPOINTS.items():
        host = urlsplit(f"//{given.get(endpoint, '')}").hostname
        if str(given.get(key, "https")).lower() != "https" and host not in _LOOPBACK:
            hint = "Leave it out: rows would travel without encryption."
            raise InvalidParameter(f"profile {profile}", key, f"to be https for this {endpoint}", hint)
    if "://" in str(given.get("endpoint_override", "")):
        hint = 'Write the host and the port alone, like "storage.example:9000".'
        raise InvalidParameter(f"profile {profile}", "endpoint_override", "to be a host", hint)
