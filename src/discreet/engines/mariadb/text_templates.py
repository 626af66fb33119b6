r"""Texts on MariaDB: compared by code points, trimmed and searched by PCRE, and ids as the engine finds them.

Every text has one character set and one collation, so that `ab`, `AB` and `ab ` differ. In regular expressions `$`
would let a line feed follow and a length counts bytes: `\z` and CHAR_LENGTH are used.
"""

from __future__ import annotations

from collections.abc import Sequence

from discreet.engines.sql.dialect import Templates
from discreet.plan.expressions.functions import LONGEST_TEXT, Template
from discreet.plan.model.types import Type
from discreet.plan.model.unit_ids import COMMON, WHITE, Range

COLLATION = "utf8mb4_nopad_bin"
LONGEST_ID = 87_000
"""More code points than a text of the type TEXT has, or an id of several parts; a sort takes three bytes for each."""

_LONGEST_PART = 4_000  # code points of a part of an id, of twenty parts
_LETTERS = "utf8mb4_uca1400_ai_ci"  # whose letter case is that of Unicode 14.0, but for the capital sharp s
_LONGEST = (1 << 31) - 1  # positions beyond it are past the end of every text

IDS = "discreet_ids"
"""A table of texts, `given` with its `digest`, that are other ids than themselves without white space, and those."""


def write_text(sql: str) -> str:
    """Writes a text of any character set as one that is compared by its code points."""
    return f"(CONVERT({sql} USING utf8mb4) COLLATE {COLLATION})"


def literal(text: str) -> str:
    """Writes a text by its bytes, which no setting reads in another way and nothing breaks out of.

    >>> literal("é")
    "(CONVERT(X'c3a9' USING utf8mb4) COLLATE utf8mb4_nopad_bin)"
    """
    return write_text(f"X'{text.encode().hex()}'")


def _make_text(sql: str) -> str:
    return f"({sql}) COLLATE {COLLATION}"


_IS_ASCII = "OCTET_LENGTH({0}) = CHAR_LENGTH({0})"

# ----------------------------------------------------------------------------------------------------------------- ids


def _class(ranges: Sequence[Range]) -> str:
    """Returns the inside of a set of code points as a regular expression, its braces doubled for a template."""
    return "".join(f"\\x{{{{{first:x}}}}}-\\x{{{{{last:x}}}}}" for first, last in ranges)


_WHITE = f"[{_class(WHITE)}]"
_TRIMMED = rf"REGEXP_REPLACE({{0}}, '\A{_WHITE}++|(?<!{_WHITE}){_WHITE}++\z', '')"

IS_ID = f"({{0}} >= '!' AND {{0}} < '~') OR {{0}} REGEXP '[^{_class(WHITE)}]'"
"""Whether a text {0} has something besides white space; most texts have it at their beginning."""

IS_DOUBTFUL = rf"{_IS_ASCII.replace('=', '<>')} AND NOT ({{0}} REGEXP '\A[{_class((*COMMON, *WHITE))}]*+\z')"
"""Whether a text {0} may be another id than itself without white space."""

ID_PART = f"CASE WHEN CHAR_LENGTH({{0}}) <= {_LONGEST_PART} THEN {{0}} END"
"""A text {0} as a part of an id; a longer one makes none, for no sort would hold what is put together of several."""

NORMALISED_ID = _make_text(
    f"CASE WHEN {_IS_ASCII} AND {{0}} >= '!' AND RIGHT({{0}}, 1) >= '!' THEN {{0}} "
    f"WHEN {_IS_ASCII} THEN NULLIF({_TRIMMED}, '') ELSE NULLIF(COALESCE("
    f"(SELECT i.made FROM {IDS} AS i WHERE i.digest = MD5({{0}}) AND i.given = {{0}}), {_TRIMMED}), '') END"
)
"""A text {0} as the id that it is."""

# ---------------------------------------------------------------------------------------------------------- letter case


def _ascii_case(function: str, letters: str, others: str) -> Template:
    """Writes the case of the letters of ASCII alone."""
    text = "{0}"
    for one, other in zip(letters, others, strict=True):
        text = f"REPLACE({text}, '{one}', '{other}')"
    return Template(_make_text(f"CASE WHEN {_IS_ASCII} THEN {function}({{0}}) ELSE {text} END"), repeats=(0,))


_SMALL, _LARGE = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

# --------------------------------------------------------------------------------------------------------------- strips

_SET = r"NULLIF(REGEXP_REPLACE(HEX(CONVERT({1} USING utf32)), '(.{{8}})', '\\x{{\1}}'), '')"
"""The code points of {1} as the inside of a set of a regular expression; MariaDB compiles one before it is needed, so
that an empty set must be none."""


def _strip(*sides: str) -> Template:
    text = "{0}"
    for side in sides:
        pattern = (
            rf"'\A[' || {_SET} || ']++'" if side == "left" else rf"'(?<![' || {_SET} || '])[' || {_SET} || ']++\z'"
        )
        text = f"REGEXP_REPLACE({text}, {pattern}, '')"
    return Template(_make_text(f"CASE WHEN {{1}} = '' THEN {{0}} WHEN {{1}} <> '' THEN {text} END"), repeats=(0, 1))


