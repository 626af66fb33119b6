"""How often a caller may ask: buckets in memory for each minute, counts in the database for each day.

Limits count requests and nothing else, so that they reveal nothing about data. A bucket holds as many requests as a
minute allows, and is filled at that rate. Counts of the day survive a restart, and a rotated key keeps its count; a
person's sessions share one.
"""

from __future__ import annotations

import ipaddress
import math
import threading
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from discreet.dataclass import dataclass
from discreet.errors import TooManyRequests
from discreet.service.caller import ServiceCaller
from discreet.service.identity.access_keys import lineage
from discreet.service.identity.browser_sessions import SESSION, key_of_session
from discreet.service.identity.identities import Identities

MOST_BUCKETS = 10_000
"""How many buckets of a kind are in memory; the least recently used one is forgotten, and starts full again."""

EVERYBODY = "everybody"


@dataclass(slots=True)
class _Bucket:
    level: float
    at: float


class Buckets:
    """Token buckets by name; only the most recently used are kept.

    Args:
        size: how many are taken at once at most.
        per_second: how many come back.
        clock: seconds; a clock that goes back fills no bucket.
    """

    def __init__(self, size: float, per_second: float, clock: Callable[[], float], *, most: int = MOST_BUCKETS) -> None:
        self._size, self._rate, self._clock, self._most = size, per_second, clock, most
        self._kept: OrderedDict[str, _Bucket] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def take(self, name: str) -> float:
        """Takes one, unless there is none.

        Returns:
            0, or the seconds until there is one.
        """
        with self._lock:
            bucket = self._refill_bucket(name)
            missing = self._wait(bucket)
            if not missing:
                bucket.level -= 1
            return missing

    def _wait(self, bucket: _Bucket) -> float:
        return 0.0 if bucket.level >= 1 else (1 - bucket.level) / self._rate

    def _refill_bucket(self, name: str) -> _Bucket:
        now = self._clock()
        bucket = self._kept.setdefault(name, _Bucket(self._size, now))
        self._kept.move_to_end(name)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)
        bucket.level = min(self._size, bucket.level + max(0.0, now - bucket.at) * self._rate)
        bucket.at = now
        return bucket


class RateLimits:
    """Limits what one credential, one address and all strangers together may try.

    Args:
        identities: their database keeps the counts of the day.
        requests_per_minute, questions_per_day: of one key, or of one person's sessions.
        failures_per_minute: sign-ins that fail, of one address.
        all_failures_per_minute: of all addresses together; a valid key is never refused for it.
    """

    def __init__(
        self,
        identities: Identities,
        *,
        requests_per_minute: int = 600,
        questions_per_day: int = 2000,
        failures_per_minute: int = 20,
        all_failures_per_minute: int = 1000,
    ) -> None:
        clock = identities.clock
        self._database, self._clock, self._per_day = identities.database, clock, questions_per_day
        self._requests = Buckets(requests_per_minute, requests_per_minute / 60, clock)
        self._failures = Buckets(failures_per_minute, failures_per_minute / 60, clock)
        self._everybody = Buckets(all_failures_per_minute, all_failures_per_minute / 60, clock)

    def admit(self, caller: ServiceCaller, charging: bool) -> None:
        """Counts a request, and a question of the day if it may be charged.

        Raises:
            TooManyRequests: if the caller has had as many as they may.
        """
        who = counted_identity(caller)
        _refuse(self._requests.take(who), "Too many requests with this key or by this person")
        if charging:
            self._count_question(who)

    def questions_left(self, caller: ServiceCaller) -> int:
        """Returns how many questions a caller may still ask today."""
        row = self._database.row(
            "SELECT questions FROM counts WHERE day = ? AND credential = ?", self._today(), counted_identity(caller)
        )
        return max(0, self._per_day - (row["questions"] if row is not None else 0))

    def _count_question(self, who: str) -> None:
        today = self._today()
        with self._database.counting() as connection:
            connection.execute("DELETE FROM counts WHERE day < ?", (today,))
            changed = connection.execute(
                "INSERT INTO counts VALUES (?,?,1) ON CONFLICT (day, credential) DO UPDATE "
                "SET questions = questions + 1 WHERE questions < ?",
                (today, who, self._per_day),
            ).rowcount
        if not changed:
            _refuse(self._until_tomorrow(), f"You have used all {self._per_day} queries of today")

    def _today(self) -> str:
        return datetime.fromtimestamp(self._clock(), UTC).date().isoformat()

    def _until_tomorrow(self) -> float:
        now = datetime.fromtimestamp(self._clock(), UTC)
        tomorrow = datetime.combine(now.date() + timedelta(days=1), datetime.min.time(), UTC)
        return (tomorrow - now).total_seconds()

    # ---------------------------------------------------------------------------------------------------- strangers

    def note_failure(self, address: str) -> None:
        """Counts a sign-in that failed; it is called after the lookup, so that valid keys are never refused for it.

        All clients behind one proxy or tunnel share an address. A key has 160 random bits, so refusing valid keys would
        add nothing against guessing.

        Raises:
            TooManyRequests: if too many have, from there or from everywhere; instead of what would be raised else.
        """
        reason = "Too many failed sign-ins"
        _refuse(self._failures.take(network(address)), f"{reason} from this address")
        _refuse(self._everybody.take(EVERYBODY), reason)


def counted_identity(caller: ServiceCaller) -> str:
    """Returns what limits count of a caller: a key with those that replaced it, or all sessions of a person.

    A session that was begun with a key counts as the key.
    """
    if caller.credential.startswith(SESSION):
        key = key_of_session(caller.credential)
        return lineage(key) if key else f"{SESSION}{caller.name}"
    return lineage(caller.credential)


def network(address: str) -> str:
    """Returns what an address is counted as: itself, or in IPv6 the /64 network that one customer has.

    >>> network("192.0.2.7"), network("2001:db8::1:2"), network("::ffff:192.0.2.7"), network("a pipe")
    ('192.0.2.7', '2001:db8::/64', '192.0.2.7', 'unknown')
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return "unknown"
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    return str(found.ipv4_mapped or ipaddress.ip_network((found, 64), strict=False))


def _refuse(seconds: float, reason: str) -> None:
    if seconds > 0:
        raise TooManyRequests(reason, "Wait, then send requests less often.", retry_after=max(1, math.ceil(seconds)))
