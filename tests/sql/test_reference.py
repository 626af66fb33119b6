"""The SQL reference says what the gate does: page and registries are compared, in both directions."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest
from sqlglot.tokenizer_core import TokenType as Kind

from discreet.curator import Curator
from discreet.errors import DiscreetError
from discreet.measurement.aggregates import AGGREGATIONS
from discreet.sql import sql_tokens
from discreet.sql.examples import DIALECT
from discreet.sql.refusals import REFUSALS
from docs.generators import accepted_sql as accepted
from docs.generators import refused_sql as refused
from docs.generators.accepted_sql import Entry
from docs.generators.sql_reference import PAGE, SECTIONS, accepted_words, page, refusal_of, refused_groups, spelled
from docs.generators.sql_world import curator

SYNTAX = (*accepted.CLAUSES, *accepted.OPERATORS)
CALLED = (*accepted.AGGREGATES, *accepted.PER_PERSON, *accepted.NUMBERS, *accepted.TEXTS, *accepted.DATES)
NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}


@pytest.fixture(scope="module")
def asked() -> Curator:
    return curator()


def words(entries: Iterable[Entry]) -> list[str]:
    return [word for entry in entries for word in entry.words]


def kinds(text: str) -> set[str]:
    return {token.token_type.name for token in DIALECT.tokenize(text)}


def cells(title: str) -> list[list[str]]:
    """The rows of a table of the page, by the heading above it."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [re.split(r"(?<!\\) \| ", line.strip("| ")) for line in lines[2:]]


def written(cell: str) -> list[str]:
    return [word.replace("\\|", "|") for word in re.findall(r"`([^`]+)`", cell)]


def test_the_page_is_what_is_made() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m docs.generators.sql_reference"


def test_every_function_of_the_registry_is_in_the_page_and_no_other() -> None:
    titles = [title for title, entries in SECTIONS.items() if set(entries) <= set(CALLED)]
    shown = [word for title in titles for row in cells(title) for word in written(row[0])]
    assert len(shown) == len(set(shown))
    assert set(shown) == sql_tokens.FUNCTIONS


def test_every_kind_of_token_is_in_the_page_and_no_other() -> None:
    named = words(SYNTAX)
    allowed = {kind.name for kind in sql_tokens._ALLOWED - sql_tokens._TYPES} - {"CURRENT_DATE", "CURRENT_TIMESTAMP"}
    assert len(named) == len(set(named))
    assert set(named) == allowed
    shown = {word for title in ("Clauses", "Signs and operators") for row in cells(title) for word in written(row[0])}
    assert shown == {spelled(name) for name in allowed}


def test_every_type_is_in_the_page_and_no_other() -> None:
    named = {*words(accepted.TYPES), *refused.TYPES}
    assert {Kind.TEXT if word == "VARCHAR" else Kind[word] for word in named} == sql_tokens._TYPES
    assert {word for row in cells("Types of casts") for word in written(row[0])} == set(words(accepted.TYPES))


@pytest.mark.ci
def test_every_aggregate_of_the_registry_is_shown(asked: Curator) -> None:
    examples = [entry.example for entry in (*accepted.CLAUSES, *accepted.AGGREGATES)]
    more = [f"SELECT {name}(DISTINCT age) AS x FROM visits" for name in ("COUNT", "SUM", "AVG")]
    plans = [asked.explain(example, epsilon=1).program for example in examples + more]
    assert {each.kind for plan in plans for each in plan.question.aggregates} == set(AGGREGATIONS)


@pytest.mark.parametrize("entry", SYNTAX, ids=lambda entry: entry.words[0])
def test_examples_of_syntax_hold_their_words_and_pass(entry: Entry, asked: Curator) -> None:
    asked.explain(entry.example, epsilon=1)
    assert set(entry.words) <= kinds(entry.example)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("entry", [*CALLED, *accepted.TYPES], ids=lambda entry: entry.words[0])
def test_examples_of_functions_pass_with_each_of_their_words(entry: Entry, asked: Curator) -> None:
    """Words of one meaning may stand for each other; of several meanings, the example has them all."""
    held = [word for word in entry.words if re.search(rf"\b{word}\b", entry.example)]
    assert held
    for word in entry.words:
        text = entry.example if word in held else re.sub(rf"\b{held[0]}\b", word, entry.example)
        assert word in text
        asked.explain(text, epsilon=1)


@pytest.mark.parametrize("entry", accepted.AGGREGATES, ids=lambda entry: entry.words[0])
def test_the_price_of_an_aggregate_is_how_many_numbers_are_released(entry: Entry, asked: Curator) -> None:
    told = NUMBERS.get(entry.price.split()[0])
    assert told in (None, asked.explain(entry.example, epsilon=1).program.width)


# ------------------------------------------------------------------------------------------------------------- refused

TRIED = ("SELECT {}(charge) AS x FROM visits", "{} visits", "SELECT COUNT(*) AS n FROM visits {}")


def test_every_refused_word_of_the_registry_is_in_the_page_and_no_other() -> None:
    shown = {word for row in cells("Refused words") for word in written(row[0])}
    assert shown == {word for group in refused_groups().values() for word in group}
    assert REFUSALS.keys() - shown <= accepted_words() | refused.PARTS.keys()
    assert set(refused.WORDS) <= shown


@pytest.mark.parametrize("word", [word for group in refused_groups().values() for word in group])
def test_a_refused_word_is_refused_for_its_reason(word: str, asked: Curator) -> None:
    reason = REFUSALS[word].reason.replace("{word}", word)
    texts = [text.format(word) for text in TRIED]
    assert reason in [getattr(_refused(text, asked), "reason", None) for text in texts]


@pytest.mark.parametrize("word", refused.WORDS)
def test_the_example_of_a_refused_word_is_refused_for_it(word: str, asked: Curator) -> None:
    error = refusal_of(refused.WORDS[word], asked)
    assert getattr(error, "reason", None) == REFUSALS[word].reason.replace("{word}", word)


@pytest.mark.parametrize("question", refused.SHAPES)
def test_a_refused_shape_is_refused_and_its_advice_is_accepted(question: str, asked: Curator) -> None:
    error = refusal_of(question, asked)
    for advised in re.findall(r"`(SELECT [^`]+)`", getattr(error, "hint", "")):
        asked.explain(advised, epsilon=1)


def _refused(text: str, asked: Curator) -> DiscreetError | None:
    try:
        return refusal_of(text, asked)
    except ValueError:
        return None
