"""How a question is refused: by the words it uses or the place of what is not understood, with what to do instead.

The table of words only chooses the explanation. What may be used is in `sql_tokens` and in `functions`; everything else
is refused whether or not it has an entry here.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import NoReturn

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from discreet import check
from discreet.dataclass import dataclass
from discreet.errors import UnsupportedQuery
from discreet.plan.model.schema import TableSchema
from discreet.sql.examples import DIALECT, Examples, fill_examples, find_examples
from discreet.sql.parameters import Parameters


@dataclass(frozen=True, slots=True)
class Refusal:
    """A reason, with {word} for what was written, and a hint, with names of `Examples` in braces.

    Where another word means the same, it is `instead`, and the hint shows the question with it.
    """

    reason: str
    hint: str
    instead: str = ""


_ONE = "Ask about one table: {grouped}."
_WINDOW = Refusal("{word} ranks or frames single rows.", "Sort and cut the released groups instead: {top}.")
_STATEMENT = Refusal("{word} is a separate statement. A question is one SELECT.", "Ask, for example, {count}.")
_FILE = Refusal("{word} reads a file or a place outside the declared tables.", "Name a declared table: {count}.")
_NOW = Refusal("{word} has a different value each time.", "Write the value itself: {since}.")
_CHANCE = Refusal("{word} is not a function of the row.", "Leave it out: {count}. The curator adds the noise.")
_RAISES = Refusal("{word} could fail on some rows, and a failure would reveal them.", "Leave it out: {count}.")
_SECRET = Refusal("{word} asks about the engine, not about the data.", "Ask about the data: {count}.")
_VALUES = Refusal("{word} would publish people's values.", "Count them instead: {grouped}.")
_SPREAD = Refusal("{word} is not supported yet.", "Ask for a mean: {mean}.")
_SET = Refusal("{word} combines several questions.", "Ask them one by one: {count}.")
_JOIN = Refusal("{word} reads a second table.", _ONE)
_NESTED = Refusal("{word} makes lists or nested values.", "Use plain columns: {count}.")
_TEXT = Refusal(
    "{word} is not in the list of text functions.", "Use UPPER, LOWER, TRIM, SUBSTRING, REPLACE, ||, LIKE: {grouped}."
)
_ESCAPE = Refusal(
    "{word} is not in the list of ways to match patterns.",
    "Use LIKE, ILIKE, SIMILAR TO, regexp_matches, regexp_full_match or regexp_extract: {pattern}.",
)
_MATH = Refusal(
    "{word} is not in the list of number functions.",
    "Use + - * /, POWER, SQRT, LN, LOG, EXP, ABS, ROUND, FLOOR, CEIL, GREATEST, LEAST, SIN, COS, TAN: {mean}.",
)
_SAMPLE = Refusal("{word} reads a random part of the rows.", "Ask about all of them: {count}.")
_ROLL = Refusal("{word} makes several groupings at once.", "Ask for one grouping: {grouped}.")
_TURN = Refusal("{word} reshapes the table by its values.", "Ask about its columns, or group by one: {grouped}.")

_FAMILIES: tuple[tuple[str, Refusal], ...] = (
    ("JOIN INNER CROSS NATURAL ASOF SEMI ANTI USING ON LATERAL POSITIONAL LEFT RIGHT FULL OUTER STRAIGHT_JOIN", _JOIN),
    ("UNION INTERSECT EXCEPT MINUS", _SET),
    ("OVER WINDOW PARTITION ROWS RANGE ROW_NUMBER RANK DENSE_RANK NTILE LAG LEAD PERCENT_RANK CUME_DIST", _WINDOW),
    ("FIRST_VALUE LAST_VALUE NTH_VALUE", _WINDOW),
    ("TABLESAMPLE SAMPLE RESERVOIR_SAMPLE", _SAMPLE),
    ("UNPIVOT PIVOT_LONGER PIVOT", _TURN),
    ("ROLLUP CUBE GROUPING TOTALS", _ROLL),
    (
        "ATTACH DETACH COPY EXPORT IMPORT INSTALL LOAD PRAGMA SET RESET CREATE DROP ALTER INSERT UPDATE DELETE",
        _STATEMENT,
    ),
    (
        "TRUNCATE MERGE REPLACE EXPLAIN DESCRIBE SUMMARIZE SHOW CALL EXECUTE PREPARE BEGIN COMMIT ROLLBACK USE",
        _STATEMENT,
    ),
    ("ANALYZE VACUUM CHECKPOINT GRANT REVOKE VALUES TABLE COMMENT CACHE REFRESH KILL DECLARE DESC", _STATEMENT),
    ("READ_CSV READ_CSV_AUTO READ_PARQUET READ_JSON READ_JSON_AUTO READ_TEXT READ_BLOB PARQUET_SCAN GLOB", _FILE),
    (
        "SNIFF_CSV PG_READ_FILE LO_IMPORT PARQUET_METADATA PARQUET_SCHEMA DBLINK POSTGRES_SCAN SQLITE_SCAN ARROW_SCAN",
        _FILE,
    ),
    ("CURRENT_TIME CURRENT_DATETIME LOCALTIME LOCALTIMESTAMP", _NOW),
    ("TRANSACTION_TIMESTAMP GETDATE SYSDATE CLOCK_TIMESTAMP CURRENT_LOCALTIMESTAMP", _NOW),
    ("RANDOM RAND UUID GEN_RANDOM_UUID SETSEED NEXTVAL CURRVAL HASH MD5 SHA256 SHA1", _CHANCE),
    ("ERROR RAISE_ERROR ASSERT_TRUE STRPTIME JSON JSON_EXTRACT TO_JSON REGEXP_REPLACE", _RAISES),
    ("DUCKDB_TABLES DUCKDB_SETTINGS DUCKDB_COLUMNS STATS PRAGMA_STORAGE_INFO PG_STATS CURRENT_USER", _SECRET),
    ("SESSION_USER USER VERSION CURRENT_SCHEMA CURRENT_DATABASE TYPEOF GETENV CURRENT_SETTING WRITE_LOG", _SECRET),
    ("STRING_AGG GROUP_CONCAT LISTAGG ARRAY_AGG", _VALUES),
    ("APPROX_TOP_K ENTROPY", _VALUES),
    ("KURTOSIS REGR_R2 REGR_COUNT REGR_SXX REGR_SXY REGR_SYY", _SPREAD),
    ("GEOMETRIC_MEAN PRODUCT BIT_AND BIT_OR BIT_XOR BOOL_AND BOOL_OR FSUM KAHAN_SUM FAVG MAD", _SPREAD),
    ("STRUCT MAP LIST ARRAY UNNEST EXPLODE RANGE GENERATE_SERIES LIST_VALUE STRUCT_PACK", _NESTED),
    ("CONCAT_WS REPEAT REVERSE STRING_SPLIT FORMAT PRINTF CHR ASCII TRANSLATE", _TEXT),
    ("RLIKE REGEXP COLLATE REGEXP_EXTRACT_ALL REGEXP_SPLIT_TO_ARRAY REGEXP_COUNT REGEXP_SUBSTR", _ESCAPE),
    ("FACTORIAL GAMMA LGAMMA COT ASINH ACOSH ATANH EVEN GCD LCM", _MATH),
)

_SINGLE: dict[str, Refusal] = {
    "EXPRESSIONS": Refusal("There are more arguments than the function takes.", "Leave them out: {count}."),
    "DISTINCT": Refusal("SELECT DISTINCT lists people's values.", "Group and count them: {grouped}."),
    "NULLS FIRST": Refusal("NULL always sorts last.", "Leave NULLS FIRST out: {top}."),
    "RECURSIVE": Refusal("RECURSIVE repeats a question.", "Write one SELECT from a table: {grouped}."),
    "FILTER": Refusal("FILTER belongs to an aggregate.", "Write it like {conditional}."),
    "QUALIFY": Refusal("QUALIFY does not work with rows that are combined here.", "Filter with HAVING: {kept}."),
    "EXISTS": Refusal("EXISTS asks a question inside a condition.", "Ask it separately: {filtered}."),
    "ANY": Refusal("ANY compares with a list of values.", "Write IN with the values: {filtered}."),
    "SOME": Refusal("SOME compares with a list of values.", "Write IN with the values: {filtered}."),
    "ALL": Refusal("ALL is not accepted.", "Name the columns and keys one by one: {grouped}."),
    "OFFSET": Refusal("OFFSET skips rows of an answer, and comes at the end.", "Write it after LIMIT: {top}."),
    "TOP": Refusal("TOP is not accepted.", "Write LIMIT: {top}."),
    "INTO": Refusal("INTO writes a table.", "Use the answer as a data frame: {grouped}."),
    "LOCKS": Refusal("A question does not lock rows.", "Leave FOR out: {count}."),
    "GENERATE_SERIES": Refusal(
        "{word} makes rows that belong to no person.",
        "Groups of listed values, and of days and numbers between declared bounds, are shown even if empty: {months}.",
    ),
    "HISTOGRAM": Refusal(
        "HISTOGRAM returns many rows. It must be alone in SELECT, without GROUP BY, HAVING, ORDER BY and LIMIT.",
        "Group by bands, with other keys and aggregates: {buckets}.",
    ),
    "INTERVAL": Refusal("An INTERVAL is added to a date or subtracted from it.", "Or compare with a date: {since}."),
    "APPROX_COUNT_DISTINCT": Refusal(
        "APPROX_COUNT_DISTINCT uses a sketch, whose error depends on the data.", "Count units exactly: {units}."
    ),
    "COLUMNS": Refusal("COLUMNS selects columns by a pattern.", "Name them one by one: {grouped}."),
    "INITCAP": Refusal(
        "Engines disagree on what a word is.",
        "Write UPPER(LEFT(x, 1)) || LOWER(SUBSTR(x, 2)), or compare in one case: {pattern}.",
    ),
    "MEAN": Refusal("MEAN is called AVG in SQL.", "Write AVG: {mean}.", instead="AVG"),
    "ROW": Refusal("ROW means single rows, in a frame or as a nested value.", "Leave it out: {grouped}."),
    "SYMMETRIC": Refusal("SYMMETRIC is not accepted.", "Put the smaller end first: {filtered}."),
}
_SINGLE["DATEADD"] = Refusal("{word} is not accepted.", "Write d + INTERVAL 7 DAY, or compare dates: {since}.")

REFUSALS: dict[str, Refusal] = {name: refusal for names, refusal in _FAMILIES for name in names.split()} | _SINGLE
"""Refused words and functions, in capitals."""

UNKNOWN_FUNCTION = Refusal(
    "{word} is not in the list of functions.",
    "Use arithmetic, CASE, COALESCE, LIKE, ROUND, dates and COUNT, SUM, AVG: {mean}.",
)
UNKNOWN_WORD = Refusal(
    "{word} is not allowed in a question.", "If it is a name, put it in double quotes. Otherwise ask {count}."
)


_HOLE = "what_is_written_anew"
"""A name for the place of an expression while the question around it is printed."""


@dataclass(frozen=True, slots=True)
class SqlSource:
    """A text, and the declarations it is read against.

    Args:
        text: what is parsed.
        schemas: the declared tables by name.
        before: how many leading characters we added ourselves; positions do not count them.
        parameters: the values of its parameters.
        today: the public day that CURRENT_DATE means.
        propose: returns a whole question as it is accepted, if it is; None where the text is a part of one.
    """

    text: str
    schemas: Mapping[str, TableSchema]
    before: int = 0
    parameters: Parameters = None
    today: dt.date | None = None
    propose: Callable[[str], str | None] | None = field(default=None, compare=False, repr=False)

    @property
    def examples(self) -> Examples | None:
        """Returns accepted questions about the table that the text mentions."""
        return find_examples(self.text, self.schemas)

    def position(self, offset: int) -> tuple[int, int]:
        r"""Returns line and column of a character, from 1.

        >>> SqlSource("SELECT a\nFROM b", {}).position(14)
        (2, 6)
        """
        ahead = self.text[self.before : max(offset, self.before)]
        return ahead.count("\n") + 1, len(ahead) - (ahead.rfind("\n") + 1) + 1

    def refuse(self, reason: str, hint: str, at: exp.Expr | int = 0) -> NoReturn:
        """Ends the reading.

        Args:
            reason: why, in a sentence, which may repeat names; what would steer a terminal is spelled out.
            hint: what to do; names of `Examples` in braces become questions.
            at: the node or the character that is refused.

        Raises:
            UnsupportedQuery: always.
        """
        offset = at if isinstance(at, int) else self.start(at)
        place, own = self.position(offset), self.text[self.before :]
        raise UnsupportedQuery(check.spelled_out(reason), fill_examples(hint, self.examples), place, text=own)

    def rewrite_query(self, node: exp.Expr, text: str) -> str | None:
        """Writes this question with another expression in the place of one; None unless that is accepted.

        Args:
            node: the expression, as it was parsed.
            text: what replaces it.
        """
        place = self.find_in_text(node)
        if place is None or self.propose is None:
            return None
        whole = place.root()
        place.replace(exp.column(_HOLE))
        found = whole.sql(dialect=DIALECT, comments=False).replace(_HOLE, text)
        return None if "`" in found else self.propose(found)

    def find_in_text(self, node: exp.Expr) -> exp.Expr | None:
        """Finds an expression in a tree of its own of this text; None if it was not written so, or a frame wrote it."""
        if self.propose is None:
            return None
        try:
            whole = sqlglot.parse_one(self.text, dialect=DIALECT)
        except SqlglotError:  # the first gate reads some words as names that the parser alone does not
            return None
        written, start = node.sql(dialect=DIALECT), self.start(node)
        alike = [
            part
            for part in whole.find_all(type(node))
            if part.parent is not None and self.start(part) == start and part.sql(dialect=DIALECT) == written
        ]
        return alike[0] if len(alike) == 1 else None

    def start(self, node: exp.Expr) -> int:
        """Finds where a node begins: its own place or that of its first part, or of the function's name before it."""
        if isinstance(node, exp.Interval):  # its parts are made anew by the parser
            return max(self.text.upper().find("INTERVAL"), self.before)
        if "start" in node.meta:
            return int(node.meta["start"])
        first = min((int(part.meta["start"]) for part in node.walk() if "start" in part.meta), default=-1)
        if first < 0:  # NULL, TRUE, FALSE and the words for today do not know their places
            return max(*(self.text.upper().find(word, self.before) for word in _spellings(node)), self.before)
        names = node.sql_names() if isinstance(node, exp.Func) else ["SELECT"] if isinstance(node, exp.Query) else []
        before = rf"\b({'|'.join(names)})\b\s*(\([^()]*|WHEN)?[\s(]*$"
        opened = re.search(before, self.text[:first], re.IGNORECASE) if names else None
        return opened.start() if opened else first


def _spellings(node: exp.Expr) -> tuple[str, str]:
    """Returns how a node without parts may be written, in capitals."""
    if isinstance(node, exp.CurrentDate):
        return "CURRENT_DATE", "TODAY"
    word = node.name.upper() if isinstance(node, exp.Anonymous) else node.sql().upper().removesuffix("()")
    return word, word
