"""Where a steward's files are: in listed roots, or uploaded. Nothing else can be named, and nothing is read here.

A file is named by a source such as ``root/0/2026/visits.csv`` or ``upload/<random>.csv``, and becomes a path only by
`resolve`, which follows every link before it looks whether the end is inside. What is in a file, a worker finds out.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from pathlib import Path, PurePosixPath

from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, ServiceUnavailable
from discreet.noise.tokens import token
from discreet.service.settings import Settings

KINDS = (".csv", ".parquet")
_UPLOAD = re.compile(r"[0-9a-f]{32}\.(?:csv|parquet)")
_PATTERN = re.compile(r"[*?\[\]{}]")
_ADDRESS = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:")
_HINT = "Name a CSV or Parquet file inside one of the listed folders."


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSource:
    """A file that a worker may read."""

    name: str
    path: Path

    @property
    def label(self) -> str:
        """The name that people know; an upload's random name means nothing to them."""
        return "the uploaded file" if self.name.startswith("upload/") else self.path.name


def from_path(text: str, settings: Settings) -> FileSource:
    """Returns the file of a path that a steward typed: absolute, or relative to a root.

    Raises:
        InvalidParameter: if it is an address or a pattern, is no CSV or Parquet file, or lies outside of all roots once
            links are followed. Whether a file exists is revealed only inside the roots.
    """
    _require_plain(text)
    for number, root in enumerate(settings.roots):
        found = _inside(root, text)
        if found is not None:
            return resolve(f"root/{number}/{found.relative_to(root.resolve()).as_posix()}", settings)
    raise InvalidParameter("path", text, "to be a file inside a listed folder", _HINT)


def resolve(name: str, settings: Settings) -> FileSource:
    """Returns the file of a source's name, looked up again each time.

    Raises:
        InvalidParameter: if it names nothing of the kind.
    """
    kind, _, rest = name.partition("/")
    number, _, below = rest.partition("/")
    path = None
    if kind == "upload" and _UPLOAD.fullmatch(rest):
        path = _inside(settings.uploads, rest)
    elif kind == "root" and number.isascii() and number.isdigit() and int(number) < len(settings.roots):
        _require_plain(below)
        path = _inside(settings.roots[int(number)], below)
    if path is None:
        raise InvalidParameter("source", name, "to be a file inside a listed folder", _HINT)
    return FileSource(name=name, path=path)


def _require_plain(text: str) -> None:
    if not text or "\x00" in text or _ADDRESS.match(text) or _PATTERN.search(text):
        raise InvalidParameter("path", text, "to be a path, not an address or a pattern", _HINT)
    if Path(text).suffix.lower() not in KINDS:
        raise InvalidParameter("path", text, "to end in .csv or .parquet", _HINT)


def _inside(folder: Path, below: str) -> Path | None:
    """Returns the file at the end of all links, if it is a plain file inside with an ending that we read."""
    base = folder.resolve()
    try:
        found = (base / below).resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        return None
    fits = found.is_relative_to(base) and found.is_file() and found.suffix.lower() in KINDS
    return found if fits and not _PATTERN.search(str(found)) else None


def list_files(settings: Settings, most: int = 200) -> list[str]:
    """Returns paths of files in the roots, relative to theirs, for a list to choose from; not all of many."""
    found: list[str] = []
    for root in settings.roots:
        base = root.resolve()
        for folder, folders, names in os.walk(base):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            inside = (Path(folder, name) for name in sorted(names) if Path(name).suffix.lower() in KINDS)
            found += [path.relative_to(base).as_posix() for path in inside if _inside(base, str(path)) is not None]
            if len(found) >= most:
                return found[:most]
    return found


# ---------------------------------------------------------------------------------------------------- uploads


async def store_upload(name: str, parts: AsyncIterator[bytes], settings: Settings) -> FileSource:
    """Writes an upload under a random name, as long as there is room for it; a file that is too long leaves nothing.

    Args:
        name: the browser's name of the file; only its ending counts.
        parts: its content.
        settings: the folder of uploads, and their limits.

    Raises:
        InvalidParameter: if it is no CSV or Parquet by its name, or is too long.
        ServiceUnavailable: if the disk does not take it.
    """
    ending = PurePosixPath(name.replace("\\", "/")).suffix.lower()
    if ending not in KINDS:
        raise InvalidParameter("file", name, "to end in .csv or .parquet", "Convert the file to CSV or Parquet.")
    settings.uploads.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = settings.uploads / f"{token(16)}{ending}"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            room = min(settings.upload_bytes, settings.uploads_bytes - count_uploaded_bytes(settings))
            async for part in parts:
                room -= len(part)
                if room < 0:
                    most = f"to have at most {settings.upload_bytes} bytes, all uploads {settings.uploads_bytes}"
                    hint = "Put the file into a listed folder, or ask the owner to delete old uploads."
                    raise InvalidParameter("file", "this upload", most, hint)
                file.write(part)
    except OSError:
        path.unlink(missing_ok=True)
        raise ServiceUnavailable("The file could not be stored", "Ask the owner to free space on the disk.") from None
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return FileSource(name=f"upload/{path.name}", path=path)


def count_uploaded_bytes(settings: Settings) -> int:
    """Returns how many bytes all uploads have."""
    return sum(entry.stat(follow_symlinks=False).st_size for entry in os.scandir(settings.uploads))
