"""A file that knows how far a ledger had got: its head, what was spent by then, and earlier heads.

A ledger verifies itself, but a good copy of yesterday is a good ledger of yesterday. This file shows what the copy has
forgotten since. It is kept apart from the ledger: never in the same backup, and best on another disk.

Formal guarantee: the file is never ahead of what is durable. It is written from a view of the ledger that sees
committed entries only (a store shows nothing before it is synced), to a temporary file that is synced and then put in
its place, so that after a crash there is the old one or the new one. It may lag behind, by entries that were made since
by others or right before a crash; it never goes back.

It is in the state folder of the ledger's owner, under the ledger's id, unless another place is named. The id is in the
first entry, so all copies of a ledger have the same id and find the same anchor. The folder also has a small file for
each place where a ledger was, so that a ledger that has gone from there is not begun anew.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache

from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, LedgerError
from discreet.ledger.account import Account, AccountMember, AccountState
from discreet.ledger.entry import GENESIS, Head, digest
from discreet.ledger.serialization import canonical, parse_canonical, quoted, read_loss, read_unit
from discreet.ledger.store.ledger_store import Place, Transaction
from discreet.postgres_url import is_postgres
from discreet.privacy import Loss, Neighbours, Unit

_PLACES = "places"


def anchors_folder() -> str:
    """Returns the folder of all anchors that have no place of their own: `discreet/anchors` in $XDG_STATE_HOME."""
    given = os.environ.get("XDG_STATE_HOME", "")
    state = given if os.path.isabs(given) else os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(state, "discreet", "anchors")


def anchor_of(ledger_id: str) -> str:
    """Returns the file of a ledger's anchor in that folder."""
    return os.path.join(anchors_folder(), ledger_id)


def is_default(anchor_file: str) -> bool:
    """Returns whether an anchor is found by the id of its ledger alone."""
    return os.path.dirname(anchor_file) == anchors_folder()


def require_folder() -> None:
    """Makes the folder of all anchors, before there is a ledger that needs one.

    Raises:
        LedgerError: if it cannot be made, or nothing can be written there.
    """
    folder = anchors_folder()
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        os.makedirs(os.path.join(folder, _PLACES), mode=0o700, exist_ok=True)
        writable = os.access(folder, os.W_OK | os.X_OK)
        reason = "it is not writable"
    except OSError as error:
        writable, reason = False, str(error.strerror).lower()
    if not writable:
        raise LedgerError(
            f"The anchor of the ledger cannot be kept in {folder}: {reason}",
            'Name a file on another disk, `anchor = "/var/lib/discreet/clinic.anchor"` in discreet.toml or '
            '`Curator(ledger, anchor="/var/lib/discreet/clinic.anchor")`, or set XDG_STATE_HOME to a folder of yours.',
        )


def remember_place(place: str, ledger_id: str) -> None:
    """Notes that a ledger is at a place; a failure to write the note is ignored, because the anchor is what counts."""
    file = _place_file(place)
    with suppress(OSError):
        if _read(file) != ledger_id:
            beside = f"{file}.{os.getpid()}"
            with open(beside, "w", encoding="utf-8") as out:
                out.write(ledger_id)
            os.replace(beside, file)


def find_known_anchor(place: str) -> str | None:
    """Returns the anchor of the ledger that was at a place; None if no ledger is known to have been there."""
    ledger_id = _read(_place_file(place))
    return anchor_of(ledger_id) if ledger_id and ledger_id.isalnum() else None


def _place_file(place: str) -> str:
    whole = place if is_postgres(place) else os.path.realpath(place)
    return os.path.join(anchors_folder(), _PLACES, hashlib.sha256(whole.encode("utf-8", "surrogateescape")).hexdigest())


def _read(file: str) -> str | None:
    try:
        with open(file, encoding="utf-8") as opened:
            return opened.read(200)
    except (OSError, UnicodeDecodeError):
        return None


