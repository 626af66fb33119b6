"""Which rows of units are kept, found by one sort of packed numbers, where no term has to be looked at.

A row's unit and rank are packed into one number of 64 bits, with the row's place in the lowest bits, and the numbers
are sorted. So the rows of a unit lie side by side, in the order of their ranks, at a tenth of what a hash table of all
units costs a database.

All rows of a group have its rank. So where rows of one rank are of one group, the groups of a unit are its different
ranks, and it keeps those of the first `groups` ranks (`row_choice`):

- rows of other ranks are left out;
- a row that is the only one of its unit and group is kept, whatever the limit of rows;
- which of several rows of a group are kept is undecided: the database decides about these rows as about all rows. They
  are rows of groups that are kept, so that no other row of their unit matters.

Where groups of one rank differ, all rows of the unit are undecided. So they are where groups are not known by a number,
and several rows have one rank.

Few bits are left for a rank where there are many rows and units far apart: then its highest ones are compared, and more
groups have one rank. A unit that is too large for its bits is hashed; units that have the same hash are undecided.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.engines.row_choice import P

Integers = NDArray[np.int64]

LEFT_OUT, KEPT, UNDECIDED = 0, 1, 2

MOST_ROWS = 1 << 24
"""How many rows are sorted at most: their places take 24 of the 64 bits."""

_RANK_BITS = P.bit_length()
_FEW_RANK_BITS = 12  # of units with 10 rows in 10 groups, 1 in 90 has two ranks alike
_WORD = 64
_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: multiples of it are far apart (Knuth, 6.4)


def decide_rows(units: Integers, ranks: Integers, groups: int, numbers: Integers | None = None) -> NDArray[np.uint8]:
    """Returns for each row whether it is kept, left out, or undecided.

    Args:
        units: the unit of each row.
        ranks: the rank of each row's group in its unit, from 0 to P - 1.
        groups: the limit of groups.
        numbers: a number for the group of each row, if there is one.

    >>> decide_rows(np.array([7, 8, 7, 7, 9, 9]), np.array([5, 1, 3, 4, 2, 2]), 2).tolist()
    [0, 1, 1, 1, 2, 2]
    """
    if len(units) == 0:
        return np.empty(0, np.uint8)
    groups = min(groups, len(units))  # which 32 bits hold
    packed, place_bits, rank_bits, is_hashed = _pack(units, ranks)
    packed.sort()
    places = (packed & np.uint64((1 << place_bits) - 1)).astype(np.int64)
    packed >>= np.uint64(place_bits)
    is_repeated = _repeats(packed)
    packed >>= np.uint64(rank_bits)
    of_same_unit = _repeats(packed)
    unit = np.cumsum(~of_same_unit, dtype=np.int32) - 1
    rank = np.cumsum(~is_repeated, dtype=np.int32)  # counts ranks of all units
    is_within = rank - rank[~of_same_unit][unit] < groups
    states = np.where(is_within, np.uint8(KEPT), np.uint8(LEFT_OUT))
    several = is_repeated.copy()
    several[:-1] |= is_repeated[1:]
    states[several & is_within] = UNDECIDED
    mixed = _find_mixed_ranks(np.flatnonzero(is_repeated & is_within), places, numbers)
    if is_hashed:
        mixed = np.concatenate([mixed, np.flatnonzero(of_same_unit & ~_repeats(units[places]))])
    if len(mixed):
        is_mixed = np.zeros(int(unit[-1]) + 1, np.bool_)
        is_mixed[unit[mixed]] = True
        states[is_mixed[unit]] = UNDECIDED
    found = np.empty_like(states)
    found[places] = states
    return found


def decide_table(rows: Any, groups: int, *, is_numbered: bool) -> NDArray[np.uint8]:
    """Returns the state of each row of an Arrow table; rows without a unit are left out.

    Args:
        rows: the unit comes first, then perhaps the number of the group, and the rank last.
        groups: the limit of groups.
        is_numbered: whether the second column is a number of the group.
    """
    units, ranks = rows.column(0), rows.column(rows.num_columns - 1)
    numbers = rows.column(1) if is_numbered else None
    if not units.null_count:
        known = None if numbers is None else numbers.to_numpy()
        return decide_rows(units.to_numpy(), ranks.to_numpy(), groups, known)
    is_there = units.is_valid()
    known = None if numbers is None else numbers.filter(is_there).to_numpy()
    own, theirs = units.filter(is_there).to_numpy(), ranks.filter(is_there).to_numpy()
    states = np.full(len(units), LEFT_OUT, np.uint8)
    states[is_there.to_numpy()] = decide_rows(own, theirs, groups, known)
    return states


def _pack(units: Integers, ranks: Integers) -> tuple[NDArray[np.uint64], int, int, bool]:
    """Returns numbers of unit, rank and place, the bits of a place and of a rank, and whether units are hashed."""
    rows = len(units)
    place_bits = max((rows - 1).bit_length(), 1)
    least, most = int(units.min()), int(units.max())
    unit_bits, most_unit_bits = (most - least).bit_length(), _WORD - place_bits - _FEW_RANK_BITS
    packed = units.astype(np.uint64) - np.uint64(least % (1 << _WORD))  # modulo 2^64, as unsigned numbers are
    is_hashed = unit_bits > most_unit_bits
    if is_hashed:
        unit_bits = most_unit_bits
        packed ^= packed >> np.uint64(_WORD // 2)
        packed *= _ODD
        packed >>= np.uint64(_WORD - unit_bits)
    rank_bits = min(_WORD - place_bits - unit_bits, _RANK_BITS)
    packed <<= np.uint64(rank_bits)
    packed |= (ranks >> (_RANK_BITS - rank_bits)).astype(np.uint64)
    packed <<= np.uint64(place_bits)
    packed |= np.arange(rows, dtype=np.uint64)
    return packed, place_bits, rank_bits, is_hashed


def _repeats(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Returns where a value is that of the row before."""
    found = np.zeros(len(values), np.bool_)
    np.equal(values[1:], values[:-1], out=found[1:])
    return found


def _find_mixed_ranks(repeated: Integers, places: Integers, numbers: Integers | None) -> Integers:
    """Returns which of the rows with the rank of the row before may be of another group than that."""
    if numbers is None:
        return repeated
    differing: Integers = repeated[numbers[places[repeated]] != numbers[places[repeated - 1]]]
    return differing
