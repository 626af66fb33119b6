"""The first gate: what may be in the text at all, decided before anything parses it.

Length, characters, words, functions and nesting are checked on the flat list of tokens, so that no text can make the
parser fall over, and so that a refusal points at the very word it means.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import ClassVar

from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token
from sqlglot.tokenizer_core import TokenType as Kind

from discreet import check
from discreet.measurement.aggregates import AGGREGATIONS
from discreet.sql.examples import DIALECT
from discreet.sql.grammar_words import FUNCTION_WORDS
from discreet.sql.parameters import LONGEST, fill_parameters
from discreet.sql.refusals import REFUSALS, UNKNOWN_FUNCTION, UNKNOWN_WORD, Refusal, SqlSource

MOST_TOKENS = 5_000
DEEPEST = 40  # brackets and CASE inside each other; the parser spends about 20 frames on each
LONGEST_RUN = 12  # words without a name or value between them: NOT NOT NOT ..., - - - ...

_OPERANDS = {Kind.VAR, Kind.IDENTIFIER, Kind.NUMBER, Kind.STRING, Kind.NULL, Kind.TRUE, Kind.FALSE, Kind.STAR}
_TYPES = {
    *(Kind.INT, Kind.BIGINT, Kind.SMALLINT, Kind.TINYINT, Kind.FLOAT, Kind.DOUBLE, Kind.DECIMAL, Kind.TEXT),
    *(Kind.BOOLEAN, Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPNTZ, Kind.TIMESTAMPTZ),
}
_CLAUSES = {
    *(Kind.SELECT, Kind.DISTINCT, Kind.FROM, Kind.WHERE, Kind.GROUP_BY, Kind.HAVING, Kind.ORDER_BY, Kind.LIMIT),
    *(Kind.WITH, Kind.JOIN, Kind.INNER, Kind.LEFT, Kind.OUTER, Kind.ON, Kind.USING, Kind.UNION, Kind.ALL, Kind.EXISTS),
    *(Kind.PARTITION_BY, Kind.QUALIFY, Kind.INTERSECT, Kind.EXCEPT),
    *(Kind.ALIAS, Kind.ASC, Kind.DESC, Kind.COMMA, Kind.DOT, Kind.L_PAREN, Kind.R_PAREN, Kind.SEMICOLON, Kind.FOR),
}
_OPERATORS = {
    *(Kind.PLUS, Kind.DASH, Kind.SLASH, Kind.DIV, Kind.MOD, Kind.EQ, Kind.NEQ, Kind.LT, Kind.LTE, Kind.GT, Kind.GTE),
    *(Kind.AND, Kind.OR, Kind.NOT, Kind.IS, Kind.IN, Kind.LIKE, Kind.BETWEEN, Kind.DCOLON),
    *(Kind.ILIKE, Kind.DPIPE, Kind.CARET, Kind.DSTAR, Kind.ESCAPE, Kind.SIMILAR_TO, Kind.TILDE, Kind.IRLIKE),
    *(Kind.CASE, Kind.WHEN, Kind.THEN, Kind.ELSE, Kind.END),
}
_BRACKETED = {Kind.OVER, Kind.LATERAL, Kind.ROLLUP, Kind.CUBE, Kind.GROUPING_SETS, Kind.PIVOT}  # these call nothing
_LIST = {Kind.L_BRACKET, Kind.R_BRACKET}
_ALLOWED = _OPERANDS | _TYPES | _CLAUSES | _OPERATORS | _BRACKETED | _LIST | {Kind.ROWS, Kind.INTERVAL}
_ALLOWED |= {Kind.OFFSET, Kind.FETCH, Kind.CROSS, Kind.CURRENT_DATE, Kind.CURRENT_TIMESTAMP}
_PLAIN_WORDS = _ALLOWED - _LIST - {Kind.VAR, Kind.FIRST}  # nothing next to these but a bracket makes them wrong
_FIRST = {Kind.SELECT, Kind.WITH, Kind.FROM, Kind.L_PAREN, Kind.PIVOT}
_NEVER_NAMES = _CLAUSES | _OPERATORS  # these need quotes to be names
_NOT_RENAMED = _OPERANDS | _NEVER_NAMES
_NO_CALLS = _NEVER_NAMES | _BRACKETED | {Kind.STAR, Kind.INTERVAL}
_ENDS_A_RUN = _OPERANDS | {Kind.R_PAREN}

FUNCTIONS = {
    *FUNCTION_WORDS,
    *(name for registered in AGGREGATIONS.values() for name in registered.functions),
    *("COUNT", "COUNT_IF", "COUNTIF", "FILTER"),
    *("MEDIAN", "QUANTILE", "QUANTILE_CONT", "PERCENTILE_CONT", "APPROX_QUANTILE", "MODE", "HISTOGRAM"),
    *("QUANTILE_DISC", "PERCENTILE_DISC", "ANY_VALUE"),
    *("ARG_MIN", "ARG_MAX", "MIN_BY", "MAX_BY", "FIRST", "LAST"),
    *("ROW_NUMBER", "RANK", "DENSE_RANK", "LAG", "LEAD", "FIRST_VALUE", "LAST_VALUE"),
    "GROUPING",
}
"""Words that may stand before a bracket."""

_SYNONYMS = {"VAR": "VAR_SAMP", "ARBITRARY": "ANY_VALUE"}
"""Those that the parser does not know, and what it calls them."""

FUNCTIONS |= _SYNONYMS.keys()

_SPACE = re.compile(r"(?:[ \t\r\n]|--[^\r\n]*(?=\r?\n|\Z)|/\*(?![+!])(?:(?!/\*|\*/)[^\0])*\*/)*")
"""White space and comments. Nothing may look like a line of its own inside a comment, nor like a second comment."""

_USUAL_GAPS = ("", " ")

_PLAIN = re.compile(r"[\t\r\n -~]*")
"""Characters that are all visible: most questions have no others."""

_PLACEHOLDERS = {Kind.PLACEHOLDER, Kind.QDCOLON, Kind.PARAMETER, Kind.COLON}
_NAMED_SYMBOLS = {
    Kind.L_BRACKET: "A list or subscript",
    Kind.L_BRACE: "A struct",
    Kind.ARROW: "An arrow",
    **dict.fromkeys((Kind.BYTE_STRING, Kind.HEREDOC_STRING, Kind.NATIONAL_STRING), "A text with a prefix"),
}


def tokens(source: SqlSource) -> list[Token]:
    """Returns the tokens of a text that passes the first gate.

    Raises:
        UnsupportedQuery: at the first character, word or bracket that does not.
    """
    _characters(source)
    found = _tokenize(source)
    if len(found) > MOST_TOKENS:
        source.refuse(f"The question has more than {MOST_TOKENS} words.", "Ask a shorter one: {count}.")
    statement = _one_statement(source, found)
    _gaps(source, found)
    plain = [_change_kind(token, token.token_type) if token.comments else token for token in statement]
    if source.parameters is not None or not _PLACEHOLDERS.isdisjoint(_kinds(plain)):
        plain = fill_parameters(plain, source.parameters)
    found = [_mark_identifier(source, before, token, after) for before, token, after in _neighbours(_as_in(plain))]
    _nesting(source, found)
    for before, token, after in _neighbours(found):
        _word(source, before, token, after)
    _files(source, found)
    found = _as_table(found)
    if all(token.text.upper() not in _SYNONYMS for token in found):
        return found
    return [_replace_synonym(token, after) for _, token, after in _neighbours(found)]


def _kinds(found: Sequence[Token]) -> list[Kind]:
    return [token.token_type for token in found]


def statements(text: str) -> list[str]:
    """Returns the questions of a text that has several, with a semicolon after each; one inside quotes is a text.

    >>> statements("SELECT COUNT(*) FROM a; SELECT ';' AS x, COUNT(*) FROM b; -- that is all")
    ['SELECT COUNT(*) FROM a', "SELECT ';' AS x, COUNT(*) FROM b"]
    """
    try:
        found = _Tokenizer(dialect=DIALECT).tokenize(text)
    except SqlglotError:
        return [text]  # its reader says what is wrong
    ends = [token.start for token in found if token.token_type is Kind.SEMICOLON] + [len(text)]
    parts, start = [], 0
    for end in ends:
        if any(start <= token.start < end for token in found):
            parts.append(text[start:end].strip())
        start = end + 1
    return parts


def _replace_synonym(token: Token, after: Token | None) -> Token:
    """Returns the token, or that of the function which the parser knows instead."""
    name = _SYNONYMS.get(token.text.upper()) if _is(after, Kind.L_PAREN) else None
    return token if name is None else Token(token.token_type, name, token.line, token.col, token.start, token.end, [])


def _characters(source: SqlSource) -> None:
    if len(source.text) - source.before > LONGEST:
        source.refuse(f"The question is longer than {LONGEST} characters.", "Ask a shorter one: {count}.")
    if _PLAIN.fullmatch(source.text):
        return
    for offset, character in enumerate(source.text):
        if check.is_hidden(character):
            source.refuse("The question contains a character that cannot be seen.", "Delete it: {count}.", offset)


class _Tokenizer(DuckDB.Tokenizer):
    """Words without dollar quotes, which are not allowed: in IN ($1,$2) there are two parameters."""

    HEREDOC_STRINGS: ClassVar[list[str | tuple[str, str]]] = []


def _tokenize(source: SqlSource) -> list[Token]:
    try:
        return _Tokenizer(dialect=DIALECT).tokenize(source.text)
    except SqlglotError:
        source.refuse("A quote is opened and never closed.", "Close it, or double it inside a text: {count}.")


def _gaps(source: SqlSource, found: list[Token]) -> None:
    """Checks that only white space and plain comments are between tokens: no hint, nothing else that is skipped."""
    edge = 0
    for token in found:
        if source.text[edge : token.start] not in _USUAL_GAPS:
            _gap(source, edge, token.start)
        edge = token.end + 1
    if found[-1].token_type is Kind.SEMICOLON and source.text[edge:].strip(" \t\r\n"):
        source.refuse("Nothing may follow the question's end.", "Leave it out: {count}.", edge)
    _gap(source, edge, len(source.text))


def _gap(source: SqlSource, begin: int, end: int) -> None:
    skipped = _SPACE.match(source.text, begin, end)
    if skipped is not None and skipped.end() < end:
        offset = skipped.end()
        source.refuse(
            "A comment is plain text up to the end of its line, or between /* and */ with no comment inside. "
            "Hints are not read.",
            "Leave it out: {count}.",
            offset,
        )


def _one_statement(source: SqlSource, found: list[Token]) -> list[Token]:
    while found and found[-1].token_type is Kind.SEMICOLON:
        found = found[:-1]
    if not found:
        source.refuse("The question is empty.", "Ask, for example, {count}.")
    second = next((token for token in found if token.token_type is Kind.SEMICOLON), None)
    if second is not None:
        source.refuse("There are several statements.", "Ask them one by one: {count}.", second.start)
    first = found[0]
    if first.token_type not in _FIRST:
        refusal = REFUSALS.get(first.text.upper(), Refusal("A question begins with SELECT or FROM.", "Ask {count}."))
        _refuse(source, refusal, first)
    return found


def _neighbours(found: list[Token]) -> list[tuple[Token | None, Token, Token | None]]:
    padded: list[Token | None] = [None, *found, None]
    return [(padded[i], token, padded[i + 2]) for i, token in enumerate(found)]


def _mark_identifier(source: SqlSource, before: Token | None, token: Token, after: Token | None) -> Token:
    """Marks a word of the dialect that is a declared column, or comes after AS, as a name in quotes."""
    if token.token_type in _NOT_RENAMED or not token.text.isidentifier():
        return token
    if _is(after, Kind.L_PAREN) or _is(after, Kind.NUMBER):
        return token
    alias = _is(before, Kind.ALIAS) and token.token_type not in _TYPES
    typed = _is(before, Kind.ALIAS) or _is(before, Kind.DCOLON) or _is(after, Kind.STRING)
    declared = not typed and any(
        column.casefold() == token.text.casefold() for schema in source.schemas.values() for column in schema.columns
    )
    return _change_kind(token, Kind.IDENTIFIER) if alias or declared else token


def _change_kind(token: Token, kind: Kind) -> Token:
    """Returns the token as another kind, without comments."""
    return Token(kind, token.text, token.line, token.col, token.start, token.end, [])


def _nesting(source: SqlSource, found: list[Token]) -> None:
    depth = run = 0
    for token in found:
        depth += token.token_type in (Kind.L_PAREN, Kind.CASE)
        depth -= token.token_type in (Kind.R_PAREN, Kind.END)
        run = 0 if token.token_type in _ENDS_A_RUN else run + (token.token_type is not Kind.L_PAREN)
        if depth > DEEPEST or run > LONGEST_RUN:
            source.refuse("The question is nested too deeply.", "Ask a simpler one: {count}.", token.start)
    for one, other in pairwise(found):
        glued = one.end + 1 == other.start and one.token_type in (Kind.NUMBER, Kind.VAR)
        if glued and other.token_type in (Kind.VAR, Kind.STRING):
            source.refuse("Write numbers in decimal, and texts without a prefix.", "For example {filtered}.", one.start)
        if one.token_type is other.token_type is Kind.STRING:
            source.refuse("Two texts follow each other.", "Join them with ||, or double a quote: {pattern}.", one.start)


def _word(source: SqlSource, before: Token | None, token: Token, after: Token | None) -> None:
    kind, calls = token.token_type, _is(after, Kind.L_PAREN)
    if kind in _PLAIN_WORDS and not calls:
        return
    word = token.text.upper()
    if calls and _calls(before, token):
        if kind is Kind.IDENTIFIER or word not in FUNCTIONS:
            _refuse(source, REFUSALS.get(word, UNKNOWN_FUNCTION), token)
    elif word == "ROW" and before is not None and before.text.upper() == "CURRENT":
        return  # the end of a frame, which is refused where the window is
    elif kind is Kind.FIRST and before is not None and before.text.upper() == "NULLS":
        _refuse(source, REFUSALS["NULLS FIRST"], token)
    elif kind is Kind.VAR and word in ("SYMMETRIC", "TOP") and _is(after, Kind.NUMBER):
        _refuse(source, REFUSALS[word], token)
    elif kind not in _ALLOWED and not _fetches(before, token, after):
        _refuse(source, _symbol(token) or REFUSALS.get(word, UNKNOWN_WORD), token)
    elif kind in _LIST and not _lists(before, token, after):
        _refuse(source, _symbol(token) or UNKNOWN_WORD, token)


def _fetches(before: Token | None, token: Token, after: Token | None) -> bool:
    """Returns whether a word belongs to OFFSET 5 ROWS, or to FETCH FIRST 5 ROWS ONLY, in one of its spellings."""
    if token.token_type in (Kind.FIRST, Kind.NEXT):
        return _is(before, Kind.FETCH)
    if token.text.upper() == "ROW":
        return _is(after, Kind.ONLY) or _is(after, Kind.FETCH)
    return token.token_type is Kind.ONLY and before is not None and before.text.upper() in ("ROW", "ROWS")


def _files(source: SqlSource, found: list[Token]) -> None:
    """Refuses a text after FROM, but for that of IS DISTINCT FROM and of TRIM(' ' FROM 'text')."""
    kinds = [token.token_type for token in found]
    for place, token in enumerate(found):
        compared = place > 2 and kinds[place - 2] is Kind.DISTINCT and kinds[place - 3] in (Kind.IS, Kind.NOT)
        named = token.token_type is Kind.STRING and place > 0 and kinds[place - 1] is Kind.FROM
        if named and not compared and not _trims(found[max(place - 5, 0) : place - 1]):
            source.refuse("A table is a declared name, not a file.", "Name a declared table: {count}.", token.start)


def _trims(before: Sequence[Token]) -> bool:
    """Returns whether TRIM( comes before a FROM, with a side and a text between them at most."""
    words = [token.text.upper() if token.token_type is not Kind.STRING else "'" for token in before]
    start = len(words) - 1 - words[::-1].index("(") if "(" in words else 0
    between = [word for word in words[start + 1 :] if word not in ("BOTH", "LEADING", "TRAILING", "'")]
    return start > 0 and words[start - 1] == "TRIM" and not between


def _as_in(found: list[Token]) -> list[Token]:
    """Spells = ANY (ARRAY[...]) as IN (...), and <> ALL (ARRAY[...]) as NOT IN (...); likewise with a SELECT."""
    if _LISTED.isdisjoint(_kinds(found)):
        return found
    made: list[Token] = []
    place = 0
    while place < len(found):
        kinds = [token.token_type for token in found[place : place + 5]]
        words = _IN_WORDS.get(tuple(kinds[:3]))
        listed = 4 if kinds[3:5] == [Kind.ARRAY, Kind.L_BRACKET] else 3
        end = (
            _find_list_end(found, place + listed) if words and kinds[listed : listed + 1] == [Kind.L_BRACKET] else None
        )
        if words is None or (end is None and kinds[3:4] != [Kind.SELECT]):
            made.append(found[place])
            place += 1
            continue
        made += [*(_change_kind(found[place], kind) for kind in words), found[place + 2]]
        made += [] if end is None else found[place + listed + 1 : end]
        place = place + 3 if end is None else end + 1
    return made


def _as_table(found: list[Token]) -> list[Token]:
    """Writes the statement PIVOT ... ORDER BY ... as FROM (PIVOT ...) ORDER BY ..., which the parser knows."""
    if Kind.PIVOT not in _kinds(found):
        return found
    outer = [token for token, depth in _depths(found) if not depth]
    first = next((token for token in outer if token.token_type in _BEGINS), None)
    if first is None or first.token_type is not Kind.PIVOT:
        return found
    begin = found.index(first)
    last = next((token for token in outer if token.start > first.start and token.token_type in _ENDS), None)
    end = len(found) if last is None else found.index(last)
    opened = [_sign(first, Kind.FROM, "FROM"), _sign(first, Kind.L_PAREN, "(")]
    return [*found[:begin], *opened, *found[begin:end], _sign(found[end - 1], Kind.R_PAREN, ")"), *found[end:]]


_BEGINS = {Kind.SELECT, Kind.FROM, Kind.PIVOT}
_ENDS = {Kind.ORDER_BY, Kind.LIMIT, Kind.OFFSET, Kind.FETCH}


def _depths(found: list[Token]) -> Iterator[tuple[Token, int]]:
    """Yields each token, and how many brackets are open around it."""
    depth = 0
    for token in found:
        depth -= token.token_type is Kind.R_PAREN
        yield token, depth
        depth += token.token_type is Kind.L_PAREN


def _sign(near: Token, kind: Kind, text: str) -> Token:
    return Token(kind, text, near.line, near.col, near.start, near.end, [])


_IN_WORDS: dict[tuple[Kind, ...], tuple[Kind, ...]] = {
    (Kind.EQ, Kind.ANY, Kind.L_PAREN): (Kind.IN,),
    (Kind.EQ, Kind.SOME, Kind.L_PAREN): (Kind.IN,),
    (Kind.NEQ, Kind.ALL, Kind.L_PAREN): (Kind.NOT, Kind.IN),
}
_LISTED = {Kind.ANY, Kind.SOME, Kind.ALL}  # without one of these there is nothing to spell otherwise


def _find_list_end(found: list[Token], place: int) -> int | None:
    """Returns where the list that begins at a place ends, if it holds no other and a bracket follows."""
    inside = range(place + 1, len(found) - 1)
    end = next((i for i in inside if found[i].token_type in _LIST), len(found))
    closes = end < len(found) - 1 and found[end].token_type is Kind.R_BRACKET
    return end if closes and found[end + 1].token_type is Kind.R_PAREN else None


def _lists(before: Token | None, token: Token, after: Token | None) -> bool:
    """Returns whether a bracket begins or ends a list of numbers as argument; the second gate knows one use of it."""
    begins = token.token_type is Kind.L_BRACKET
    outer, inner = (before, after) if begins else (after, before)
    return _is(inner, Kind.NUMBER) and (_is(outer, Kind.COMMA) or _is(outer, Kind.L_PAREN if begins else Kind.R_PAREN))


def _calls(before: Token | None, token: Token) -> bool:
    """Returns whether a token before a bracket names a function; a type with its size and WITHIN GROUP do not."""
    if token.text.upper() == "GROUP" and before is not None and before.text.upper() == "WITHIN":
        return False
    if token.token_type in _TYPES:
        return not (_is(before, Kind.ALIAS) or _is(before, Kind.DCOLON))
    return token.token_type not in _NO_CALLS


def _symbol(token: Token) -> Refusal | None:
    if token.token_type in _PLACEHOLDERS:
        return Refusal("A parameter is written as ?, $1, $name or :name.", "Or write its value out: {count}.")
    what = _NAMED_SYMBOLS.get(token.token_type)
    if what is None and token.text.isidentifier():
        return None
    what = what or f"The character {token.text[:10]}"
    return Refusal(f"{what} is not accepted.", "Write the values and functions out: {count}.")


def _refuse(source: SqlSource, refusal: Refusal, token: Token) -> None:
    word = token.text.upper() if len(token.text) <= 40 else token.text[:37].upper() + "..."
    asked = None
    if refusal.instead and source.propose is not None:
        asked = source.propose(source.text[: token.start] + refusal.instead + source.text[token.end + 1 :])
    hint = refusal.hint if asked is None else f"Write {refusal.instead}: `{asked}`."
    source.refuse(refusal.reason.replace("{word}", word), hint, token.start)


def _is(token: Token | None, kind: Kind) -> bool:
    return token is not None and token.token_type is kind
