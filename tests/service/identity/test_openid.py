"""Signing in with a provider: a made-up one that lies in every way, and a real one."""

from __future__ import annotations

import base64
import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, OctKey

from discreet.errors import InvalidParameter, NotAuthenticated, ServiceUnavailable
from discreet.service.caller import ServiceRole
from discreet.service.identity.openid import AuthorizationRequest, OpenIdSignIn, fetch_json
from discreet.service.identity.people import LOCAL
from tests.service.identity.helpers import Office

ISSUER, CLIENT, SECRET, BACK = "https://id.example", "discreet", "a client's secret", "https://dp.example/signed-in"
KEY, OTHER = (ECKey.generate_key("P-256", {"kid": kid}) for kid in ("one", "two"))


class Provider:
    """Answers as a provider does, unless it is told to lie."""

    def __init__(self, office: Office) -> None:
        self.office = office
        self.metadata: dict[str, Any] = {
            "issuer": ISSUER,
            "authorization_endpoint": f"{ISSUER}/authorize",
            "token_endpoint": f"{ISSUER}/token",
            "jwks_uri": f"{ISSUER}/keys",
        }
        self.claims: dict[str, Any] = {"email": "ana@example.org", "email_verified": True, "preferred_username": "ana"}
        self.header: dict[str, Any] = {"alg": "ES256", "kid": "one"}
        self.key: Any = KEY
        self.spoil: Callable[[str], str] = lambda text: text
        self.posted: dict[str, str] = {}
        self.headers: Mapping[str, str] = {}
        self.asked: dict[str, str] = {}

    def __call__(self, url: str, form: bytes | None, headers: Mapping[str, str]) -> Mapping[str, Any]:
        if url.endswith("/keys"):
            return dict(KeySet([KEY]).as_dict(private=False))
        if form is None:
            return self.metadata
        self.posted = {name: value[0] for name, value in parse_qs(form.decode()).items()}
        self.headers = headers
        now = int(self.office.clock.now)
        told = {"iss": ISSUER, "aud": CLIENT, "sub": "7", "iat": now, "exp": now + 300, "nonce": self.asked["nonce"]}
        told |= self.claims
        told = {name: value for name, value in told.items() if value is not None}
        return {"id_token": self.spoil(jwt.encode(self.header, told, self.key))}

    def visit(self, departure: AuthorizationRequest) -> str:
        """What a browser does there; returns the state with which it comes back."""
        self.asked = {name: value[0] for name, value in parse_qs(urlsplit(departure.url).query).items()}
        return self.asked["state"]


class Scene:
    """People, a provider, and a service that sends browsers there."""

    def __init__(self, claim: str = "email") -> None:
        self.office = Office()
        self.office.identities.make_person(LOCAL, "ana@example.org", ServiceRole.ANALYST)
        self.provider = Provider(self.office)
        self.service = OpenIdSignIn(
            self.office.identities,
            issuer=ISSUER,
            client_id=CLIENT,
            client_secret=SECRET,
            claim=claim,
            fetch=self.provider,
        )

    def sign_in(self) -> str:
        """Returns who is signed in by all that."""
        departure = self.service.begin(BACK)
        session = self.service.finish(ticket=departure.ticket, state=self.provider.visit(departure), code="c")
        return self.office.identities.authenticate_session(session)[0].name


def test_who_is_known_is_signed_in() -> None:
    scene = Scene()
    assert scene.sign_in() == "ana@example.org"
    asked, posted = scene.provider.asked, scene.provider.posted
    assert (asked["response_type"], asked["scope"], asked["redirect_uri"]) == ("code", "openid email", BACK)
    assert asked["code_challenge_method"] == "S256"
    digest = base64.urlsafe_b64encode(sha256(posted["code_verifier"].encode()).digest()).decode().rstrip("=")
    assert digest == asked["code_challenge"]
    assert posted["redirect_uri"] == BACK
    assert scene.provider.headers["Authorization"].startswith("Basic ")
    assert SECRET not in str(posted)
    assert Scene(claim="preferred_username").sign_in() == "ana"


