"""Writes docs/sql_reference.md from the registries of the gate: `python -m docs.generators.sql_reference`.

The page is committed, and tests/sql/test_reference.py compares it with what is made here.
"""

# ruff: noqa: E501 - lines of the page

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from pathlib import Path

from discreet import Curator
from discreet.errors import DiscreetError, UnsupportedQuery
from discreet.plan.analysis.join_rows import MOST_PAIRS, ROWS
from discreet.sql import sql_tokens
from discreet.sql.parameters import LONGEST
from discreet.sql.refusals import REFUSALS, Refusal
from docs.generators import accepted_sql as accepted
from docs.generators import refused_sql as refused
from docs.generators.accepted_sql import Entry
from docs.generators.sql_world import curator

PAGE = Path(__file__).parents[1] / "sql_reference.md"

SECTIONS: Mapping[str, tuple[Entry, ...]] = {
    "Clauses": accepted.CLAUSES,
    "Signs and operators": accepted.OPERATORS,
    "Types of casts": accepted.TYPES,
    "Aggregates": accepted.AGGREGATES,
    "Rows of one person": accepted.PER_PERSON,
    "Numbers, and values of any type": accepted.NUMBERS,
    "Texts": accepted.TEXTS,
    "Dates": accepted.DATES,
}

_TOP = """\
# SQL reference

After this page you know which SQL a question may use, what each piece costs, and what to write instead of what is refused. The page is written from the registries that
the gate itself reads (`python -m docs.generators.sql_reference`), and a test compares both, in both directions. Every accepted example was planned, every refused one refused, on the same small
clinic: `visits(patient, ward, age, charge, urgent, day, arrived, note)` and `people(patient, born, sex)` about the same patients, and the public table `wards(ward, floor)`. Bounds are declared for
`age`, `charge`, `day` and `born`, keys for `ward` and `sex`; one patient counts in at most two groups, with one row in each.

**Price.** You choose the epsilon of a question. *Price* says what a piece takes of it. Aggregates of one question share it, and what they need in common is measured once: `COUNT(*)` next to
`AVG(x)` leaves the error of the mean as it is. Expressions inside an aggregate, and everything that is done with released numbers (arithmetic between aggregates, HAVING, ORDER BY, LIMIT), cost
nothing. Private group keys need a delta. `curator.explain` and `discreet explain` show the price and the error of your own question before anything is spent.

**Arguments.** In what a function means, a, b and c are its arguments in their order. One of them that is NULL makes the result NULL, unless the meaning says otherwise.

**Total.** No expression fails on any row: a division by zero, a cast that does not fit, the logarithm of zero are NULL, and NULL counts for nothing.

"""

_WORDS = """\
## Refused words

The gate refuses whatever it does not know. For these words it also knows why. Reason and advice are those that the error shows for the example.

"""

_SHAPES = """\
## Refused shapes

The words are accepted, and the question is not.

"""


def page() -> str:
    """Returns the page as it should be."""
    asked = curator()
    parts = [_TOP]
    parts += [f"## {title}\n\n{_table(title, entries, asked)}\n" for title, entries in SECTIONS.items()]
    parts += [_WORDS, _refused_words(asked), "\n", _SHAPES, _refused_shapes(asked), "\n", _joined(), _limits()]
    return "".join(parts)


def _joined() -> str:
    """How many rows of a person are joined, by the number of tables."""
    counts = range(2, next(n for n in count(2) if ROWS[-1] ** n > MOST_PAIRS))
    rows = {n: next(most for most in ROWS if most**n <= MOST_PAIRS) for n in counts}
    listed = {most: [n for n in counts if rows[n] == most] for most in sorted(set(rows.values()), reverse=True)}
    table = _lines(
        ["joined tables", "rows per person of each"],
        [[f"{n[0]}" if len(n) == 1 else f"{n[0]} to {n[-1]}", f"{most:,}"] for most, n in listed.items()],
    )
    return f"""\
## Joined rows

A join multiplies the rows that a person has in its tables. So each table is cut to a public number of rows per person before it is joined.
Then no person decides whether a question is answered, how long it takes and how much memory it needs. The answer's notes say so, even if no person has more. What is counted of the joined rows is bounded as in every question, and that alone
sets the noise.

{table}
More tables are refused, before anything is charged: {MOST_PAIRS:,} joined rows of a person is the most. A public table in which several rows agree in what the join compares counts with the largest number
of such rows, as they were when it was declared; then fewer rows of the other tables may be used: 500 each of two tables, if a public one repeats rows twice. Branches of UNION ALL share the most, too. A public table in which no two rows agree
repeats nothing.

**Which rows stay.** Conditions that read one table alone are true of the rows that are cut, and rows without a value to compare are left out. Rows stay by a secret rank of the person and of
the values that the join compares, the same in both tables: of a person with too many rows, the same days, orders or visits stay on both sides of a join on these.
In a LEFT JOIN, a row of the left may lose its matches to the cut and is shown without one.

**What is not cut.** A SELECT that puts rows of each person together (GROUP BY the id, or the id and all that is compared), DISTINCT, ORDER BY ... LIMIT 1 in LATERAL, IN and EXISTS: they repeat no row. EXISTS with one
condition like `b.day < a.day` looks at all rows, too; with other conditions than `=`, EXISTS and subqueries look at pairs of rows, which are joined rows.

"""


