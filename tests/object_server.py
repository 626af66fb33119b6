"""Objects on a server of our own, on a free port of the loopback, that counts what it sends and fails when it is told.

It speaks as much of S3 as a reader needs, of Azure's blobs too, and plain HTTPS. What it says is compared with servers
of others in `tests/engines/test_clouds.py`.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import ipaddress
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import cast
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

PROFILE = "tests"
AZURE_ACCOUNT = "tests0account"
_TIME = "Mon, 01 Jan 2024 00:00:00 GMT"

Hook = Callable[["ObjectServer", str, str], int | None]


class ObjectServer:
    """A server of objects.

    Attributes:
        objects: contents by `bucket/name`; a bucket is there if an object of it is.
        asked: the headers of each request, their names in lower case.
        sent: the method, the object and the bytes of each answer.
        hook: is called before each answer; a status that it returns is answered instead.
        after: is called once, after the next answer.
        headers: that are left out of answers.
        ranges: whether parts are sent where parts are asked for.
    """

    def __init__(self, folder: Path, *, encrypted: bool) -> None:
        self.objects: dict[str, bytes] = {}
        self.sent: list[tuple[str, str, int]] = []
        self.hook: Hook | None = None
        self.after: Callable[[], None] | None = None
        self.headers: set[str] = set()
        self.ranges = True
        self.asked: list[Mapping[str, str]] = []
        self._server = _Server(("127.0.0.1", 0), _Answers)
        self._server.owner = self
        self.port = self._server.server_address[1]
        if encrypted:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(_certificate(folder))
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    @property
    def host(self) -> str:
        """Where it is."""
        return f"127.0.0.1:{self.port}"

    @property
    def read(self) -> int:
        """Bytes of contents that were sent."""
        return sum(size for method, _, size in self.sent if method == "GET")

    def forget(self) -> None:
        """Is as it was at first."""
        self.objects.clear()
        self.sent.clear()
        self.asked.clear()
        self.headers.clear()
        self.hook = self.after = None
        self.ranges = True

    def close(self) -> None:
        """Ends it."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    owner: ObjectServer
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is no news."""


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # headers and content in one packet

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Prints nothing; the base class calls it so."""
        del format, args

    def do_HEAD(self) -> None:
        """Answers without a content."""
        self._answer()

    def do_GET(self) -> None:
        """Answers with a content."""
        self._answer()

    @property
    def _owner(self) -> ObjectServer:
        return cast("_Server", self.server).owner

    def _answer(self) -> None:
        owner = self._owner
        asked = urlsplit(self.path)
        name, query = unquote(asked.path).strip("/").removeprefix(f"{AZURE_ACCOUNT}/"), parse_qs(asked.query)
        owner.asked.append({key.lower(): value for key, value in self.headers.items()})
        status = None if owner.hook is None else owner.hook(owner, self.command, name)
        if status is not None:
            self._send(status, b"<Error><Code>CANARY</Code><Message>CANARY</Message></Error>")
        elif "list-type" in query:
            self._list(name, query)
        elif query.get("comp") == ["list"]:
            self._list_of_azure(name, query)
        elif "action" in query:  # whether a container has folders
            self._send(404, b"")
        elif name in owner.objects:
            self._object(name, owner.objects[name])
        else:
            is_bucket = any(one.startswith(f"{name}/") for one in owner.objects) and "/" not in name
            self._send(200 if is_bucket else 404, b"")

    def _list(self, bucket: str, query: Mapping[str, list[str]]) -> None:
        owner = self._owner
        prefix, delimiter = query.get("prefix", [""])[0], query.get("delimiter", [""])[0]
        names = sorted(one.removeprefix(f"{bucket}/") for one in owner.objects if one.startswith(f"{bucket}/"))
        if not names:
            self._send(404, b"<Error><Code>NoSuchBucket</Code><Message>CANARY</Message></Error>")
            return
        found, folders = [], dict[str, None]()
        for name in names:
            rest = name.removeprefix(prefix)
            if name.startswith(prefix) and delimiter and delimiter in rest:
                folders[prefix + rest.partition(delimiter)[0] + delimiter] = None
            elif name.startswith(prefix):
                found.append(name)
        text = "".join(
            f"<Contents><Key>{escape(name)}</Key><LastModified>2024-01-01T00:00:00.000Z</LastModified>"
            f"<ETag>{escape(_tag(owner.objects[f'{bucket}/{name}']))}</ETag>"
            f"<Size>{len(owner.objects[f'{bucket}/{name}'])}</Size></Contents>"
            for name in found
        ) + "".join(f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>" for one in folders)
        counted = len(found) + len(folders)
        self._send(
            200,
            f'<?xml version="1.0" encoding="UTF-8"?><ListBucketResult><Name>{bucket}</Name>'
            f"<KeyCount>{counted}</KeyCount><MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated>{text}</ListBucketResult>".encode(),
            {"Content-Type": "application/xml"},
        )

    def _list_of_azure(self, container: str, query: Mapping[str, list[str]]) -> None:
        """Lists one folder."""
        objects, prefix = self._owner.objects, query.get("prefix", [""])[0]
        start = len(f"{container}/{prefix}")
        names = sorted(one for one in objects if one.startswith(f"{container}/{prefix}"))
        if not any(one.startswith(f"{container}/") for one in objects):
            self._send(404, b"", {"x-ms-error-code": "ContainerNotFound"})
            return
        folders = dict.fromkeys(one[start:].partition("/")[0] for one in names if "/" in one[start:])
        text = "".join(
            f"<Blob><Name>{escape(one.removeprefix(f'{container}/'))}</Name><Properties><Last-Modified>{_TIME}"
            f"</Last-Modified><Etag>{escape(_tag(objects[one]))}</Etag><Content-Length>{len(objects[one])}"
            "</Content-Length><BlobType>BlockBlob</BlobType></Properties></Blob>"
            for one in names
            if "/" not in one[start:]
        ) + "".join(f"<BlobPrefix><Name>{escape(prefix + one)}/</Name></BlobPrefix>" for one in folders)
        text = f"<EnumerationResults><Prefix>{escape(prefix)}</Prefix><Blobs>{text}</Blobs><NextMarker />"
        text = f'<?xml version="1.0" encoding="utf-8"?>{text}</EnumerationResults>'
        self._send(200, text.encode(), {"Content-Type": "application/xml"})

    def _object(self, name: str, content: bytes) -> None:
        owner = self._owner
        headers = {"ETag": _tag(content), "Last-Modified": _TIME, "x-ms-blob-type": "BlockBlob"}
        headers |= {"x-ms-creation-time": _TIME, "x-ms-version": "2024-01-01", "x-ms-server-encrypted": "true"}
        if self.headers.get("If-Match", _tag(content)) != _tag(content):
            self._send(412, b"")
            return
        given, status = self.headers.get("x-ms-range") or self.headers.get("Range", ""), 200
        if given and self._owner.ranges:
            first, _, last = given.removeprefix("bytes=").partition("-")
            part = content[int(first) : int(last) + 1 if last else None]
            headers["Content-Range"] = f"bytes {first}-{int(first) + len(part) - 1}/{len(content)}"
            content, status = part, 206
        owner.sent.append((self.command, name, len(content)))
        self._send(status, content, headers)

    def _send(self, status: int, content: bytes, headers: Mapping[str, str] | None = None) -> None:
        owner = self._owner
        self.send_response(status)
        for key, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
            if key not in owner.headers:
                self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
        after, owner.after = owner.after, None
        if after is not None:
            after()


@lru_cache(maxsize=64)
def _tag(content: bytes) -> str:
    return f'"{hashlib.md5(content).hexdigest()}"'


def _certificate(folder: Path) -> Path:
    """Writes a key and a certificate of this machine; the certificate is what clients trust."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption(), serialization.PrivateFormat.PKCS8, serialization.Encoding.PEM
    secret = key.private_bytes(plain[2], plain[1], plain[0])
    path = folder / "server.pem"
    path.write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
    return path


@pytest.fixture(scope="session")
def bucket_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectServer]:
    """A server of buckets."""
    server = ObjectServer(tmp_path_factory.mktemp("buckets"), encrypted=False)
    yield server
    server.close()


@pytest.fixture(scope="session")
def secure_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ObjectServer, Path]]:
    """A web server, and the certificate that it shows."""
    folder = tmp_path_factory.mktemp("web")
    server = ObjectServer(folder, encrypted=True)
    yield server, folder / "server.pem"
    server.close()


@pytest.fixture
def lake(bucket_server: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectServer]:
    """A server of buckets without objects, which the profile `tests` names."""
    text = f'endpoint_override = "{bucket_server.host}"\nscheme = "http"\nregion = "us-east-1"\n'
    write_profile(tmp_path, monkeypatch, f'{text}access_key = "k"\nsecret_key = "SECRET"\n')
    yield bucket_server
    bucket_server.forget()


@pytest.fixture
def web(
    secure_server: tuple[ObjectServer, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ObjectServer]:
    """A web server without files, whose certificate the profile `tests` trusts."""
    server, trusted = secure_server
    write_profile(tmp_path, monkeypatch, f'ca_file = "{trusted}"\ntoken = "SECRET"\n')
    yield server
    server.forget()


def write_profile(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Writes the profile `tests`."""
    (folder / "profiles.toml").write_text(f"[{PROFILE}]\n{text}")
    monkeypatch.setenv("DISCREET_PROFILES", str(folder / "profiles.toml"))


def put_folder(server: ObjectServer, folder: Path, below: str) -> None:
    """Puts all files of a folder on a server."""
    for path in folder.rglob("*"):
        if path.is_file():
            server.objects[f"{below}/{path.relative_to(folder).as_posix()}"] = path.read_bytes()
