"""Real rows compared with synthetic ones, for the steward of the real ones: no noise, no budget, no release.

The figures are exact functions of private rows. Do not publish them, and do not choose among tables by them and publish
the choice: this spends privacy that no account counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.report.display import Display, DisplayMixin, number
from discreet.synthetic.domain import Domain
from discreet.synthetic.domain.column_domains import Codes
from discreet.synthetic.domain.frame_columns import columns_of

WARNING = "This reads the real rows without noise. Do not release it."
"""What every form of an evaluation says."""

MOST_MARGINALS = 10**6
_LARGEST = 1 << 60  # cells of one marginal, numbered in 64 bits
_FEW = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginalDistances:
    """Holds the total variation of all marginals of so many columns.

    Attributes:
        degree: of how many columns each.
        mean: of all of them.
        worst: of the one that is furthest.
        columns: of that one.
        distances: by columns, the largest first.
    """

    degree: int
    mean: float
    worst: float
    columns: tuple[str, ...]
    distances: Mapping[tuple[str, ...], float]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Evaluation(DisplayMixin):
    """Reports exactly how far synthetic rows are from real ones: for the steward's eyes only.

    It is no release: it is written to no ledger, costs nothing, and gives no privacy. Text, notebooks and `repr` say
    so.

    Attributes:
        marginals: by number of columns.
        real_rows: how many real rows there are.
        fake_rows: how many synthetic rows there are.
    """

    marginals: Mapping[int, MarginalDistances]
    real_rows: int
    fake_rows: int

    def __getitem__(self, degree: int) -> MarginalDistances:
        """Returns what was found for marginals of so many columns."""
        return self.marginals[degree]

    def __repr__(self) -> str:
        found = ", ".join(
            f"{one.degree}-way mean={one.mean:.4f} worst={one.worst:.4f}" for one in self.marginals.values()
        )
        return f"<Evaluation {found}. {WARNING}>"

    def _display(self) -> Display:
        heads = ("marginals of", "how many", "mean total variation", "worst", "which")
        rows = [
            (
                f"{d} column" + "s" * (d > 1),
                len(one.distances),
                number(one.mean, 4),
                number(one.worst, 4),
                ", ".join(one.columns),
            )
            for d, one in self.marginals.items()
        ]
        counted = f"{self.fake_rows:,} synthetic rows, {self.real_rows:,} real rows."
        return Display(title=WARNING, columns=heads, rows=rows, numbers=heads[1:4], notes=(counted,))


def evaluate(
    real: Any,
    fake: Any,
    *,
    domain: Any,
    degrees: Iterable[int] = (1, 2, 3),
    ignore: Iterable[str] = (),
) -> Evaluation:
    """Compares synthetic rows with the real ones, exactly, for the steward of the real ones.

    The total variation of a marginal is half the L1 distance of its shares: the part of the rows that would have to
    move to another cell.

    This reads real rows without noise. Nothing is charged and nothing written to a ledger, because the result is not
    to be released, and is for no choice whose outcome is.

    Args:
        real: the private rows, as a frame of pandas, polars or PyArrow, or a dict of lists.
        fake: synthetic rows, likewise; also what `curator.synthesize` returned.
        domain: the public values of each column, as the generator had them: bins decide how fine the comparison is.
        degrees: of how many columns at a time.
        ignore: columns of the real rows that are not compared, such as whose they are.

    Raises:
        InvalidParameter: if a frame has other columns than the domain, there are no rows, or a marginal has too many
            cells.

    >>> real, fake = {"a": [0, 0, 1, 1], "b": [0, 0, 1, 1]}, {"a": [0, 0, 1, 1], "b": [0, 1, 0, 1]}
    >>> found = evaluate(real, fake, domain=dict.fromkeys("ab", [0, 1]))
    >>> found[1].mean, found[2].worst
    (0.0, 0.5)
    """
    known, wanted = Domain.of(domain), _check_degrees(degrees, Domain.of(domain))
    tables = [_encode_rows(frame, known, leave) for frame, leave in ((real, list(ignore)), (fake, []))]
    if not all(len(table) for table in tables):
        raise InvalidParameter("rows", 0, "to be at least 1 in both tables")
    found = {degree: _distances(tables[0], tables[1], known, degree) for degree in wanted}
    return Evaluation(marginals=found, real_rows=len(tables[0]), fake_rows=len(tables[1]))


def _check_degrees(degrees: Iterable[int], domain: Domain) -> list[int]:
    """Returns the degrees in order, but for those of more columns than there are."""
    columns = len(domain.columns)
    found = sorted({check.integer(degrees=degree, at_least=1) for degree in degrees})
    within = [degree for degree in found if degree <= columns]
    if not within:
        raise InvalidParameter("degrees", found, f"to have one of at most {columns}, the number of columns")
    if sum(math.comb(columns, degree) for degree in within) > MOST_MARGINALS:
        raise InvalidParameter("degrees", found, f"to have at most {MOST_MARGINALS:,} marginals", "Ask for fewer.")
    return within


def _encode_rows(frame: Any, domain: Domain, ignore: list[str]) -> Codes:
    """Returns rows as codes; of what a curator gave, those of its table."""
    given = frame.to_arrow() if hasattr(frame, "model") and hasattr(frame, "to_arrow") else frame
    return domain.codes(columns_of(given), ignore=ignore)


def _distances(real: Codes, fake: Codes, domain: Domain, degree: int) -> MarginalDistances:
    names, sizes = list(domain.columns), list(domain.sizes.values())
    together = np.ascontiguousarray(np.concatenate([real, fake]).T)
    weights = np.repeat([1 / len(real), -1 / len(fake)], [len(real), len(fake)])
    found = {
        tuple(names[column] for column in columns): _variation(places, weights, cells)
        for columns, places, cells in _marginals(together, sizes, degree)
    }
    ordered = dict(sorted(found.items(), key=lambda item: -item[1]))
    columns, worst = next(iter(ordered.items()))
    mean = sum(found.values()) / len(found)
    return MarginalDistances(degree=degree, mean=mean, worst=worst, columns=columns, distances=ordered)


def _marginals(
    columns: Codes, sizes: Sequence[int], degree: int, before: tuple[int, ...] = (), places: Codes | None = None
) -> Iterator[tuple[tuple[int, ...], Codes, int]]:
    """Yields sets of columns with each row's cell and how many there are; sets with the same first ones share work."""
    cells = math.prod(sizes[column] for column in before)
    if cells > _LARGEST:
        raise InvalidParameter("domain", f"{cells:,} cells", f"to have at most {_LARGEST:,} in one marginal")
    if len(before) == degree and places is not None:
        yield before, places, cells
        return
    for column in range(before[-1] + 1 if before else 0, len(sizes)):
        inner = columns[column] if places is None else places * sizes[column] + columns[column]
        yield from _marginals(columns, sizes, degree, (*before, column), inner)


def _variation(places: Codes, weights: NDArray[np.float64], cells: int) -> float:
    """Returns half the sum of absolute differences of shares; of more cells than rows, of those that have any."""
    if cells > max(_FEW, 4 * len(places)):
        _, places = np.unique(places, return_inverse=True)
        cells = int(places.max()) + 1
    return 0.5 * float(np.abs(np.bincount(places, weights=weights, minlength=cells)).sum())
