"""Signing in with a provider of identities: OpenID Connect, the authorization code flow with PKCE, state and nonce.

A provider proves who a person is, and nothing more: only people who are known already are signed in, by a claim that
equals their name, and never as the owner. The claim is ``email``, if the provider has verified it; some providers let
users choose their ``preferred_username``, so that one is believed only where the settings say so.

Formal guarantee: a session begins only if the browser that comes back is the one that was sent away (its ticket, a
random cookie), with the state it was given; the code is exchanged only with the PKCE verifier, which never left this
process; and the ID token is signed by a key of the issuer, with an asymmetric algorithm, for this client, now,
with the nonce of this attempt (RFC 6749, RFC 7636, OpenID Connect Core 1.0, section 3.1.3.7). Each attempt is used
once.
"""

from __future__ import annotations

import base64
import hmac
import json
import threading
import urllib.error
import urllib.request
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus, urlencode, urlsplit

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, NotAuthenticated, ServiceUnavailable
from discreet.noise.tokens import token
from discreet.service.caller import ServiceRole
from discreet.service.identity.access_keys import hash_secret
from discreet.service.identity.identities import Identities
from discreet.service.settings import LOOPBACK

ALGORITHMS = ["RS256", "PS256", "ES256", "ES384", "EdDSA"]
"""The algorithms of signatures that are believed: none that a holder of the client's secret could use."""

CLAIMS = ("email", "preferred_username")
_SETTINGS = {"issuer", "client_id", "client_secret_file", "claim", "groups"}
_LASTS = 600.0  # seconds from leaving for the provider until coming back
_MOST_PENDING = 1000  # attempts at once; the oldest is forgotten
_KNOWN = 300.0  # seconds for which a provider is not asked about itself again
_LEEWAY = 60.0  # seconds by which clocks may differ
_MOST_BYTES = 1 << 20
_SECONDS = 10.0
_WELL_KNOWN = "/.well-known/openid-configuration"

Fetch = Callable[[str, bytes | None, Mapping[str, str]], Mapping[str, Any]]
NoteGroups = Callable[[str, Sequence[str]], None]
"""Notes the groups of a person who has signed in."""
"""Gets the JSON at an address, or posts a form to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    state: str
    nonce: str
    verifier: str
    redirect_uri: str
    ends: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationRequest:
    """The address that a browser is sent to, and the ticket that it keeps.

    Attributes:
        url: the address of the provider.
        ticket: for a cookie of the browser (HttpOnly, SameSite=Lax, since it comes back from another site).
    """

    url: str
    ticket: str


class _Pending:
    """Attempts that were begun, each to be taken once."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._kept: OrderedDict[bytes, _Attempt] = OrderedDict()

    def keep(self, ticket: str, attempt: _Attempt) -> None:
        with self._lock:
            self._kept[hash_secret(ticket)] = attempt
            while len(self._kept) > _MOST_PENDING:
                self._kept.popitem(last=False)

    def take(self, ticket: object, state: object) -> _Attempt:
        """Returns the attempt of a browser, if it comes back in time with its state."""
        with self._lock:
            found = self._kept.pop(hash_secret(ticket if isinstance(ticket, str) else ""), None)
        shown = state.encode("utf-8", "surrogatepass") if isinstance(state, str) else b""
        if found is None or self._clock() >= found.ends or not hmac.compare_digest(found.state.encode(), shown):
            raise NotAuthenticated
        return found


