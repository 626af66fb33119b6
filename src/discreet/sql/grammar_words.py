"""Functions of SQL with a grammar of their own, such as EXTRACT(month FROM day): their words, and what they mean.

`sql.functions` says how each is read; all other functions are records of `plan.expressions`.
"""

from __future__ import annotations

from discreet.dataclass import dataclass
from discreet.plan.expressions.functions import FUNCTIONS, Function
from discreet.plan.expressions.shorthands import SHORTHANDS, Shorthand


@dataclass(frozen=True, slots=True)
class GrammarWords:
    """Words that are read alike.

    Args:
        words: the words.
        meaning: what they mean, in a phrase.
        example: an accepted question with the first of them: an AVG, a GROUP BY or a WHERE over `visits`.
    """

    words: tuple[str, ...]
    meaning: str
    example: str


NUMBER_WORDS = (
    GrammarWords(
        ("CAST", "TRY_CAST"), "converts to another type; NULL if the value does not fit", "AVG(CAST(charge AS INT))"
    ),
)

TEXT_WORDS = (
    GrammarWords(
        ("TRIM", "BTRIM", "LTRIM", "RTRIM"),
        "removes spaces, or other characters, from both ends, the beginning (LTRIM) or the end (RTRIM)",
        "WHERE TRIM(note) = 'note 1'",
    ),
    GrammarWords(
        ("LPAD", "RPAD"),
        "fills a text up to a length with characters, before the text or after it (RPAD)",
        "WHERE LPAD(note, 8, ' ') = '  note 1'",
    ),
    GrammarWords(
        ("REGEXP_MATCHES", "REGEXP_LIKE", "REGEXP_FULL_MATCH"),
        "whether a pattern is found in a text, or matches the whole text (REGEXP_FULL_MATCH)",
        "WHERE REGEXP_MATCHES(note, '1')",
    ),
    GrammarWords(
        ("REGEXP_EXTRACT",),
        "the text of a match, or of one of its groups",
        "WHERE REGEXP_EXTRACT(note, 'note (.)', 1) = '3'",
    ),
)

DATE_WORDS = (
    GrammarWords(
        ("EXTRACT", "DATE_PART", "DATEPART"),
        "a part of a date",
        "GROUP BY EXTRACT(month FROM day) + DATE_PART('month', day) + DATEPART('month', day)",
    ),
    GrammarWords(
        ("DATE_TRUNC",),
        "the first day of a month, week, ...; a timestamp is truncated in the same way",
        "GROUP BY DATE_TRUNC('month', day)",
    ),
    GrammarWords(
        ("DATE_DIFF", "DATEDIFF"),
        "how many boundaries of a unit lie between two dates",
        "AVG(DATE_DIFF('day', DATE '2026-01-01', day))",
    ),
    GrammarWords(
        ("DATE_ADD", "DATE_SUB"),
        "adds a duration to a date, or subtracts it (DATE_SUB)",
        "WHERE DATE_ADD(day, INTERVAL 7 DAY) > DATE '2026-06-01'",
    ),
    GrammarWords(
        ("STRFTIME", "TO_CHAR"),
        "a date as text",
        "WHERE STRFTIME(day, '%Y-%m') = '2026-06' OR TO_CHAR(day, 'YYYY-MM') = '2026-07'",
    ),
    GrammarWords(("EPOCH",), "seconds since 1970", "AVG(EPOCH(arrived - DATE '2026-01-01'))"),
    GrammarWords(
        ("AGE",),
        "the duration between two dates; use EXTRACT to get a part of it",
        "AVG(EXTRACT(year FROM AGE(DATE '2026-12-31', day)))",
    ),
    GrammarWords(
        ("CURRENT_DATE", "TODAY"),
        "the day that the steward declares as `today`",
        "WHERE day < CURRENT_DATE AND day < TODAY()",
    ),
    GrammarWords(
        ("CURRENT_TIMESTAMP", "NOW"),
        "the same day as CURRENT_DATE; it must be truncated or cast to a day",
        "WHERE day < CAST(NOW() AS DATE) AND day < CURRENT_TIMESTAMP::DATE",
    ),
)

RECORDS: tuple[Function | Shorthand | GrammarWords, ...] = (
    *FUNCTIONS.values(),
    *SHORTHANDS,
    *NUMBER_WORDS,
    *TEXT_WORDS,
    *DATE_WORDS,
)
"""All that has words of its own, or could have."""

FUNCTION_WORDS = frozenset(word for record in RECORDS for word in record.words)
"""All words of functions of a row."""
