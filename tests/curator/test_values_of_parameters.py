"""Parameters at the curator's door: the question with its values written out; nothing is spent where they are wrong."""

from __future__ import annotations

import pytest

from discreet.errors import InvalidParameter
from discreet.sql.frame import count
from tests.curator.spies import Spy, clinic

OLDER = "SELECT ward, COUNT(*) AS n FROM visits WHERE age > {} GROUP BY ward"


def test_values_and_literals_are_one_question() -> None:
    with clinic() as curator:
        paid = curator.ask(OLDER.format("40"), epsilon=0.5)
        for parameters, place in (([40], "?"), ([40], "$1"), ({"age": 40}, ":age"), ({"age": 40}, "$age")):
            again = curator.ask(OLDER.format(place), parameters=parameters, epsilon=0.5)
            assert again.replayed
            assert again.records == paid.records
        frame = curator.table("visits").where("age > ?", [40]).group_by("ward").agg(n=count())
        assert frame.ask(epsilon=0.5).records == paid.records
        other = curator.ask(OLDER.format("?"), parameters=[41], epsilon=0.5)
        assert not other.replayed


def test_questions_about_questions_take_them_too() -> None:
    with clinic() as curator:
        asked, written = OLDER.format("?"), OLDER.format("40")
        assert str(curator.explain(asked, parameters=[40], epsilon=1)) == str(curator.explain(written, epsilon=1))
        assert curator.rehearse(asked, parameters=[40]).records == curator.rehearse(written).records
        told = curator.choose_epsilon(asked, [1], parameters=[40])
        assert told.records == curator.choose_epsilon(written, [1]).records


def test_bounds_that_are_found_privately_keep_the_values() -> None:
    with clinic(bounds={}) as curator:
        answer = curator.ask("SELECT AVG(age) AS m FROM visits WHERE ward = ?", parameters=["A"], epsilon=1)
        assert curator.ask("SELECT AVG(age) AS m FROM visits WHERE ward = 'A'", epsilon=1).records == answer.records


def test_wrong_values_cost_nothing_and_read_nothing() -> None:
    engine = Spy()
    with clinic(engine=engine) as curator:
        entries = len(curator.history("visits"))
        for parameters in (None, [], [1, 2], {"age": 1}, [object()], "4"):
            for door in (curator.ask, curator.explain, curator.rehearse):
                with pytest.raises(InvalidParameter, match="parameters"):
                    door(OLDER.format("?"), parameters=parameters, epsilon=1)
        plan = curator.table("visits").agg(n=count()).question
        with pytest.raises(InvalidParameter, match="to come with a SQL text"):
            curator.ask(plan, parameters=[1], epsilon=1)
        assert len(curator.history("visits")) == entries
        assert engine.reads == 0