class OpenIdSignIn:
    """Signs in people whom a provider proves; its calls may take seconds, so make them in a thread.

    Args:
        identities: who is known.
        issuer: the provider's address, https unless it is on this machine.
        client_id, client_secret: as the provider gave them.
        claim: which claim is a person's name: "email" or "preferred_username".
        groups: which claim lists a person's groups; empty if none does.
        note_groups: has the groups of a person who signs in noted.
        fetch: gets and posts JSON.

    Raises:
        InvalidParameter: if the issuer or the claim cannot be relied on.
    """

    def __init__(
        self,
        identities: Identities,
        *,
        issuer: str,
        client_id: str,
        client_secret: str,
        claim: str = "email",
        groups: str = "",
        note_groups: NoteGroups | None = None,
        fetch: Fetch | None = None,
    ) -> None:
        if claim not in CLAIMS:
            raise InvalidParameter("oidc.claim", claim, f"to be one of {', '.join(CLAIMS)}")
        _require_safe(issuer, "oidc.issuer")
        self._identities, self._fetch = identities, fetch or fetch_json
        self._issuer, self._claim = issuer.rstrip("/"), claim
        self._client, self._secret = client_id, client_secret
        self._groups, self._note_groups = groups, note_groups
        self._pending = _Pending(identities.clock)
        self._known: tuple[Mapping[str, Any], float] = ({}, 0.0)

    @classmethod
    def of_settings(
        cls, identities: Identities, given: Mapping[str, str], folder: Path, note_groups: NoteGroups | None = None
    ) -> OpenIdSignIn:
        """Returns the sign-in that the table [service.oidc] describes.

        Raises:
            InvalidParameter: naming what is missing, unknown or cannot be read.
        """
        for name in sorted((given.keys() | {"claim", "groups"}) ^ _SETTINGS):
            condition = "to be a setting of oidc" if name in given else "to be given"
            hint = "Known: issuer, client_id, client_secret_file, claim, groups."
            raise InvalidParameter(f"service.oidc.{name}", given.get(name), condition, hint)
        path = folder / given["client_secret_file"]
        try:
            secret = path.read_text().strip()
        except OSError as error:
            raise InvalidParameter(
                "service.oidc.client_secret_file", str(path), f"to be readable ({error.strerror})"
            ) from None
        told: dict[str, Any] = {"claim": given.get("claim", "email"), "groups": given.get("groups", "")}
        told |= {"issuer": given["issuer"], "client_id": given["client_id"], "client_secret": secret}
        return cls(identities, note_groups=note_groups, **told)

    def begin(self, redirect_uri: str) -> AuthorizationRequest:
        """Returns where to send a browser, which comes back to `redirect_uri`.

        Raises:
            ServiceUnavailable: if the provider cannot be reached, or is another one.
        """
        ticket, verifier = token(), token()
        attempt = _Attempt(
            state=token(),
            nonce=token(),
            verifier=verifier,
            redirect_uri=redirect_uri,
            ends=self._identities.clock() + _LASTS,
        )
        challenge = base64.urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        asked = {
            "response_type": "code",
            "client_id": self._client,
            "redirect_uri": redirect_uri,
            "scope": "openid email" if self._claim == "email" else "openid profile",
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        endpoint = self._endpoint(self._provider(), "authorization_endpoint")
        self._pending.keep(ticket, attempt)
        return AuthorizationRequest(url=f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(asked)}", ticket=ticket)

    def finish(self, *, ticket: object, state: object, code: object, replaces: object = None) -> str:
        """Begins the session of a person whose browser has come back.

        Args:
            ticket: the browser's cookie.
            state: as the provider sent it back with the browser.
            code: as the provider sent it back, too.
            replaces: the session that the browser had before.

        Returns:
            The token of the new session.

        Raises:
            NotAuthenticated: if anything does not fit, or no person of that name is known.
            ServiceUnavailable: if the provider cannot be reached.
        """
        attempt = self._pending.take(ticket, state)
        if not isinstance(code, str) or not code:
            raise NotAuthenticated
        provider = self._provider()
        claims = self._claims(self._exchange_code(provider, attempt, code), provider)
        self._check(claims, attempt)
        name = self._name(claims)
        session = self._identities.sign_in_known(name, replaces=replaces)
        if self._groups and self._note_groups is not None:
            self._note_groups(name, _groups_in(claims.get(self._groups)))
        return session

    def _provider(self) -> Mapping[str, Any]:
        """Returns what the provider says about itself; one with another name is refused."""
        known, until = self._known
        if self._identities.clock() < until:
            return known
        told = self._fetch(f"{self._issuer}{_WELL_KNOWN}", None, {})
        if str(told.get("issuer", "")).rstrip("/") != self._issuer:
            raise ServiceUnavailable("The identity provider is not the issuer named in the settings")
        self._known = told, self._identities.clock() + _KNOWN
        return told

    def _endpoint(self, provider: Mapping[str, Any], name: str) -> str:
        endpoint = str(provider.get(name, ""))
        try:
            return _require_safe(endpoint, name)
        except InvalidParameter:
            raise ServiceUnavailable(f"The identity provider names no safe {name}") from None

    def _exchange_code(self, provider: Mapping[str, Any], attempt: _Attempt, code: str) -> str:
        """Returns the ID token for a code."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": attempt.redirect_uri,
            "code_verifier": attempt.verifier,
        }
        headers = {}
        if "client_secret_basic" in provider.get("token_endpoint_auth_methods_supported", ["client_secret_basic"]):
            proof = f"{quote_plus(self._client)}:{quote_plus(self._secret)}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(proof).decode()}"
        else:
            form |= {"client_id": self._client, "client_secret": self._secret}
        told = self._fetch(self._endpoint(provider, "token_endpoint"), urlencode(form).encode(), headers)
        found = told.get("id_token")
        if not isinstance(found, str):
            raise NotAuthenticated
        return found

    def _claims(self, text: str, provider: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns the claims of a signed token."""
        keys: Any = self._fetch(self._endpoint(provider, "jwks_uri"), None, {})
        try:
            claims = jwt.decode(text, KeySet.import_key_set(keys), algorithms=ALGORITHMS).claims
        except (JoseError, ValueError, TypeError, KeyError):
            raise NotAuthenticated from None
        return claims

    def _check(self, claims: Mapping[str, Any], attempt: _Attempt) -> None:
        now, audience = self._identities.clock(), claims.get("aud")
        audiences = audience if isinstance(audience, list) else [audience]
        fits = (
            str(claims.get("iss", "")).rstrip("/") == self._issuer
            and self._client in audiences
            and (len(audiences) == 1 or claims.get("azp") == self._client)
            and _number(claims.get("exp")) > now - _LEEWAY
            and abs(_number(claims.get("iat")) - now) < _LASTS + _LEEWAY
            and hmac.compare_digest(str(claims.get("nonce", "")).encode("utf-8", "replace"), attempt.nonce.encode())
        )
        if not fits:
            raise NotAuthenticated

    def _name(self, claims: Mapping[str, Any]) -> str:
        """Returns the name that the claim is, if it may be believed."""
        name = claims.get(self._claim)
        verified = self._claim != "email" or claims.get("email_verified") is True
        if not isinstance(name, str) or not verified or self._identities.role_of(name) is ServiceRole.OWNER:
            raise NotAuthenticated
        return name


def _groups_in(claim: object) -> tuple[str, ...]:
    """Returns the groups that a claim names: a list of texts, or one text."""
    listed = [claim] if isinstance(claim, str) else claim if isinstance(claim, list) else []
    return tuple(group for group in listed if isinstance(group, str))


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else float("-inf")


def _require_safe(url: str, name: str) -> str:
    """Refuses an address over which others could listen or answer."""
    found = urlsplit(url)
    if found.scheme == "https" and found.hostname:
        return url
    if found.scheme == "http" and found.hostname in LOOPBACK:
        return url
    hint = "Use the https address. Only a provider on this machine may use http."
    raise InvalidParameter(name, url, "to begin with https://", hint)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirects: the address that was checked stays that address."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        pass


def fetch_json(url: str, form: bytes | None, headers: Mapping[str, str]) -> Mapping[str, Any]:
    """Gets the JSON object at an address, or posts a form to it; follows no redirects.

    Raises:
        NotAuthenticated: if the provider refuses what was posted.
        ServiceUnavailable: if it cannot be reached in time, or sends something else.
    """
    _require_safe(url, "url")
    request = urllib.request.Request(url, form, {"Accept": "application/json", **headers})  # noqa: S310 - checked
    try:
        with urllib.request.build_opener(_NoRedirects).open(request, timeout=_SECONDS) as response:
            told = json.loads(response.read(_MOST_BYTES))
    except urllib.error.HTTPError as error:
        if form is not None and 400 <= error.code < 500:
            raise NotAuthenticated from None
        raise ServiceUnavailable(f"The identity provider failed with status {error.code}", "Try again later.") from None
    except (OSError, ValueError):
        raise ServiceUnavailable("The identity provider cannot be reached", "Try again later.") from None
    if not isinstance(told, dict):
        raise ServiceUnavailable("The identity provider did not send a JSON object")
    return told