def test_the_secret_is_sent_as_the_provider_wants_it() -> None:
    scene = Scene()
    scene.provider.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_post"]
    scene.sign_in()
    assert scene.provider.posted["client_secret"] == SECRET
    assert not scene.provider.headers


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "lie",
    [
        {"email": "stranger@example.org"},
        {"email": "ana@example.org", "email_verified": False},
        {"email": "ana@example.org", "email_verified": "true"},
        {"email_verified": None},
        {"email": None},
        {"email": ["ana@example.org"]},
        {"email": "ANA@example.org"},
        {"email": "owner"},
        {"iss": "https://evil.example"},
        {"aud": "another client"},
        {"aud": ["another client"]},
        {"aud": [CLIENT, "another client"]},
        {"aud": None},
        {"exp": 1},
        {"exp": None},
        {"exp": "soon"},
        {"iat": 1},
        {"iat": None},
        {"nonce": "another"},
        {"nonce": None},
        {"nonce": ""},
    ],
    ids=str,
)
def test_tokens_that_are_not_believed(lie: dict[str, Any]) -> None:
    scene = Scene()
    scene.provider.claims |= lie
    with pytest.raises(NotAuthenticated):
        scene.sign_in()


def test_the_owner_signs_in_with_no_provider() -> None:
    scene = Scene(claim="preferred_username")
    scene.provider.claims["preferred_username"] = "owner"
    with pytest.raises(NotAuthenticated):
        scene.sign_in()


def test_a_name_that_users_choose_is_not_believed_unless_it_is_set() -> None:
    scene = Scene()
    scene.provider.claims = {"preferred_username": "ana"}
    with pytest.raises(NotAuthenticated):
        scene.sign_in()


def unsigned(text: str) -> str:
    head = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
    return f"{head}.{text.split('.')[1]}."


@pytest.mark.parametrize(
    "change",
    [
        lambda provider: setattr(provider, "spoil", unsigned),
        lambda provider: setattr(provider, "spoil", lambda text: text[:-8] + "AAAAAAAA"),
        lambda provider: setattr(provider, "spoil", lambda _: "."),
        lambda provider: setattr(provider, "spoil", lambda _: ""),
        lambda provider: provider.__dict__.update(key=OTHER),  # under the name of the right key
        lambda provider: provider.__dict__.update(key=OTHER, header={"alg": "ES256", "kid": "two"}),
        lambda provider: provider.__dict__.update(
            key=OctKey.import_key(SECRET * 4), header={"alg": "HS256", "kid": "one"}
        ),
    ],
)
def test_signatures_that_are_not_the_issuers(change: Callable[[Provider], None]) -> None:
    scene = Scene()
    change(scene.provider)
    with pytest.raises(NotAuthenticated):
        scene.sign_in()


def test_an_attempt_belongs_to_one_browser_and_is_used_once() -> None:
    scene = Scene()
    mine, theirs = scene.service.begin(BACK), scene.service.begin(BACK)
    state = scene.provider.visit(theirs)
    for ticket in (mine.ticket, None, "", "0" * 64):
        with pytest.raises(NotAuthenticated):
            scene.service.finish(ticket=ticket, state=state, code="c")
    scene.service.finish(ticket=theirs.ticket, state=state, code="c")
    with pytest.raises(NotAuthenticated):
        scene.service.finish(ticket=theirs.ticket, state=state, code="c")


@pytest.mark.parametrize("bad", [{"state": "x"}, {"state": None}, {"state": "\ud800"}, {"code": ""}, {"code": None}])
def test_what_comes_back_must_fit(bad: dict[str, Any]) -> None:
    scene = Scene()
    departure = scene.service.begin(BACK)
    told = {"ticket": departure.ticket, "state": scene.provider.visit(departure), "code": "c", **bad}
    with pytest.raises(NotAuthenticated):
        scene.service.finish(**told)


def test_an_attempt_is_late_after_ten_minutes_and_only_so_many_wait() -> None:
    scene = Scene()
    departure = scene.service.begin(BACK)
    scene.office.clock.now += 600
    with pytest.raises(NotAuthenticated):
        scene.service.finish(ticket=departure.ticket, state=scene.provider.visit(departure), code="c")
    for _ in range(1100):
        scene.service.begin(BACK)
    assert len(scene.service._pending._kept) == 1000


def test_the_session_before_ends() -> None:
    scene = Scene()
    before = scene.office.session("eve")
    departure = scene.service.begin(BACK)
    state = scene.provider.visit(departure)
    after = scene.service.finish(ticket=departure.ticket, state=state, code="c", replaces=before)
    assert after != before
    with pytest.raises(NotAuthenticated):
        scene.office.identities.authenticate_session(before)


