"""SCRAM-SHA-256 (RFC 5802, RFC 7677), the server's side: a password is proven without being sent.

A person has several keys, and each is a password. The server names one salt before it knows which key is meant, so all
keys of a person share theirs, and the proof is compared with each of them. Salts follow from a secret of the database
and the name, for names that exist and for all others, so that a client cannot distinguish them.

Channel binding (SCRAM-SHA-256-PLUS) is not offered; a client that demands it is refused.

Notation of RFC 5802: SaltedPassword = PBKDF2(password, salt, iterations), ClientKey = HMAC(SaltedPassword, "Client
Key"), StoredKey = H(ClientKey), ServerKey = HMAC(SaltedPassword, "Server Key"), AuthMessage = the bare first message of
the client, the server's first and the client's last without its proof, joined by commas.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from collections.abc import Sequence
from hashlib import pbkdf2_hmac, sha256

from discreet.dataclass import dataclass
from discreet.errors import NotAuthenticated
from discreet.noise.tokens import token

ITERATIONS = 4096
"""The least that RFC 7677 asks for; more would only slow down guessing, which 160 random bits make hopeless."""

SALT_BYTES = 16
MECHANISM = "SCRAM-SHA-256"
_LONGEST = 2048  # characters of a message
_PRINTABLE = r"[\x21-\x2b\x2d-\x7e]+"  # of a nonce: no comma
_FIRST = re.compile(rf"(?P<binding>[ny],(?:a=[^,]*)?,)(?P<bare>n=(?P<user>[^,]*),r=(?P<nonce>{_PRINTABLE})(?:,.*)?)")
_FINAL = re.compile(rf"(?P<bare>c=(?P<binding>[^,]+),r=(?P<nonce>{_PRINTABLE})(?:,[^p].*?)?),p=(?P<proof>[^,]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verifier:
    """The values that prove that a client has a key, and are of no use to sign in with.

    Attributes:
        key_id: the public id of the key; "" for a key that does not exist.
    """

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes
    key_id: str

    @classmethod
    def of(cls, password: str, salt: bytes, *, key_id: str, iterations: int = ITERATIONS) -> Verifier:
        """Returns the verifier of a password; keys are plain ASCII, so that it needs no preparation."""
        salted = pbkdf2_hmac("sha256", password.encode("ascii"), salt, iterations)
        stored = sha256(_mac(salted, b"Client Key")).digest()
        made = _mac(salted, b"Server Key")
        return cls(salt=salt, iterations=iterations, stored_key=stored, server_key=made, key_id=key_id)

    @classmethod
    def of_unknown_person(cls, salt: bytes) -> Verifier:
        """Returns a verifier that no proof fits, except by guessing 256 bits."""
        nothing = bytes(32)
        return cls(salt=salt, iterations=ITERATIONS, stored_key=nothing, server_key=nothing, key_id="")

    def fits(self, proof: bytes, message: bytes) -> bool:
        """Returns whether a proof was made with the key, for an exchange; takes the same time for every proof."""
        key = bytes(a ^ b for a, b in zip(proof, _mac(self.stored_key, message), strict=True))
        return hmac.compare_digest(sha256(key).digest(), self.stored_key) and bool(self.key_id)


def salt_for(name: str, secret: bytes) -> bytes:
    """Returns the salt of a name, whether or not a person has it."""
    return _mac(secret, b"salt\n" + name.encode("utf-8", "surrogatepass"))[:SALT_BYTES]


class Exchange:
    """One sign-in: `first`, then `final`, each once.

    Args:
        verifiers: of all keys that the name has now; they share a salt, and there is at least one.
        nonce: for tests only; random otherwise.

    Formal guarantee: `final` returns a key's id only to who has that key, or its SaltedPassword; everything else raises
    the same error. A recorded exchange cannot be played again, since the server's nonce is new each time.
    """

    def __init__(self, verifiers: Sequence[Verifier], *, nonce: str | None = None) -> None:
        self._verifiers = tuple(verifiers)
        self._own = token(18) if nonce is None else nonce
        self._said: tuple[str, str, str, str] | None = None

    def first(self, message: bytes) -> bytes:
        """Returns the server's first message.

        Raises:
            NotAuthenticated: if the client's is malformed, demands channel binding, or comes again.
        """
        found = _FIRST.fullmatch(_text(message))
        if found is None or self._said is not None:
            raise NotAuthenticated
        nonce = found["nonce"] + self._own
        salt, iterations = self._verifiers[0].salt, self._verifiers[0].iterations
        answer = f"r={nonce},s={base64.b64encode(salt).decode()},i={iterations}"
        self._said = found["binding"], found["bare"], nonce, answer
        return answer.encode()

    def final(self, message: bytes) -> tuple[bytes, str]:
        """Returns the server's last message, which proves that it knows the key, and the key's id.

        Raises:
            NotAuthenticated: if the proof fits no key, or belongs to another exchange.
        """
        found, said = _FINAL.fullmatch(_text(message)), self._said
        self._said = None
        if found is None or said is None:
            raise NotAuthenticated
        binding, bare, nonce, answer = said
        proof = _decode_base64(found["proof"])
        same = _decode_base64(found["binding"]) == binding.encode() and hmac.compare_digest(found["nonce"], nonce)
        if not same or len(proof) != sha256().digest_size:
            raise NotAuthenticated
        told = f"{bare},{answer},{found['bare']}".encode()
        # All are tried, so that the time does not show which key fits.
        fitting = [each for each in self._verifiers if each.fits(proof, told)]
        if not fitting:
            raise NotAuthenticated
        return b"v=" + base64.b64encode(_mac(fitting[0].server_key, told)), fitting[0].key_id


def _mac(key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, "sha256")


def _text(message: bytes) -> str:
    try:
        text = message.decode("utf-8")
    except UnicodeDecodeError:
        raise NotAuthenticated from None
    if len(text) > _LONGEST or not text.isprintable():
        raise NotAuthenticated
    return text


def _decode_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise NotAuthenticated from None
