"""Functions that have a record in the plan: how each is read is found out by reading an example of each of its words.

The parser has a kind of node for most words and calls its parts as it likes; a sample call shows both. A word is read
as the parser reads it, so that words that it takes for one another are one here, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import sqlglot
from sqlglot import exp

from discreet.plan.expressions.calls import Mismatch, call
from discreet.plan.expressions.functions import FUNCTIONS, Function
from discreet.plan.expressions.shorthands import SHORTHANDS
from discreet.plan.model.nodes import Expression
from discreet.sql.examples import DIALECT
from discreet.sql.functions.grammar import Read, names, read, reads, refuse_count
from discreet.sql.scope import Scope

Expand = Callable[..., Expression]


def _enter(words: Sequence[str], counts: Sequence[int], expand: Expand) -> None:
    """Enters what the parser makes of the words into the table of the second gate.

    The order of the arguments is that of the first word of a kind: POSITION(b IN a) turns it round.
    """
    entered: set[type[exp.Expr]] = set()
    for word in words:
        samples = [_SAMPLES[word, count] for count in counts]
        if isinstance(samples[0], exp.Anonymous):
            names(word, *counts)(_build_list_reader(expand))
        elif type(samples[0]) not in entered:
            entered.add(type(samples[0]))
            places = list(dict.fromkeys(place for sample in samples for place in _places(sample)))
            parts = (*places, *(name for sample in samples for name in _set(sample)))
            takes = None if any(isinstance(value, list) and value for value in samples[0].args.values()) else counts
            reads(type(samples[0]), *parts)(_build_place_reader(expand, places, word, takes))


def _places(sample: exp.Expr) -> Iterator[str]:
    """Returns the parts of a sample that are arguments, in the order in which these were written."""
    found = [(part.name, name) for name, value in sample.args.items() for part in _parts(value)]
    return (name for _, name in sorted(found))


def _parts(value: object) -> list[exp.Column]:
    return [part for part in (value if isinstance(value, list) else [value]) if isinstance(part, exp.Column)]


def _set(sample: exp.Expr) -> Iterator[str]:
    """Returns the parts of a sample that the parser sets on its own, such as what it remembers of the dialect."""
    return (name for name, value in sample.args.items() if value and not _parts(value))


def _build_place_reader(expand: Expand, places: Sequence[str], word: str, counts: Sequence[int] | None) -> Read:
    """Reads the arguments from their places: as many as are counted, or one at least."""

    def read_places(node: exp.Expr, scope: Scope) -> Expression:
        given = [node.args.get(place) for place in places]
        flat = [part for value in given for part in (value if isinstance(value, list) else [value]) if part is not None]
        has_gap = None in given[: len(given) - given[::-1].count(None)]  # what follows would be taken for another part
        if has_gap or (not flat if counts is None else len(flat) not in counts):
            refuse_count(word, counts or (1,), node, scope)
        return _expand_arguments(expand, flat, scope)

    return read_places


def _build_list_reader(expand: Expand) -> Read:
    return lambda node, scope: _expand_arguments(expand, node.expressions, scope)


def _expand_arguments(expand: Expand, given: Sequence[exp.Expr], scope: Scope) -> Expression:
    try:
        return expand(*(read(part, scope) for part in given))
    except Mismatch as mismatch:
        if mismatch.argument is None:
            raise
        scope.refuse(mismatch.reason, mismatch.hint, given[mismatch.argument])


def _counts(function: Function) -> list[int]:
    """Returns how many arguments a function takes; three show where the parser puts a repeated one."""
    counts = {len(signature.arguments) for signature in function.signatures}
    return [3] if any(signature.variadic for signature in function.signatures) else sorted(counts)


def _read_samples(calls: Sequence[tuple[str, int]]) -> dict[tuple[str, int], exp.Expr]:
    """Reads a call of each word with so many arguments, all in one SELECT: each statement takes its time."""
    written = [f"{word}({', '.join(f'a{place}' for place in range(count))})" for word, count in calls]
    found = sqlglot.parse_one(f"SELECT {', '.join(written)}", dialect=DIALECT).expressions
    return dict(zip(calls, found, strict=True))


_ENTRIES: list[tuple[Sequence[str], Sequence[int], Expand]] = [
    *((one.words, _counts(one), partial(call, one.name)) for one in FUNCTIONS.values()),
    *((one.words, one.counts, one.expand) for one in SHORTHANDS),
]
_SAMPLES = _read_samples([(word, count) for words, counts, _ in _ENTRIES for word in words for count in counts])
for _entry in _ENTRIES:
    _enter(*_entry)
