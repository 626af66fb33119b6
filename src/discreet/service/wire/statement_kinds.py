"""The kinds of statements: a small lexer of our own recognises each by its words.

The lexer knows quotes, dollar quotes and comments, and nothing else of SQL: questions are read by the gates of `sql`,
in a worker, and catalog queries in their own process. A mistake here can only send a text to an executor that
refuses it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from enum import Enum
from itertools import pairwise
from typing import cast

from discreet.dataclass import dataclass
from discreet.service.wire.protocol_messages import WireError

MOST_STATEMENTS = 20
LONGEST = 60_000
"""Characters of a message with statements: longer ones are refused unread, since reading them would delay others."""


class StatementKind(Enum):
    """What is done with a statement."""

    SELECT, EXPLAIN, SET, SHOW, RESET = "select", "explain", "set", "show", "reset"
    BEGIN, COMMIT, ROLLBACK, SAVEPOINT, RELEASE = "begin", "commit", "rollback", "savepoint", "release"
    DISCARD, DEALLOCATE, CLOSE = "discard", "deallocate", "close"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What a leading word means.

    Attributes:
        sqlstate, reason, hint: of the refusal, if it is always refused.
    """

    kind: StatementKind
    sqlstate: str = ""
    reason: str = ""
    hint: str = ""


_ASK = "Ask with SELECT. Stewards protect tables with `discreet protect`, or on the page."
_REFUSED = {
    "TABLE": ("0A000", "TABLE would list single rows", "Ask for a count with SELECT."),
    "INSERT UPDATE DELETE MERGE TRUNCATE": ("25006", "Rows cannot be written", _ASK),
    "CREATE ALTER DROP COMMENT": ("25006", "Objects cannot be created or changed", _ASK),
    "REFRESH REINDEX CLUSTER IMPORT SECURITY": ("25006", "Objects cannot be created or changed", _ASK),
    "GRANT REVOKE REASSIGN": ("42501", "Stewards grant access, on the page or with `discreet grant`", _ASK),
    "COPY": ("0A000", "COPY would copy single rows", "Ask for counts, sums and means with SELECT."),
    "DECLARE FETCH MOVE": ("0A000", "Cursors are not supported", "Fetch with a row limit in your driver."),
    "PREPARE EXECUTE": ("0A000", "Only drivers prepare statements", "Send the SELECT itself."),
    "LISTEN NOTIFY UNLISTEN": ("0A000", "Notifications are not supported", "Look at the history on the page."),
    "VACUUM ANALYZE LOCK CALL DO LOAD CHECKPOINT": ("0A000", "The command is not supported", _ASK),
}
"""Leading words of statements that are always refused: SQLSTATE, reason and hint."""

COMMANDS: dict[str, Command] = {
    **{kind.name: Command(kind=kind) for kind in StatementKind if kind is not StatementKind.REFUSED},
    **dict.fromkeys(("WITH", "FROM", "VALUES", "("), Command(kind=StatementKind.SELECT)),
    "START": Command(kind=StatementKind.BEGIN),
    "END": Command(kind=StatementKind.COMMIT),
    "ABORT": Command(kind=StatementKind.ROLLBACK),
    **{
        word: Command(kind=StatementKind.REFUSED, sqlstate=sqlstate, reason=reason, hint=hint)
        for words, (sqlstate, reason, hint) in _REFUSED.items()
        for word in words.split()
    },
}
"""Every command that is known, by its first word; all others are errors of syntax."""


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a quoted name, a text, a number, a parameter or a sign, and its place."""

    kind: str
    text: str
    start: int

    @property
    def word(self) -> str:
        """Returns an unquoted word in capitals; nothing for all else."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def name(self) -> str:
        """Returns what a name means: unquoted ones are lower case."""
        if self.kind == "quoted":
            return self.text[1:-1].replace('""', '"')
        return self.text.lower() if self.kind == "word" else ""

    @property
    def value(self) -> str:
        """Returns the value of a text, a number or a name."""
        if self.kind == "text":
            return self.text[self.text.index("'") + 1 : -1].replace("''", "'")
        return self.name or self.text


_PIECE = re.compile(
    r"""
      (?P<space> \s+ | --[^\n]* )
    | (?P<comment> /\* )
    | (?P<text> [eE]'(?:[^'\\]|\\.|'')*' | (?:[bBxXnN]|[uU]&)?'(?:[^']|'')*' )
    | (?P<quoted> "(?:[^"]|"")*" )
    | (?P<dollar> \$(?P<tag>[A-Za-z_]\w*)?\$ )
    | (?P<parameter> \$\d+ )
    | (?P<number> (?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)? )
    | (?P<word> [^\W\d]\w*\$*\w* )
    | (?P<sign> . )
    """,
    re.VERBOSE | re.DOTALL,
)


_COMMENT = re.compile(r"/\*|\*/")


def _unfinished_error(place: int) -> WireError:
    return WireError("42601", "A quote or a comment does not end", place=place)


