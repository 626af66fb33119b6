"""SCRAM from the client's side, by hand: for tests that speak the protocol byte by byte."""

from __future__ import annotations

import base64
import hmac
import struct
from hashlib import pbkdf2_hmac, sha256

from tests.service.wire.served import RawClient, Served, framed, startup


def first_message(nonce: str = "client-nonce") -> bytes:
    """The client's first message."""
    data = f"n,,n=,r={nonce}".encode()
    return framed(b"p", b"SCRAM-SHA-256\0" + struct.pack("!i", len(data)) + data)


def last_message(answer: str, password: str, nonce: str = "client-nonce", binding: str = "biws") -> bytes:
    """The client's last message, for what the server answered to its first."""
    told = dict(part.split("=", 1) for part in answer.split(","))
    salted = pbkdf2_hmac("sha256", password.encode(), base64.b64decode(told["s"]), int(told["i"]))
    key = hmac.digest(salted, b"Client Key", "sha256")
    bare = f"c={binding},r={told['r']}"
    message = f"n=,r={nonce},{answer},{bare}".encode()
    proof = bytes(a ^ b for a, b in zip(key, hmac.digest(sha256(key).digest(), message, "sha256"), strict=True))
    return framed(b"p", f"{bare},p={base64.b64encode(proof).decode()}".encode())


def signed_in(wire: Served, name: str = "ann", password: str | None = None) -> RawClient:
    """A client that has signed in and is waited for."""
    client = RawClient(wire.port)
    client.send(startup({"user": name, "database": "clinic"}))
    client.message()
    client.send(first_message())
    _, body = client.message() or (b"", b"")
    client.send(last_message(body[4:].decode(), password or wire.keys[name][1]))
    client.until(b"Z")
    return client
