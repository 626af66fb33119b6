"""Statements are told apart by their words, whatever stands in quotes and comments."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.service.wire.protocol_messages import WireError
from discreet.service.wire.statement_kinds import (
    COMMANDS,
    StatementKind,
    is_catalog,
    statements,
    tokens,
    without_schema,
)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("", []),
        (" ; ;; -- nothing\n", []),
        ("select 1", [StatementKind.SELECT]),
        ("SET a = 'x;y'; SELECT ';' ;", [StatementKind.SET, StatementKind.SELECT]),
        ("/* a /* b; */ ; */ show all", [StatementKind.SHOW]),
        ('select ";" from "a""b;"', [StatementKind.SELECT]),
        ("select $$ ; $$; select $tag$ ; $$ ; $tag$", [StatementKind.SELECT, StatementKind.SELECT]),
        (r"select E'\';'; rollback", [StatementKind.SELECT, StatementKind.ROLLBACK]),
        (
            "begin; commit; end; abort",
            [StatementKind.BEGIN, StatementKind.COMMIT, StatementKind.COMMIT, StatementKind.ROLLBACK],
        ),
        ("start transaction", [StatementKind.BEGIN]),
        ("(select 1)", [StatementKind.SELECT]),
        ("from visits select count(*)", [StatementKind.SELECT]),
        ("values (1)", [StatementKind.SELECT]),
        ("frobnicate", [StatementKind.REFUSED]),
        ("copy visits to stdout", [StatementKind.REFUSED]),
    ],
)
def test_texts_are_cut_into_statements(text: str, kinds: list[StatementKind]) -> None:
    assert [each.kind for each in statements(text)] == kinds


@pytest.mark.parametrize("text", ["select 'a", 'select "a', "/* a", "select $$ a", "/* /* */", "select $a$ $b$"])
def test_what_does_not_end_is_refused(text: str) -> None:
    with pytest.raises(WireError, match="does not end") as refused:
        statements(text)
    assert refused.value.sqlstate == "42601"


@given(st.text(alphabet=st.sampled_from(list("ab1 ;'\"$/*-\\\n.E")), max_size=60))
def test_every_text_is_cut_or_refused_and_nothing_is_lost(text: str) -> None:
    try:
        found = statements(text)
    except WireError:
        return
    for each in found:
        assert text[each.offset : each.offset + len(each.text)] == each.text
        assert [token.text for token in tokens(each.text)] == [token.text for token in each.words]


@pytest.mark.parametrize(
    ("text", "catalog"),
    [
        ("select 1", True),
        ("select count(*) from visits", False),
        ('select count(*) from "visits"', False),
        ("select relname from pg_class", True),
        ("select 1 from information_schema.tables", True),
        ("select count(*) from unknown", False),
        ("select 'from visits'", True),
        ("select pg_column from visits", False),
    ],
)
def test_questions_are_told_from_catalog_queries(text: str, catalog: bool) -> None:
    assert is_catalog(list(tokens(text)), {"visits"}) is catalog


def test_the_schema_before_a_table_is_blank_and_places_stay() -> None:
    text = 'SELECT \'public.x\' FROM "public"."visits" JOIN public.wards'
    made = without_schema(text, list(tokens(text)))
    assert len(made) == len(text)
    assert made.split() == ["SELECT", "'public.x'", "FROM", '"visits"', "JOIN", "wards"]


def test_every_command_that_is_refused_says_why_and_what_to_do() -> None:
    refused = [command for command in COMMANDS.values() if command.kind is StatementKind.REFUSED]
    assert refused
    assert all(len(each.sqlstate) == 5 and each.reason and each.hint for each in refused)
