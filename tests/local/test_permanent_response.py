"""Reports that are kept: the same value gives the same report, across restarts, and never more than were promised."""

from __future__ import annotations

import pytest

from discreet.errors import InvalidParameter, InvalidValue
from discreet.local import DuchiMean, HeavyHitters, LocalHashing, PermanentResponse, UnaryEncoding
from discreet.noise import SeededBits
from discreet.privacy import events
from tests.conformance.nothing import NoBits

ORACLE = LocalHashing(epsilon=1, domain=["a", "b", "c", "d"])


def test_the_same_value_gives_the_same_report(bits: SeededBits) -> None:
    for oracle, value in ((ORACLE, "b"), (UnaryEncoding(epsilon=1, domain=9), 4), (DuchiMean(epsilon=1), 0.25)):
        client = PermanentResponse(oracle, distinct=2)
        first = client.report(value, bits=bits)
        again = PermanentResponse(oracle, distinct=2, state=client.state)
        for other in (client, again):
            assert other.report(value, bits=NoBits()).to_json() == first.to_json()
        assert not first.private
    assert PermanentResponse(HeavyHitters(epsilon=1)).report("anna", bits=bits).private is False


def test_with_one_report_later_values_leave_no_trace(bits: SeededBits) -> None:
    client = PermanentResponse(ORACLE)
    first = client.report("b", bits=bits).to_json()
    assert all(client.report(value, bits=NoBits()).to_json() == first for value in ("c", "a", "b"))
    assert client.event == ORACLE.event
    assert "Later values are not reported" in client.promise


def test_no_more_reports_are_drawn_than_promised(bits: SeededBits) -> None:
    client = PermanentResponse(UnaryEncoding(epsilon=1, domain=40), distinct=2)
    a, b = (client.report(value, bits=bits).to_json() for value in (1, 2))
    assert a != b
    restarted = PermanentResponse(client.oracle, distinct=2, state=client.state)
    for again in (client, restarted):
        assert [again.report(value, bits=NoBits()).to_json() for value in (1, 3, 2, 3)] == [a, b, b, b]
    assert client.event == events.Repeated(events.Pure(1), 2)
    assert "Others can see that a value changed" in client.promise


def test_bad_input_is_refused(bits: SeededBits) -> None:
    client = PermanentResponse(ORACLE)
    with pytest.raises(InvalidValue):
        client.report("z", bits=NoBits())
    with pytest.raises(InvalidParameter, match="value"):
        client.report(["a"], bits=NoBits())
    client.report("a", bits=bits)
    for state in ("", "{}", "[]", '{"kept":1,"parameters":{}}', '{"kept":[],"parameters":{}}'):
        with pytest.raises(InvalidParameter, match="state"):
            PermanentResponse(ORACLE, state=state)
    with pytest.raises(InvalidParameter, match="for this oracle"):
        PermanentResponse(LocalHashing(epsilon=2, domain=["a", "b", "c", "d"]), state=client.state)
    two = PermanentResponse(ORACLE, distinct=2, state=client.state)
    two.report("b", bits=bits)
    with pytest.raises(InvalidParameter, match="distinct"):
        PermanentResponse(ORACLE, state=two.state)
    with pytest.raises(InvalidParameter, match="distinct"):
        PermanentResponse(ORACLE, distinct=0)