@pytest.mark.parametrize(
    "lie",
    [
        {"issuer": "https://evil.example"},
        {"authorization_endpoint": "http://id.example/authorize"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"authorization_endpoint": None},
        {"token_endpoint": "http://169.254.169.254/"},
        {"jwks_uri": "file:///etc/passwd"},
    ],
    ids=str,
)
def test_a_provider_that_is_another_one(lie: dict[str, Any]) -> None:
    scene = Scene()
    scene.provider.metadata |= lie
    with pytest.raises(ServiceUnavailable):
        scene.sign_in()


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"issuer": "http://id.example"}, "oidc.issuer"),
        ({"issuer": "file:///x"}, "oidc.issuer"),
        ({"claim": "sub"}, "oidc.claim"),
        ({"secret": "x"}, "service.oidc.secret"),
        ({"client_secret_file": "missing"}, "service.oidc.client_secret_file"),
    ],
)
def test_settings_that_do_not_fit(given: dict[str, str], name: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    whole = {"issuer": ISSUER, "client_id": CLIENT, "client_secret_file": "secret"}
    identities = Office().identities
    assert OpenIdSignIn.of_settings(identities, whole, tmp_path)._secret == SECRET
    with pytest.raises(InvalidParameter) as error:
        OpenIdSignIn.of_settings(identities, {**whole, **given}, tmp_path)
    assert error.value.name == name
    assert SECRET not in str(error.value)
    with pytest.raises(InvalidParameter, match="to be given"):
        OpenIdSignIn.of_settings(identities, {"issuer": ISSUER, "client_id": CLIENT}, tmp_path)


def test_a_provider_is_asked_about_itself_once_in_a_while() -> None:
    scene = Scene()
    asked: list[str] = []
    honest = scene.service._fetch
    scene.service._fetch = lambda url, form, headers: (asked.append(url), honest(url, form, headers))[-1]  # type: ignore[func-returns-value]
    for _ in range(50):
        scene.service.begin(BACK)
    assert len(asked) == 1
    scene.office.clock.now += 300
    scene.service.begin(BACK)
    assert len(asked) == 2


def test_a_provider_that_is_not_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(ServiceUnavailable):
        fetch_json(f"http://127.0.0.1:{port}/", None, {})
    with pytest.raises(InvalidParameter):
        fetch_json("file:///etc/passwd", None, {})


# ------------------------------------------------------------------------------------------------------- a real one


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


@pytest.fixture
def issuer() -> Iterator[str]:
    """The address of a provider in a process of its own."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    claims = '{"sub": "ana", "email": "ana@example.org", "email_verified": true}'
    command = [sys.executable, "-m", "oidc_provider_mock", "--port", str(port), "--user-claims", claims]
    process = subprocess.Popen(
        command, env={**os.environ, "PYTHONWARNINGS": "ignore"}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait(f"http://127.0.0.1:{port}/.well-known/openid-configuration", process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    """Until it answers, or has ended."""
    while process.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5):
            return
    pytest.fail("the provider does not start")


def consent(departure: AuthorizationRequest, who: str) -> dict[str, str]:
    """What a browser comes back with after somebody has said who they are."""
    form = urlencode({"sub": who}).encode()
    try:
        urllib.request.build_opener(_Stay).open(departure.url, form, timeout=10)
    except urllib.error.HTTPError as error:
        query = urlsplit(error.headers["Location"]).query
        return {name: value[0] for name, value in parse_qs(query).items()}
    pytest.fail("the provider sends nobody back")


@pytest.mark.slow
def test_a_real_provider_signs_people_in(issuer: str) -> None:
    office = Office()
    office.clock.now = time.time()
    office.identities.make_person(LOCAL, "ana@example.org", ServiceRole.ANALYST)
    service = OpenIdSignIn(office.identities, issuer=issuer, client_id=CLIENT, client_secret=SECRET)
    departure = service.begin("http://127.0.0.1/signed-in")
    back = consent(departure, "ana")
    session = service.finish(ticket=departure.ticket, state=back["state"], code=back["code"])
    assert office.identities.authenticate_session(session)[0].name == "ana@example.org"
    for who in ("stranger", "ben"):
        departure = service.begin("http://127.0.0.1/signed-in")
        back = consent(departure, who)
        with pytest.raises(NotAuthenticated):
            service.finish(ticket=departure.ticket, state=back["state"], code=back["code"])
    departure = service.begin("http://127.0.0.1/signed-in")
    back = consent(departure, "ana")
    with pytest.raises(NotAuthenticated):
        service.finish(ticket=departure.ticket, state=back["state"], code="another code")
