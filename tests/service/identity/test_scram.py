"""SCRAM-SHA-256: the vector of RFC 7677, another library as the client, and everything that is no proof."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Callable

import pytest
import scramp  # type: ignore[import-untyped]

from discreet.errors import NotAuthenticated
from discreet.service.identity import Identities
from discreet.service.identity.scram import ITERATIONS, Exchange, Verifier, salt_for
from tests.service.identity.helpers import Office

# RFC 7677, section 3.
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
CLIENT, SERVER = "rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
ANSWER = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
FINAL = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
PROOF = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def pencil(nonce: str = SERVER) -> Exchange:
    return Exchange([Verifier.of("pencil", SALT, key_id="k")], nonce=nonce)


def signed_in(office: Office, user: str, password: str) -> str:
    """The id of the key that proves a password, with another library as the client."""
    client = scramp.ScramClient(["SCRAM-SHA-256"], user, password)
    exchange = Exchange(office.identities.scram_verifier(user))
    client.set_server_first(exchange.first(client.get_client_first().encode()).decode())
    last, key_id = exchange.final(client.get_client_final().encode())
    client.set_server_final(last.decode())  # raises unless the server has proven itself, too
    return key_id


def test_the_exchange_of_the_standard() -> None:
    exchange = pencil()
    assert exchange.first(FIRST) == ANSWER
    assert exchange.final(FINAL) == (PROOF, "k")


def test_a_key_is_the_password_of_its_person() -> None:
    office = Office()
    assert signed_in(office, "ana", office.texts["ana"]) == office.ana.credential
    more_id, more = office.identities.make_key(office.sam, "ana")
    assert signed_in(office, "ana", more) == more_id
    assert signed_in(office, "ana", office.texts["ana"]) == office.ana.credential


def test_nothing_else_is() -> None:
    office = Office()
    for user, password in (
        ("ana", "x"),
        ("ana", office.texts["ben"]),
        ("ben", office.texts["ana"]),
        ("nobody", office.texts["ana"]),
        ("ana", office.ana.credential),
    ):
        with pytest.raises(NotAuthenticated):
            signed_in(office, user, password)


def test_keys_that_have_ended_prove_nothing() -> None:
    office = Office()
    office.identities.revoke_key(office.sam, office.ana.credential)
    office.identities.disable_person(office.sam, "ben")
    other_id, other = office.identities.rotate_key(office.eve, office.eve.credential)
    for user in ("ana", "ben", "eve"):
        with pytest.raises(NotAuthenticated):
            signed_in(office, user, office.texts[user])
    assert signed_in(office, "eve", other) == other_id
    office.clock.now += 91 * 86400
    with pytest.raises(NotAuthenticated):
        signed_in(office, "eve", other)


def test_names_that_nobody_has_cannot_be_told_from_others() -> None:
    """Salts are fixed for every name and differ between databases; having keys changes nothing that is said."""
    office, other = Office(), Office()
    first = b"n,,n=,r=abc"

    def said(identities: Identities, name: str) -> bytes:
        return Exchange(identities.scram_verifier(name), nonce="x").first(first)

    names = ("ana", "nobody", "owner", "", "a\nb", "\ud800")
    told = {name: said(office.identities, name) for name in names}
    assert told == {name: said(office.identities, name) for name in names}
    assert len(set(told.values())) == len(names)
    assert len({len(message) for message in told.values()}) == 1
    assert told["ana"] != said(other.identities, "ana")
    office.identities.disable_person(office.sam, "ana")
    assert said(office.identities, "ana") == told["ana"]
    office.identities.make_key(office.sam, "nobody", office.ben.role)
    assert said(office.identities, "nobody") == told["nobody"]


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,",
        b"n=user,r=abc",
        b"p=tls-unique,,n=user,r=abc",
        b"n,,n=user,r=",
        b"n,,n=user,r=a b",
        b"n,,m=x,n=user,r=abc",
        b"x,,n=user,r=abc",
        b"n,,n=user,r=abc\n",
        b"n,,n=user,r=abc\x00",
        b"\xff\xfe",
        b"n,,n=user,r=" + b"a" * 5000,
    ],
)
def test_first_messages_that_are_none(message: bytes) -> None:
    with pytest.raises(NotAuthenticated):
        pencil().first(message)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda _: b"",
        lambda text: text.replace(b"c=biws", b"c=eSws"),  # another binding than at first
        lambda text: text.replace(b"c=biws", b"c=????"),
        lambda text: text.replace(b"hNlF$k0", b"hNlF$k1"),  # another nonce
        lambda text: text.replace(SERVER.encode(), b""),
        lambda text: text.replace(b"p=dHzb", b"p=dHzc"),
        lambda text: text[:-4],
        lambda text: text.partition(b",p=")[0],
        lambda text: text.partition(b",p=")[0] + b",p=",
        lambda text: text.partition(b",p=")[0] + b",p=" + base64.b64encode(bytes(32)),
        lambda text: text.partition(b",p=")[0] + b",p=" + base64.b64encode(bytes(1000)),
        lambda text: text.replace(b",p=", b",x=y,p="),  # it is signed, so nothing can be added
        lambda text: text + b",p=AAAA",
        lambda text: text.replace(b"AndVQ=", "AndV\u00e9=".encode()),
    ],
)
def test_last_messages_that_prove_nothing(spoil: Callable[[bytes], bytes]) -> None:
    exchange = pencil()
    exchange.first(FIRST)
    with pytest.raises(NotAuthenticated):
        exchange.final(spoil(FINAL))
    with pytest.raises(NotAuthenticated):
        exchange.final(FINAL)  # there is one try


def test_an_exchange_cannot_be_played_again() -> None:
    other = pencil(nonce="another")
    other.first(FIRST)
    with pytest.raises(NotAuthenticated):
        other.final(FINAL)
    with pytest.raises(NotAuthenticated):
        pencil().final(FINAL)
    again = pencil()
    again.first(FIRST)
    with pytest.raises(NotAuthenticated):
        again.first(FIRST)
    fresh = Exchange([Verifier.of("pencil", SALT, key_id="k")])
    assert fresh.first(FIRST) != ANSWER


def test_what_the_database_holds_is_no_proof() -> None:
    """Neither StoredKey nor ServerKey makes a proof; only ClientKey would, whose hash the first is."""
    verifier = Verifier.of("pencil", SALT, key_id="k")
    message = b"any"
    for secret in (verifier.stored_key, verifier.server_key, bytes(32)):
        signature = hmac.digest(verifier.stored_key, message, "sha256")
        proof = bytes(a ^ b for a, b in zip(secret, signature, strict=True))
        assert not verifier.fits(proof, message)


def test_verifiers_are_those_of_the_other_library() -> None:
    salt = salt_for("ana", b"secret")
    salt_there, stored, server, iterations = scramp.ScramMechanism().make_auth_info(
        "dk_0_1", iteration_count=ITERATIONS, salt=salt
    )
    verifier = Verifier.of("dk_0_1", salt, key_id="k")
    assert (salt_there, stored, server, iterations) == (salt, verifier.stored_key, verifier.server_key, ITERATIONS)