def _limits() -> str:
    return f"""\
## Limits of a text

A question has at most {LONGEST:,} characters and {sql_tokens.MOST_TOKENS:,} words and signs, with at most {sql_tokens.DEEPEST} brackets and CASE inside each other.
Names of types that a cast does not take: {", ".join(refused.TYPES)}. Parameters are written as `?`, `$1`, `$name` or `:name`, and you pass their values with the text.
"""


# ------------------------------------------------------------------------------------------------------------ accepted


def _table(title: str, entries: tuple[Entry, ...], asked: Curator) -> str:
    errors = title == "Aggregates"
    head = ["word", "meaning", "price", *(["error at epsilon 1"] if errors else []), "example"]
    spell = spelled if entries in (accepted.CLAUSES, accepted.OPERATORS) else str
    rows = [_row(entry, [_error(entry, asked)] if errors else [], spell) for entry in entries]
    note = "" if not errors else _ERRORS
    return note + _lines(head, rows)


_ERRORS = """\
Errors are those of the example at 95 %, as `explain` shows them for 1,000 rows in the middle of their bounds. Where one depends on the values, the answer itself has an interval.
SUM, AVG and the rest need bounds: declared ones, or such as are chosen privately for a fifth of the epsilon and then remembered.

"""


def _row(entry: Entry, more: list[str], spell: Callable[[str], str]) -> list[str]:
    words = ", ".join(f"`{_cell(spell(word))}`" for word in entry.words)
    return [words, entry.meaning, entry.price, *more, f"`{_cell(entry.example)}`"]


def spelled(kind: str) -> str:
    """Returns how a kind of token is written."""
    return accepted.SIGNS.get(kind, kind.replace("_", " "))


def _error(entry: Entry, asked: Curator) -> str:
    """The largest error of the example's columns; what is drawn from real values, or divided, depends on them."""
    errors = asked.explain(entry.example, epsilon=1, rows=1000).errors.values()
    largest = max(errors, default=math.inf)
    vague = "draw" in entry.price and largest >= 500
    return "depends on the values" if vague or math.isinf(largest) else f"± {largest:.4g}"


# ------------------------------------------------------------------------------------------------------------- refused


def accepted_words() -> set[str]:
    """Returns words that stand in some accepted question."""
    return {name.replace("_", " ") for name in _kinds()} | _kinds() | sql_tokens.FUNCTIONS | {"GROUPING"}


def _kinds() -> set[str]:
    return {kind.name for kind in sql_tokens._ALLOWED} - set(refused.TYPES)


def refused_groups() -> dict[Refusal, list[str]]:
    """Returns the words that no question takes, by the reason they are refused for.

    RIGHT is a function and no join, REPLACE a function and no statement; what the parser calls its parts is no word.
    """
    groups: dict[Refusal, list[str]] = defaultdict(list)
    for word, refusal in REFUSALS.items():
        if word == "RIGHT" or (word not in accepted_words() and word not in refused.PARTS):
            groups[refusal].append(word)
    return dict(groups)


def refusal_of(question: str, asked: Curator) -> DiscreetError:
    """Returns the error that refuses a question.

    Raises:
        ValueError: if it is accepted.
    """
    try:
        asked.explain(question, epsilon=1)
    except DiscreetError as error:
        return error
    raise ValueError(f"accepted: {question}")


def _refused_words(asked: Curator) -> str:
    rows = []
    for words in refused_groups().values():
        (example,) = (refused.WORDS[word] for word in words if word in refused.WORDS)
        rows.append(
            [", ".join(f"`{word}`" for word in words), *_advice(refusal_of(example, asked)), f"`{_cell(example)}`"]
        )
    return _lines(["words", "why", "instead", "example"], rows)


def _refused_shapes(asked: Curator) -> str:
    rows = [[f"`{_cell(question)}`", *_advice(refusal_of(question, asked))] for question in refused.SHAPES]
    return _lines(["question", "why", "instead"], rows)


def _advice(error: DiscreetError) -> list[str]:
    if isinstance(error, UnsupportedQuery):
        return [_cell(error.reason), _cell(error.hint)]
    return [_cell(str(error)), "Name a declared table."]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _lines(head: list[str], rows: Iterable[list[str]]) -> str:
    return "".join(f"| {' | '.join(cells)} |\n" for cells in [head, ["---"] * len(head), *rows])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
