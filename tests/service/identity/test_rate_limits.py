"""Limits: per credential and day, over restarts and rotations, per address and for all strangers together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from discreet.errors import TooManyRequests
from discreet.service.caller import ServiceCaller
from discreet.service.identity import RateLimits
from discreet.service.identity.rate_limits import Buckets
from tests.service.identity.helpers import NOON, Clock, Office

DAY = 86400


def passed(limits: RateLimits, caller: ServiceCaller, tries: int, *, charging: bool = True) -> int:
    """How many requests pass until one is refused."""
    for count in range(tries):
        try:
            limits.admit(caller, charging)
        except TooManyRequests:
            return count
    return tries


def test_requests_of_a_minute_come_back_with_time() -> None:
    office = Office()
    limits = RateLimits(office.identities, requests_per_minute=6)
    assert passed(limits, office.ana, 100, charging=False) == 6
    with pytest.raises(TooManyRequests) as error:
        limits.admit(office.ana, False)
    assert error.value.retry_after == 10
    assert passed(limits, office.ben, 100, charging=False) == 6  # others are not hindered
    office.clock.now += 9.9
    assert passed(limits, office.ana, 100, charging=False) == 0
    office.clock.now += 0.2
    assert passed(limits, office.ana, 100, charging=False) == 1
    office.clock.now += 3600
    assert passed(limits, office.ana, 100, charging=False) == 6  # no more than a minute's
    office.clock.now -= 7200
    assert passed(limits, office.ana, 100, charging=False) == 0  # a clock that goes back gives nothing


def test_questions_of_a_day_end_at_midnight() -> None:
    office = Office()
    limits = RateLimits(office.identities, questions_per_day=3)
    assert passed(limits, office.ana, 10) == 3
    with pytest.raises(TooManyRequests) as error:
        limits.admit(office.ana, True)
    assert error.value.retry_after == DAY / 2
    assert limits.questions_left(office.ana) == 0
    limits.admit(office.ana, False)  # what is free is not counted
    assert passed(limits, office.ben, 10) == 3
    office.clock.now = NOON + DAY / 2
    assert limits.questions_left(office.ana) == 3
    assert passed(limits, office.ana, 10) == 3
    assert len(office.identities.database.rows("SELECT * FROM counts")) == 1  # those of yesterday are gone


def test_a_restart_begins_no_new_day(tmp_path: Path) -> None:
    office = Office(path=tmp_path / "identities")
    assert passed(RateLimits(office.identities, questions_per_day=5), office.ana, 3) == 3
    again = type(office.identities)(tmp_path / "identities", clock=office.clock)
    assert passed(RateLimits(again, questions_per_day=5), office.ana, 10) == 2


def test_a_new_key_of_the_same_line_begins_no_new_day() -> None:
    office = Office()
    limits = RateLimits(office.identities, questions_per_day=3)
    assert passed(limits, office.ana, 10) == 3
    ana = office.ana
    for _ in range(3):
        _, text = office.identities.rotate_key(ana, ana.credential)
        ana = office.identities.authenticate_key(text)
        assert passed(limits, ana, 10) == 0


def test_all_sessions_of_a_person_are_counted_together() -> None:
    office = Office()
    limits = RateLimits(office.identities, questions_per_day=3)
    one, two = (office.identities.authenticate_session(office.session("ana"))[0] for _ in range(2))
    assert one.credential != two.credential
    assert passed(limits, one, 2) == 2
    assert passed(limits, two, 10) == 1
    other = office.identities.authenticate_session(office.session("ben"))[0]
    assert passed(limits, other, 10) == 3


def test_a_session_that_a_key_began_counts_as_the_key() -> None:
    office = Office()
    limits = RateLimits(office.identities, questions_per_day=3)
    assert passed(limits, office.ana, 2) == 2
    session, _ = office.identities.authenticate_session(office.identities.sign_in_with_key(office.texts["ana"]))
    assert passed(limits, session, 10) == 1
    assert passed(limits, office.ana, 10) == 0


def test_failed_sign_ins_of_an_address() -> None:
    office = Office()
    limits = RateLimits(office.identities, failures_per_minute=5)
    for _ in range(5):
        limits.note_failure("192.0.2.7")
    for address in ("192.0.2.7", "::ffff:192.0.2.7"):
        with pytest.raises(TooManyRequests):
            limits.note_failure(address)
    limits.note_failure("192.0.2.8")
    office.clock.now += 12
    limits.note_failure("192.0.2.7")


def test_a_network_of_addresses_is_one_stranger() -> None:
    limits = RateLimits(Office().identities, failures_per_minute=5)
    for host in range(5):
        limits.note_failure(f"2001:db8::{host}")
    with pytest.raises(TooManyRequests):
        limits.note_failure("2001:db8::ffff:1")
    limits.note_failure("2001:db8:0:1::1")


def test_failures_from_everywhere_hinder_nobody_who_has_a_key() -> None:
    office = Office()
    limits = RateLimits(office.identities, all_failures_per_minute=100)
    refusals = 0
    for number in range(10_000):
        try:
            limits.note_failure(f"10.{number >> 8 & 255}.{number & 255}.1")
        except TooManyRequests:
            refusals += 1
    assert refusals == 10_000 - 100
    limits.admit(office.ana, True)


def test_memory_is_bounded() -> None:
    clock = Clock()
    buckets = Buckets(3, 0.1, clock, most=50)
    for number in range(1000):
        buckets.take(f"name {number}")
        buckets.take("always there")
    assert len(buckets) <= 51
    assert buckets.take("always there") > 0  # what is used often is not forgotten


def test_limits_look_at_credentials_and_never_at_questions() -> None:
    office = Office()
    limits = RateLimits(office.identities, questions_per_day=2)
    assert passed(limits, replace(office.ana, tables=frozenset({"visits"}), project="flu"), 10) == 2
    assert passed(limits, office.ana, 10) == 0
