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

This page lists the SQL that a query may use, what each part costs, and what to write instead of SQL that is refused. The gate decides which SQL is accepted. This page is written from the
lists that the gate reads (`python -m docs.generators.sql_reference`), and a test compares both, in both directions. Every accepted example was planned, and every refused example was refused,
on the same small clinic. The clinic has `visits(patient, ward, age, charge, urgent, day, arrived, note)` and `people(patient, born, sex)` about the same patients, and the public table
`wards(ward, floor)`. Bounds are declared for `age`, `charge`, `day` and `born`, and keys for `ward` and `sex`. One patient counts in at most two groups, with one row in each.

**Price.** You choose the epsilon of a query. *Price* says how much of it a part takes. The aggregates of one query share the epsilon, and numbers that several of them need are measured
once: `COUNT(*)` next to `AVG(x)` does not change the error of the mean. Expressions inside an aggregate cost nothing. Everything that is done with released numbers also costs nothing:
arithmetic between aggregates, HAVING, ORDER BY, LIMIT. Private group keys need a delta. `curator.explain` and `discreet explain` show the price and the error of your own query before
anything is spent.

**Arguments.** In the meaning of a function, a, b and c are its arguments, in order. If one of them is NULL, the result is NULL, unless the meaning says otherwise.

**No failures.** No expression fails on any row. A division by zero, a cast that does not fit and the logarithm of zero are NULL, and NULL counts for nothing.

"""

_WORDS = """\
## Refused words

The gate refuses everything that it does not know. For these words it also knows why. The reason and the advice are those in the error for the example.

"""

_SHAPES = """\
## Refused shapes

In these queries, every word is accepted, but the query is not.

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

A join multiplies the rows that a person has in its tables. Each table is therefore cut to a public number of rows per person before the join.
No person then decides whether a query is answered, how long it takes or how much memory it needs. The notes of the answer say so, even if no person has more rows. The contribution
limits apply to the joined rows as in every query, and they alone set the noise.

{table}
Joins of more tables are refused before anything is charged: a person may have at most {MOST_PAIRS:,} joined rows. In a public table, several rows may agree in what the join compares.
The table then counts with the largest number of such rows at the time when it was declared, and fewer rows of the other tables may be used. For example, two tables may use 500 rows each
if a public one repeats rows twice. A public table in which no two rows agree repeats nothing. Branches of UNION ALL also share the maximum.

**Which rows stay.** Conditions that read one table alone are applied before the cut, and rows without a value to compare are left out. A secret rank decides which rows stay. It depends
on the person and on the values that the join compares, and is the same in both tables. If a person has too many rows, the same days, orders or visits stay on both sides of a join on these.
In a LEFT JOIN, a row of the left table may lose its matches to the cut, and is then shown without one.

**What is not cut.** These parts repeat no row, and are not cut: a SELECT that puts the rows of each person together (GROUP BY the id, or the id and all that is compared), DISTINCT,
ORDER BY ... LIMIT 1 in LATERAL, IN and EXISTS. EXISTS with one condition like `b.day < a.day` also looks at all rows. With other conditions than `=`, EXISTS and subqueries look at pairs
of rows, which are joined rows.

"""


def _limits() -> str:
    return f"""\
## Limits of a text

A query has at most {LONGEST:,} characters and {sql_tokens.MOST_TOKENS:,} words and signs. Brackets and CASE can be nested at most {sql_tokens.DEEPEST} deep.
A cast does not take these types: {", ".join(refused.TYPES)}. Write parameters as `?`, `$1`, `$name` or `:name`, and pass their values with the text.
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
Errors are those of the example, with 95 % confidence, as `explain` shows them for 1,000 rows in the middle of their bounds. Where an error depends on the values, the answer itself has
an interval. SUM, AVG and the rest need bounds. The steward declares them, or they are chosen privately for a fifth of the epsilon and then remembered.

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
    return _lines(["query", "why", "instead"], rows)


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
