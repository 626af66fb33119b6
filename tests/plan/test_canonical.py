"""The canonical texts: stable, equal for equal questions; the replay form is silent about post-processing."""

from __future__ import annotations

import json

import pytest

from discreet.plan.canonical import canonical, replay, replay_order
from discreet.sql.select import parse
from tests.plan.tables import SCHEMAS

FROZEN = {  # written on 2026-11-15; a difference means that stored answers are lost: raise VERSION instead
    "SELECT COUNT(*) AS n FROM visits": (
        '{"aggregates":[{"kind":"count"}],"keys":[],"outputs":[["n",["#","1"]]],"table":"visits","version":1}'
    ),
    "SELECT ward, AVG(charge) AS c FROM visits WHERE age > 1.5 AND day = '2026-01-31' GROUP BY ward ORDER BY c LIMIT 3": (  # noqa: E501 - one question
        '{"aggregates":[{"argument":["column","charge","float"],"kind":"mean"}],"keys":[["ward",["column","ward","text"]'
        ']],"limit":3,"order":[[["#","1"],false]],"outputs":[["ward",["column","ward","text"]],["c",["#","1"]]],"table"'
        ':"visits","version":1,"where":["and","bool",["greater","bool",["to_float","float",["column","age","int"]],["flo'
        'at","0x1.8000000000000p+0"]],["equal","bool",["column","day","date"],["date","2026-01-31"]]]}'
    ),
}


@pytest.mark.parametrize("text", FROZEN)
def test_the_form_does_not_change(text: str) -> None:
    assert canonical(parse(text, SCHEMAS)) == FROZEN[text]


SAME_RELEASE = [
    ("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", "SELECT ward AS w, COUNT(*) AS m FROM visits GROUP BY w"),
    ("SELECT COUNT(*) AS n FROM visits", "SELECT 2 * COUNT(*) AS twice FROM visits LIMIT 1"),
    ("SELECT COUNT(*), AVG(age) FROM visits", "SELECT AVG(age), COUNT(*) FROM visits"),
    ("SELECT COUNT(*), AVG(age) FROM visits", "SELECT COUNT(*) FROM visits HAVING AVG(age) > 3"),
    (
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward",
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING n > 3 ORDER BY n DESC LIMIT 3",
    ),
    (
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward LIMIT 3",
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward QUALIFY RANK() OVER (ORDER BY n) < 3 LIMIT 3 OFFSET 3",
    ),
]
OTHER_RELEASE = [
    ("SELECT COUNT(*) FROM visits", "SELECT COUNT(age) FROM visits"),
    ("SELECT COUNT(*) FROM visits", "SELECT COUNT(*) FROM rows_only"),
    ("SELECT COUNT(*) FROM visits", "SELECT COUNT(*) FROM visits WHERE smoker"),
    ("SELECT COUNT(*) FROM visits", "SELECT COUNT(*) FROM visits GROUP BY ward"),
    ("SELECT COUNT(*) FROM visits WHERE age = 1", "SELECT COUNT(*) FROM visits WHERE age = 1.0"),
    (
        "SELECT COUNT(*) FROM visits WHERE charge = 0.1",
        "SELECT COUNT(*) FROM visits WHERE charge = 0.10000000000000002",
    ),
    ("SELECT COUNT(*) FROM visits WHERE ward = '1'", "SELECT COUNT(*) FROM visits WHERE CAST(ward AS INT) = 1"),
]


@pytest.mark.parametrize(("one", "other"), SAME_RELEASE)
def test_post_processing_is_not_in_the_replay_form(one: str, other: str) -> None:
    a, b = parse(one, SCHEMAS), parse(other, SCHEMAS)
    assert replay(a) == replay(b)
    assert canonical(a) != canonical(b)
    assert [x.argument for x in replay_order(a)] == [x.argument for x in replay_order(b)]


@pytest.mark.parametrize(("one", "other"), OTHER_RELEASE)
def test_what_is_released_is_in_it(one: str, other: str) -> None:
    assert replay(parse(one, SCHEMAS)) != replay(parse(other, SCHEMAS))


def test_it_is_json() -> None:
    text = canonical(parse("SELECT ward, COUNT(*) FROM visits WHERE ward <> 'é' GROUP BY ward", SCHEMAS))
    assert text.isascii()
    assert json.loads(text)["version"] == 1
