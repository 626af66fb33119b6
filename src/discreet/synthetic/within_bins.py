"""Where numbers lie within their bins: one histogram of pieces for each column that asks for it, paid from the budget.

Every row is in exactly one piece of a column; what is missing is a cell of its own. So the histogram of all pieces is
one marginal, of rows that have pieces for codes: one unit of at most k rows moves it as it moves any other marginal,
and the log perturbs and charges it as one.
"""

from __future__ import annotations

from fractions import Fraction

from discreet.synthetic.coded_rows import CodedRows
from discreet.synthetic.domain import Bins, Domain
from discreet.synthetic.measurement_log import MeasurementLog

PART = Fraction(1, 10)
"""Of the budget, for the histograms of all columns together."""


def histogram_prices(domain: Domain, rho: Fraction) -> dict[str, Fraction]:
    """Returns the price of the histogram of each column that asks for one: equal parts of a tenth of the budget.

    >>> domain = Domain({"age": Bins([0, 50, 100], within="histogram"), "level": Bins([0, 1, 2], within="histogram")})
    >>> histogram_prices(domain, Fraction(1, 2))  # a bin of a single whole number has one piece: nothing to measure
    {'age': Fraction(1, 20)}
    """
    asked = _asked(domain)
    return {name: PART * rho / len(asked) for name in asked}


def measured_pieces(log: MeasurementLog, rows: CodedRows, domain: Domain) -> Domain:
    """Returns a domain whose bins know the shares of their pieces, from histograms that spend a log's whole budget.

    Args:
        log: whose budget they have in equal parts.
        rows: fine codes.
        domain: which asks for some.
    """
    asked, found = _asked(domain), {}
    for name, column in asked.items():
        noisy, pieces = log.marginal(rows, (name,), rho=log.budget / len(asked)), column.pieces
        found[name] = column.told(pieces.shares(noisy.values[: pieces.bins.size], noisy.sigma))
    return domain.completed(found)


def coarse(rows: CodedRows, domain: Domain) -> CodedRows:
    """Returns rows of codes, made of rows of fine codes by a public table."""
    places = {name: column.code_of_fine for name, column in domain.columns.items() if column.fine_size != column.size}
    return rows.recoded(places, domain.sizes) if places else rows


def _asked(domain: Domain) -> dict[str, Bins]:
    return {name: column for name, column in domain.columns.items() if isinstance(column, Bins) and column.asks}
