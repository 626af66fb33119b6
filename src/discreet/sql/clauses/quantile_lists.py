"""Quantiles asked for by a list, QUANTILE_CONT(x, [0.25, 0.5, 0.75]): one column of the answer for each."""

from __future__ import annotations

from fractions import Fraction

from sqlglot import exp

from discreet.sql.clauses.column_names import percent

_PARTS: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.Quantile: ("quantile",),
    exp.ApproxQuantile: ("quantile",),
    exp.PercentileCont: ("expression", "this"),
}
"""Where the list stands: PERCENTILE_CONT also takes it alone, before WITHIN GROUP."""


def each(node: exp.Expr, name: str | None) -> list[tuple[exp.Expr, str | None]]:
    """An output with its name, or if it asks for several quantiles, an output for each of them.

    With a name, theirs are that name and the quantile in per cent.

    >>> import sqlglot
    >>> asked = sqlglot.parse_one("QUANTILE_CONT(x, [0.25, 0.999])", dialect="duckdb")
    >>> [(one.sql(), name) for one, name in each(asked, "q")]
    [('PERCENTILE_CONT(x, 0.25)', 'q_p25'), ('PERCENTILE_CONT(x, 0.999)', 'q_p99_9')]
    """
    shares = _shares(node)
    if shares is None:
        return [(node, name)]
    return [
        (_with(node, share), None if name is None else f"{name}_p{percent(Fraction(share.name))}") for share in shares
    ]


def _holder(node: exp.Expr) -> tuple[exp.Expr, str] | None:
    """The quantile whose shares are a list, and the name of the part that they are."""
    inner = node.this if isinstance(node, exp.Filter | exp.WithinGroup) else node
    found = (part for part in _PARTS.get(type(inner), ()) if isinstance(inner.args.get(part), exp.Array))
    part = next(found, None)
    return None if part is None else (inner, part)


def _shares(node: exp.Expr) -> list[exp.Literal] | None:
    """The numbers of the list; None if there is no list of numbers, which the reader refuses then."""
    held = _holder(node)
    listed = [] if held is None else held[0].args[held[1]].expressions
    numbers = [share for share in listed if isinstance(share, exp.Literal) and not share.is_string]
    return numbers if numbers and len(numbers) == len(listed) else None


def _with(node: exp.Expr, share: exp.Literal) -> exp.Expr:
    made = node.copy()
    held = _holder(made)
    if held is not None:
        held[0].set(held[1], share.copy())
    return made
