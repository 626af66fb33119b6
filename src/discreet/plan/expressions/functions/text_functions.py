"""Functions of texts: letter case and trimming, parts, searches, LIKE and regular expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from discreet.lazy import Module
from discreet.plan.expressions.functions.record import (
    LONGEST_TEXT,
    B,
    Form,
    Forms,
    Function,
    N,
    T,
    Template,
    always_present,
    takes,
)
from discreet.plan.expressions.interval_arithmetic import EVERYTHING
from discreet.plan.expressions.letter_case import LOWER, UPPER, lower_case, upper_case

if TYPE_CHECKING:
    from discreet.plan.expressions import pattern_matcher
else:  # only the reference engine matches patterns in Python
    pattern_matcher = Module("discreet.plan.expressions.pattern_matcher")

# ------------------------------------------------------------------------------------------------------------ in Python


def _substring(text: str, position: int, length: int) -> str:
    begin, end = position - 1, position - 1 + max(length, 0)
    return text[max(begin, 0) : max(end, 0)]


def _concat(first: str, second: str) -> str | None:
    return first + second if len(first) + len(second) <= LONGEST_TEXT else None


def _replace(text: str, old: str, new: str) -> str | None:
    if len(new) > len(old) and len(text) * len(new) > LONGEST_TEXT:
        return None
    return text.replace(old, new) if old else text


def _split_part(text: str, separator: str, place: int) -> str:
    parts = text.split(separator) if separator else [text]
    index = place - 1 if place > 0 else place
    return parts[index] if place and -len(parts) <= index < len(parts) else ""


def _like(text: str, pattern: str) -> bool:
    """Matches LIKE by going back to the last % alone, so that the time is the product of the lengths at most."""
    at = place = 0
    retry, resume = -1, 0  # after the last % of the pattern, and where in the text it has been tried
    while at < len(text):
        if place < len(pattern) and pattern[place] == "%":
            retry, resume = place + 1, at
            place += 1
        elif place < len(pattern) and pattern[place] in ("_", text[at]):
            at, place = at + 1, place + 1
        elif retry >= 0:
            resume += 1
            at, place = resume, retry
        else:
            return False
    return not pattern[place:].strip("%")


_ASCII_UPPER = {ord(letter): letter.upper() for letter in "abcdefghijklmnopqrstuvwxyz"}
_ASCII_LOWER = {ord(letter): letter.lower() for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}

# ------------------------------------------------------------------------------------------------------------------ SQL

_SMALL, _LARGE = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _write_translation(letters: Mapping[int, int]) -> str:
    """Writes every letter as the table has it; the table is in the text, which is long and understood everywhere."""
    return f"translate({{0}}, '{''.join(map(chr, letters))}', '{''.join(map(chr, letters.values()))}')"


_LONGEST = (1 << 31) - 1  # positions beyond it are past the end of every text a database can hold
_FIRST = f"least(greatest({{1}}, 1), {_LONGEST})"
_HELD_PLACE = f"greatest(least({{2}}, {_LONGEST}), -{_LONGEST})"


def _length_from(wide: str) -> str:
    """Counts code points from max(b, 1) up to, not including, b + max(c, 0), held to positions of a text."""
    return f"greatest(least(CAST({{1}} AS {wide}) + greatest({{2}}, 0), {_LONGEST}) - {_FIRST}, 0)"


def _write_replacement(product: str) -> Template:
    """Leaves the text itself out where the result could be long, so that nothing long is ever made."""
    short = f"length({{2}}) <= length({{1}}) OR {product} * length({{2}}) <= {LONGEST_TEXT}"
    return Template(f"replace(CASE WHEN {short} THEN {{0}} END, {{1}}, {{2}})", repeats=(0, 1, 2))


# -------------------------------------------------------------------------------------------------------------- records


def _of_text(name: str, meaning: str, compute: Callable[..., Any], sql: Forms, **words: Any) -> Function:
    return Function(name, meaning, takes(T, result=T), compute=compute, present=always_present, sql=sql, **words)


def _make_strip_function(
    name: str, meaning: str, compute: Callable[..., Any], written: tuple[Form, Form, str]
) -> Function:
    duckdb, postgres, side = written
    return Function(
        name,
        meaning,
        takes(T, T, result=T),
        compute=compute,
        present=always_present,
        spelled={"duckdb": duckdb, "postgres": postgres, "spark": f"trim({side} {{1}} FROM {{0}})"},
    )


TEXTS = (
    Function(
        "like",
        "SQL's LIKE with % and _, the pattern a literal, no escape",
        takes(T, T, result=B),
        compute=_like,
        present=always_present,
        sql="{0} LIKE {1}",
        spelled={"postgres": "{0} LIKE {1} ESCAPE ''", "spark": "{0} RLIKE {1}"},
    ),
    Function(
        "matches",
        "whether the pattern b, a literal, is found in a; see `patterns`",
        takes(T, T, result=B),
        compute=lambda text, pattern: pattern_matcher.program(pattern).matches(text),
        present=always_present,
        sql="regexp_matches({0}, {1})",
        spelled={"postgres": "{0} ~ {1}", "spark": "{0} RLIKE {1}"},
    ),
    Function(
        "extract",
        "what the group of the pattern b, a literal, holds in the first match in a; empty if there is none",
        takes(T, T, result=T),
        compute=lambda text, pattern: pattern_matcher.program(pattern).group(text),
        present=always_present,
        sql="regexp_extract({0}, {1}, 1)",
        spelled={
            "postgres": Template(
                "CASE WHEN {0} IS NOT NULL THEN coalesce(substring({0} FROM {1}), '') END", repeats=(0,)
            ),
        },
    ),
    _of_text(
        "upper",
        "ASCII letters a-z in upper case, all else unchanged",
        lambda text: text.translate(_ASCII_UPPER),
        f"translate({{0}}, '{_SMALL}', '{_LARGE}')",
    ),
    _of_text(
        "lower",
        "ASCII letters A-Z in lower case, all else unchanged",
        lambda text: text.translate(_ASCII_LOWER),
        f"translate({{0}}, '{_LARGE}', '{_SMALL}')",
    ),
    _of_text(
        "upper_case",
        "converts every letter to upper case, with one table for all databases",
        upper_case,
        _write_translation(UPPER),
        words=("UPPER",),
        example="GROUP BY UPPER(ward)",
    ),
    _of_text(
        "lower_case",
        "converts every letter to lower case, with one table for all databases",
        lower_case,
        _write_translation(LOWER),
        words=("LOWER",),
        example="GROUP BY LOWER(ward)",
    ),
    _make_strip_function(
        "strip",
        "without the code points of b, a literal, at both ends",
        lambda text, signs: text.strip(signs),
        ("trim({0}, {1})", "btrim({0}, {1})", "BOTH"),
    ),
    _make_strip_function(
        "strip_left",
        "without the code points of b, a literal, at the beginning",
        lambda text, signs: text.lstrip(signs),
        ("ltrim({0}, {1})", "ltrim({0}, {1})", "LEADING"),
    ),
    _make_strip_function(
        "strip_right",
        "without the code points of b, a literal, at the end",
        lambda text, signs: text.rstrip(signs),
        ("rtrim({0}, {1})", "rtrim({0}, {1})", "TRAILING"),
    ),
    _of_text(
        "trim",
        "without spaces (U+0020) at both ends",
        lambda text: text.strip(" "),
        "trim(BOTH ' ' FROM {0})",
        spelled={
            # Most texts have nothing to trim, and trimming costs as much as reading a file's cell.
            "duckdb": Template("CASE WHEN contains({0}, ' ') THEN trim({0}, ' ') ELSE {0} END", repeats=(0,)),
            "postgres": "btrim({0}, ' ')",
        },
    ),
    _of_text(
        "trim_left",
        "without spaces (U+0020) at the beginning",
        lambda text: text.lstrip(" "),
        "ltrim({0}, ' ')",
        spelled={"spark": "trim(LEADING ' ' FROM {0})"},
    ),
    _of_text(
        "trim_right",
        "without spaces (U+0020) at the end",
        lambda text: text.rstrip(" "),
        "rtrim({0}, ' ')",
        spelled={"spark": "trim(TRAILING ' ' FROM {0})"},
    ),
    Function(
        "length",
        "the number of code points",
        takes(T, result=N),
        compute=len,
        bounds=lambda _: EVERYTHING,
        present=always_present,
        words=("LENGTH", "LEN", "CHAR_LENGTH"),
        example="AVG(GREATEST(LEAST(LENGTH(note), 99), 0))",
        sql="CAST(length({0}) AS bigint)",
        spelled={"duckdb": "length({0})", "spark": "CAST(length({0}) AS BIGINT)"},
    ),
    Function(
        "substring",
        "code points from position b (1 is the first), c of them; clipped to the text; c < 0 is 0",
        takes(T, N, N, result=T),
        compute=_substring,
        present=always_present,
        spelled={
            "duckdb": Template(
                "CASE WHEN {1} IS NOT NULL AND {2} IS NOT NULL THEN "
                f"substring({{0}}, {_FIRST}, CAST({_length_from('HUGEINT')} AS BIGINT)) END",
                repeats=(1, 2),
            ),
            "postgres": Template(
                "CASE WHEN {1} IS NOT NULL AND {2} IS NOT NULL THEN "
                f"substr({{0}}, CAST({_FIRST} AS integer), CAST({_length_from('numeric')} AS integer)) END",
                repeats=(1, 2),
            ),
            "spark": Template(
                f"substring({{0}}, CAST({_FIRST} AS INT), CASE WHEN {{1}} IS NOT NULL AND {{2}} IS NOT NULL THEN "
                f"CAST({_length_from('DECIMAL(38,0)')} AS INT) END)",
                repeats=(1, 2),
            ),
        },
    ),
    Function(
        "concat",
        f"a followed by b; NULL if longer than {LONGEST_TEXT} code points",
        takes(T, T, result=T),
        compute=_concat,
        sql=Template(
            f"CASE WHEN length({{0}}) + length({{1}}) <= {LONGEST_TEXT} THEN {{0}} || {{1}} END", repeats=(0, 1)
        ),
    ),
    Function(
        "replace",
        "a with c in the place of every b, found from left to right; a if b is empty; "
        f"NULL if c is longer than b and length(a) * length(c) > {LONGEST_TEXT}",
        takes(T, T, T, result=T),
        compute=_replace,
        sql=_write_replacement("CAST(length({0}) AS bigint)"),
        spelled={
            "duckdb": _write_replacement("length({0})"),
            "spark": _write_replacement("CAST(length({0}) AS BIGINT)"),
        },
    ),
    Function(
        "split_part",
        "splits a at every b, found from left to right, and returns part number c, counted from the end if c < 0; "
        "empty if there is no such part; if b is empty, a is not split",
        takes(T, T, N, result=T),
        compute=_split_part,
        present=always_present,
        words=("SPLIT_PART",),
        example="WHERE SPLIT_PART(note, ' ', 2) = '1'",
        spelled={
            "duckdb": Template(
                f"CASE WHEN {{1}} <> '' AND {{2}} IS NOT NULL THEN split_part({{0}}, {{1}}, {_HELD_PLACE}) "
                "WHEN {1} = '' AND {2} IN (1, -1) THEN {0} "
                "WHEN {0} IS NOT NULL AND {1} IS NOT NULL AND {2} IS NOT NULL THEN '' END",
                repeats=(0, 1, 2),
            ),
            "postgres": Template(
                "CASE WHEN {0} IS NULL OR {1} IS NULL OR {2} IS NULL THEN NULL WHEN {2} = 0 THEN '' ELSE "
                f"split_part({{0}}, {{1}}, CAST({_HELD_PLACE} AS integer)) END",
                repeats=(0, 1, 2),
            ),
            "spark": Template(
                f"CASE WHEN {{1}} <> '' AND {{2}} <> 0 THEN split_part({{0}}, {{1}}, CAST({_HELD_PLACE} AS INT)) "
                "WHEN {1} = '' AND {2} IN (1, -1) THEN {0} "
                "WHEN {0} IS NOT NULL AND {1} IS NOT NULL AND {2} IS NOT NULL THEN '' END",
                repeats=(0, 1, 2),
            ),
        },
    ),
    Function(
        "position",
        "the position of the first b in a, where 1 is the first code point; 0 if there is no b; also POSITION(b IN a)",
        takes(T, T, result=N),
        compute=lambda text, part: text.find(part) + 1,
        present=always_present,
        symbol="POSITION",
        words=("STRPOS", "INSTR", "POSITION"),
        example="WHERE STRPOS(note, '1') > 0",
        sql="CAST(strpos({0}, {1}) AS bigint)",
        spelled={"duckdb": "strpos({0}, {1})", "spark": "CAST(instr({0}, {1}) AS BIGINT)"},
    ),
    Function(
        "starts_with",
        "whether a begins with b",
        takes(T, T, result=B),
        compute=str.startswith,
        present=always_present,
        words=("STARTS_WITH",),
        example="WHERE STARTS_WITH(note, 'n')",
        sql="starts_with({0}, {1})",
        spelled={"spark": "startswith({0}, {1})"},
    ),
    Function(
        "ends_with",
        "whether a ends with b",
        takes(T, T, result=B),
        compute=str.endswith,
        present=always_present,
        words=("ENDS_WITH",),
        example="WHERE ENDS_WITH(note, '1')",
        spelled={
            "duckdb": "ends_with({0}, {1})",
            "postgres": Template("right({0}, length({1})) = {1}", repeats=(1,)),
            "spark": "endswith({0}, {1})",
        },
    ),
    Function(
        "contains",
        "whether a contains b",
        takes(T, T, result=B),
        compute=str.__contains__,
        present=always_present,
        words=("CONTAINS",),
        example="WHERE CONTAINS(note, 'ot')",
        sql="contains({0}, {1})",
        spelled={"postgres": "strpos({0}, {1}) > 0"},
    ),
)