@contextmanager
def alone(anchor_file: str) -> Iterator[None]:
    """Keeps other processes from writing anchors in the same folder, so that none is put back to an earlier head.

    The folder itself is locked: a lock file would be left behind. On a disk without locks, no process waits.
    """
    descriptor = os.open(_folder(anchor_file), os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


_FORM = 1  # of the file
_SCOPES = ("account", "failures", "groups", "member", "members", "project", "role", "standing", "team")
_MOST_HEADS = 128  # earlier heads of each kind; between them and the next one a loss is counted twice


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerCheckpoint:
    """The state of a ledger at some head: how far it had got.

    Attributes:
        head: the newest that is known.
        states: what the entries up to it amount to: accounts without their salts, spending, caps and roles.
        earlier: heads before it, oldest first.
        backups: heads of copies that were made on purpose, oldest first.
    """

    head: Head
    states: Mapping[Place, str]
    earlier: tuple[Head, ...] = ()
    backups: tuple[Head, ...] = ()

    @classmethod
    def of(cls, rows: Transaction, known: LedgerCheckpoint | None = None) -> LedgerCheckpoint:
        """Returns the anchor of a ledger as it is now, with the heads that an older anchor of it knows."""
        states = {(scope, name): _hide_salt(scope, text) for scope, name, text in rows.states(*_SCOPES)}
        if known is None:
            return cls(head=rows.tail(), states=states)
        earlier = (*known.earlier, known.head)[-_MOST_HEADS:]
        return cls(head=rows.tail(), states=states, earlier=earlier, backups=known.backups)

    def with_backup(self, head: Head) -> LedgerCheckpoint:
        """Returns the same anchor, which knows of one more copy."""
        return replace(self, backups=(*self.backups, head)[-_MOST_HEADS:])

    def is_in(self, rows: Transaction) -> bool:
        """Returns whether a ledger contains the head."""
        return _contains(rows, self.head)

    def common(self, rows: Transaction) -> Head:
        """Returns the newest head that is known and in the ledger: up to there both are the same for certain."""
        known = sorted({*self.earlier, *self.backups, self.head}, reverse=True)
        return next((head for head in known if _contains(rows, head)), Head(0, GENESIS))

    # ------------------------------------------------------------------------------------------------ what it knows

    @property
    def accounts(self) -> tuple[str, ...]:
        """The names of all accounts, as the anchor knows them."""
        return tuple(name for scope, name in self.states if scope == "account")

    def opening(self, account: str) -> tuple[Unit, Neighbours, Loss]:
        """Returns what an account was opened with."""
        fields = parse_canonical(self.states["account", account])
        return read_unit(fields["unit"]), Neighbours(fields["neighbours"]), read_loss(fields["budget"])

    def standing(self, account: str) -> AccountState:
        """Returns where an account stood."""
        return AccountState.read(self.states["standing", account])

    def shares(self, scope: str, account: str) -> dict[str, AccountMember]:
        """Returns where each person ("member"), project or team stood on an account."""
        start = f"{account}\n"
        found = {name: text for (kind, name), text in self.states.items() if kind == scope and name.startswith(start)}
        return {name.removeprefix(start): AccountMember.read(text) for name, text in found.items()}

    def failures(self, account: str) -> dict[str, int]:
        """Returns the failure credits that each name had used up on an account."""
        return dict(parse_canonical(self.states.get(("failures", account), "{}")))

    def team(self, scope: str, account: str, team: str) -> list[str]:
        """Returns the people ("members") or the groups of the sign-in provider ("groups") that are a team."""
        return list(parse_canonical(self.states.get((scope, f"{account}\n{team}"), "[]")))

    @property
    def roles(self) -> dict[str, str]:
        """The roles that were given on the whole ledger."""
        return {name: parse_canonical(text)["role"] for (scope, name), text in self.states.items() if scope == "role"}

    # ---------------------------------------------------------------------------------------------------- as a text

    def write(self) -> str:
        """Returns the text of the file; its last field is a digest of the others, against a damaged disk."""
        states = canonical([[*place, text] for place, text in sorted(self.states.items())])
        text = (
            f'{{"anchor":{_FORM},"backups":{_write_heads(self.backups)},"earlier":{_write_heads(self.earlier)},'
            f'"head":{quoted(str(self.head))},"states":{states}}}'
        )
        return f'{text[:-1]},"digest":"{digest(text.encode())}"}}\n'

    @classmethod
    def read(cls, text: str) -> LedgerCheckpoint:
        """Returns the anchor of a text.

        Raises:
            ValueError: if it is none, or was changed.
        """
        told = dict(json.loads(text))
        if told.pop("digest") != digest(canonical(told).encode()) or told["anchor"] != _FORM:
            raise ValueError
        return cls(
            head=Head.parse(told["head"]),
            states={(scope, name): state for scope, name, state in told["states"]},
            earlier=tuple(Head.parse(one) for one in told["earlier"]),
            backups=tuple(Head.parse(one) for one in told["backups"]),
        )


def _write_heads(heads: Sequence[Head]) -> str:
    """Returns heads as canonical JSON, put together by hand: there may be many, and each answer writes them."""
    return f"[{','.join(map(_write_head, heads))}]"


@lru_cache(maxsize=4 * _MOST_HEADS)
def _write_head(head: Head) -> str:
    """Returns a head as canonical JSON; the next anchor has nearly the same ones."""
    return quoted(str(head))


def read_anchor(path: str) -> LedgerCheckpoint | None:
    """Returns the anchor in a file; None if there is no file.

    Raises:
        InvalidParameter: if its folder is not there: a disk may not be mounted, and with it what is known.
        LedgerError: if the file cannot be read, or was changed.
    """
    require_disk(path)
    try:
        with open(path, "rb", buffering=0) as file:
            return _anchor_in(file.readall())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LedgerError(
            f"The anchor {path} cannot be read ({error.strerror})", "Run this as the owner of the ledger."
        ) from None
    except (InvalidParameter, KeyError, TypeError, ValueError):
        hint = "Restore its last copy. Without it, an older copy of the ledger cannot be recognized."
        raise LedgerError(f"The anchor {path} is damaged, or is not an anchor", hint) from None


_WRITTEN: dict[bytes, LedgerCheckpoint] = {}  # by their texts: a frequent writer mostly reads what it wrote itself
_MOST_WRITTEN = 8


def _anchor_in(text: bytes) -> LedgerCheckpoint:
    return _WRITTEN.get(text) or LedgerCheckpoint.read(text.decode())


def require_disk(path: str) -> None:
    """Refuses a file in a folder that is not there.

    Raises:
        InvalidParameter: if it is not.
    """
    if not os.path.isdir(_folder(path)):
        hint = "Mount its disk. If there never was an anchor, create the folder."
        raise InvalidParameter("anchor", path, "to be in a folder that exists", hint)


def write_anchor(path: str, anchor: LedgerCheckpoint) -> None:
    """Puts an anchor in the place of an older one, durably, readable by its owner only.

    Raises:
        OSError: if it cannot be written; the older one is still there.
    """
    beside, text = f"{path}.{os.getpid()}", anchor.write().encode()
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise
    _sync_folder(path)
    while len(_WRITTEN) >= _MOST_WRITTEN:
        _WRITTEN.pop(next(iter(_WRITTEN)), None)
    _WRITTEN[text] = anchor


def _sync_folder(path: str) -> None:
    descriptor = os.open(_folder(path), os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _folder(path: str) -> str:
    return os.path.dirname(path) or "."


def _contains(rows: Transaction, head: Head) -> bool:
    return head.hash == (rows.hash_at(head.sequence) if head.sequence else GENESIS)


@lru_cache(maxsize=256)
def _hide_salt(scope: str, text: str) -> str:
    """Returns a state as the anchor has it: without the salt of an account, which stays secret."""
    if scope != "account":
        return text
    return canonical(
        {key: value for key, value in parse_canonical(Account.read(text).write()).items() if key != "salt"}
    )