def tokens(text: str) -> Iterator[Token]:
    """Yields the tokens of a text, without white space and comments.

    Raises:
        WireError: if a quote or a comment does not end.
    """
    place = 0
    while place < len(text):
        found = cast("re.Match[str]", _PIECE.match(text, place))  # the last alternative takes any character
        kind, end = "dollar" if found["dollar"] else str(found.lastgroup), found.end()
        if kind == "comment":
            end = _comment_end(text, place)
        elif kind == "dollar":
            closing = text.find(found["dollar"], end)
            if closing < 0:
                raise _unfinished_error(place)
            end = closing + len(found["dollar"])
        elif kind == "sign" and found["sign"] in "'\"":
            raise _unfinished_error(place)
        if kind not in ("space", "comment"):
            yield Token(kind, text[place:end], place)
        place = end


def _comment_end(text: str, place: int) -> int:
    """Returns where a comment ends; one may be inside another."""
    depth = 0
    for mark in _COMMENT.finditer(text, place):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    raise _unfinished_error(place)


@dataclass(frozen=True, slots=True, kw_only=True)
class WireStatement:
    """One statement of a message.

    Attributes:
        text: as it was written.
        offset: where it begins in the message.
        words: its tokens, whose places count from its own beginning.
    """

    text: str
    offset: int
    words: tuple[Token, ...]
    command: Command

    @property
    def kind(self) -> StatementKind:
        """Returns what is done with it."""
        return self.command.kind

    def word(self, place: int) -> str:
        """Returns a word in capitals, or nothing if there is none at that place."""
        return self.words[place].word if place < len(self.words) else ""

    @property
    def parameters(self) -> int:
        """Returns how many parameters it has: the highest number of $1, $2 and so on."""
        return max((int(each.text[1:6]) for each in self.words if each.kind == "parameter"), default=0)

    @property
    def tag(self) -> str:
        """Returns what it is called when it is done."""
        return "CLOSE CURSOR" if self.kind is StatementKind.CLOSE else self.kind.name


_UNKNOWN = Command(
    kind=StatementKind.REFUSED,
    sqlstate="42601",
    reason="The first word is not a command",
    hint="Ask with SELECT, or use EXPLAIN, SET and SHOW.",
)


def statements(text: str) -> list[WireStatement]:
    """Returns the statements of a message, empty ones left out.

    Raises:
        WireError: if a quote or a comment does not end.
    """
    found, part = [], list[Token]()
    for token in (*tokens(text), Token("sign", ";", len(text))):
        if token.text == ";" and token.kind == "sign":
            if part:
                found.append(_statement(text, part, token.start))
            part = []
        else:
            part.append(token)
    return found


def read_statements(text: str) -> list[WireStatement]:
    """Returns the statements of a message, if all of them can be done.

    Raises:
        WireError: if the text is not understood, one of them is of a kind that is refused, or there are too many.
    """
    if len(text) > LONGEST:
        raise WireError("54000", f"A message has at most {LONGEST} characters", "Send fewer or shorter statements.")
    found = statements(text)
    if len(found) > MOST_STATEMENTS:
        raise WireError("54000", f"A message has at most {MOST_STATEMENTS} statements")
    for each in found:
        command = each.command
        if command.kind is StatementKind.REFUSED:
            raise WireError(command.sqlstate, command.reason, command.hint, place=each.offset)
    return found


def _statement(text: str, part: Sequence[Token], end: int) -> WireStatement:
    start = part[0].start
    words = tuple(Token(each.kind, each.text, each.start - start) for each in part)
    command = COMMANDS.get(words[0].word or words[0].text, _UNKNOWN)
    return WireStatement(text=text[start:end], offset=start, words=words, command=command)


def is_catalog(words: Sequence[Token], declared: Collection[str]) -> bool:
    """Returns whether a SELECT is about the catalog or about nothing, rather than about a declared table.

    A name of a declared table right after FROM or JOIN makes it a question; else names of the catalog, or the want of
    any table, make it a catalog query.
    """
    after = [other for each, other in pairwise(words) if each.word in ("FROM", "JOIN")]
    if any(each.name in declared for each in after):
        return False
    names = {each.name for each in words}
    catalog = {"pg_catalog", "information_schema"} & names or any(name.startswith("pg_") for name in names)
    return bool(catalog) or not any(each.word == "FROM" for each in words)


def without_schema(text: str, words: Sequence[Token]) -> str:
    """Returns a text in which `public.` before names is blank, so that places stay as they are.

    >>> without_schema("SELECT 1 FROM public.visits", list(tokens("SELECT 1 FROM public.visits")))
    'SELECT 1 FROM        visits'
    """
    made = list(text)
    for each, dot in pairwise(words):
        if each.name == "public" and dot.text == "." and dot.start == each.start + len(each.text):
            made[each.start : dot.start + 1] = " " * (len(each.text) + 1)
    return "".join(made)