# ---------------------------------------------------------------------------------------------------------------- parts

_FIRST = f"LEAST(GREATEST({{1}}, 1), {_LONGEST})"
_COUNT = f"GREATEST(LEAST(CAST({{1}} AS DECIMAL(40,0)) + GREATEST({{2}}, 0), {_LONGEST}) - {_FIRST}, 0)"

_PARTS = "((CHAR_LENGTH({0}) - CHAR_LENGTH(REPLACE({0}, {1}, ''))) DIV CHAR_LENGTH({1}) + 1)"
_PLACE = f"GREATEST(LEAST({{2}}, {_LONGEST}), -{_LONGEST})"


def _split_part() -> Template:
    """Finds parts from the left, since a search from the right finds others where separators overlap.

    The arguments after those given: how many parts there are, and which of them is wanted.
    """
    before = "CHAR_LENGTH(SUBSTRING_INDEX({0}, {1}, {4} - 1)) + CHAR_LENGTH({1}) + 1"
    found = (
        "CASE WHEN {4} = 1 THEN SUBSTRING_INDEX({0}, {1}, 1) "
        f"WHEN {{4}} BETWEEN 2 AND {{3}} THEN SUBSTR(SUBSTRING_INDEX({{0}}, {{1}}, {{4}}), {before}) ELSE '' END"
    )
    return Template(
        _make_text(
            "CASE WHEN {0} IS NULL OR {1} IS NULL OR {2} IS NULL THEN NULL "
            f"WHEN {{1}} = '' THEN CASE WHEN {{2}} IN (1, -1) THEN {{0}} ELSE '' END ELSE {found} END"
        ),
        repeats=(0, 1, 2),
        steps=(
            f"CASE WHEN {{1}} = '' THEN 1 ELSE {_PARTS} END",
            f"CASE WHEN {{2}} < 0 THEN {{3}} + 1 + {_PLACE} ELSE {_PLACE} END",
        ),
    )


_LENGTH = "CAST(CHAR_LENGTH({0}) AS SIGNED)"

TEXTS: Templates = {
    "upper": _ascii_case("UPPER", _SMALL, _LARGE),
    "lower": _ascii_case("LOWER", _LARGE, _SMALL),
    "upper_case": Template(_make_text(f"UPPER(REPLACE({{0}}, 'ß', 'ẞ') COLLATE {_LETTERS})")),
    "lower_case": Template(_make_text(f"LOWER({{0}} COLLATE {_LETTERS})")),
    "strip": _strip("left", "right"),
    "strip_left": _strip("left"),
    "strip_right": _strip("right"),
    "trim": Template(_make_text("TRIM(BOTH ' ' FROM {0})")),
    "trim_left": Template(_make_text("LTRIM({0})")),
    "trim_right": Template(_make_text("RTRIM({0})")),
    "length": Template(_LENGTH),
    "substring": Template(
        _make_text(f"CASE WHEN {{1}} IS NOT NULL AND {{2}} IS NOT NULL THEN SUBSTR({{0}}, {_FIRST}, {_COUNT}) END"),
        repeats=(1, 2),
    ),
    "concat": Template(
        _make_text(f"CASE WHEN CHAR_LENGTH({{0}}) + CHAR_LENGTH({{1}}) <= {LONGEST_TEXT} THEN {{0}} || {{1}} END"),
        repeats=(0, 1),
    ),
    "replace": Template(
        _make_text(
            "REPLACE(CASE WHEN CHAR_LENGTH({2}) <= CHAR_LENGTH({1}) "
            f"OR CHAR_LENGTH({{0}}) * CHAR_LENGTH({{2}}) <= {LONGEST_TEXT} THEN {{0}} END, {{1}}, {{2}})"
        ),
        repeats=(0, 1, 2),
    ),
    "split_part": _split_part(),
    "position": Template("CAST(LOCATE({1}, {0}) AS SIGNED)"),
    "starts_with": Template("LEFT({0}, CHAR_LENGTH({1})) = {1}", repeats=(1,)),
    "ends_with": Template("RIGHT({0}, CHAR_LENGTH({1})) = {1}", repeats=(1,)),
    "contains": Template("LOCATE({1}, {0}) > 0"),
    "like": Template("{0} REGEXP {1}"),
    "matches": Template("{0} REGEXP {1}"),
    # Without a match the whole text would stay.
    "extract": Template(
        _make_text(
            "CASE WHEN {0} REGEXP {1} THEN "
            r"REGEXP_REPLACE({0}, '(?s)\A.*?(?:' || {1} || ').*\z', '\1') "
            "WHEN {0} IS NOT NULL THEN '' END"
        ),
        repeats=(0, 1),
    ),
    ("to_text", Type.BOOL): Template(
        _make_text("CASE WHEN {0} THEN 'true' WHEN NOT {0} THEN 'false' END"), repeats=(0,)
    ),
}
"""The templates of what reads texts."""
