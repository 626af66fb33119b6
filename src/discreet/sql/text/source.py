"""The text of a question: where things stand in it, and how it is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from sqlglot import exp

from discreet import check
from discreet.errors import UnsupportedQuery
from discreet.plan.model.schema import TableSchema
from discreet.sql.text.examples import Examples, filled, mentioned


@dataclass(frozen=True, slots=True)
class Source:
    """A text, and the declarations it is read against.

    Args:
        text: what is parsed.
        schemas: the declared tables by name.
        before: how many leading characters we added ourselves; positions do not count them.
    """

    text: str
    schemas: Mapping[str, TableSchema]
    before: int = 0

    @property
    def examples(self) -> Examples | None:
        """Accepted questions about the table that the text mentions."""
        return mentioned(self.text, self.schemas)

    def position(self, offset: int) -> tuple[int, int]:
        r"""Line and column of a character, from 1.

        >>> Source("SELECT a\nFROM b", {}).position(14)
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
        raise UnsupportedQuery(check.spelled_out(reason), filled(hint, self.examples), self.position(offset))

    def start(self, node: exp.Expr) -> int:
        """Where a node begins: its own place or that of its first part, or of the function's name before it."""
        if isinstance(node, exp.Interval):  # its parts are made anew by the parser
            return max(self.text.upper().find("INTERVAL"), self.before)
        if "start" in node.meta:
            return int(node.meta["start"])
        first = min((int(part.meta["start"]) for part in node.walk() if "start" in part.meta), default=-1)
        if first < 0:  # NULL, TRUE and FALSE do not know their places
            return max(self.text.upper().find(node.sql()), self.before)
        names = node.sql_names() if isinstance(node, exp.Func) else ["SELECT"] if isinstance(node, exp.Query) else []
        before = rf"\b({'|'.join(names)})\b\s*(\([^()]*|WHEN)?[\s(]*$"
        opened = re.search(before, self.text[:first], re.IGNORECASE) if names else None
        return opened.start() if opened else first
