"""Whether one person's coming and going leaves everybody else's part of every exact number as it was.

Rows that a question counts are made person by person, and contributions are bounded person by person. So an exact
number, but for those of different values, is a sum of one number for each person, and what neighbours have without
the person in whom they differ must be equal to the bit: sharper than any sensitivity, which a small leak may not reach.
"""

from __future__ import annotations

from discreet.plan.model.readings import Groups, Reading

Part = tuple[object, int]
"""A group, and a statistic or a cell of it."""


def without_own(reading: Reading, whole: Groups, own: Groups) -> dict[Part, int]:
    """What is left of each number without one person's part, zeros left out."""
    everything, part = _numbers(reading, whole), _numbers(reading, own)
    left = {place: everything.get(place, 0) - part.get(place, 0) for place in {**everything, **part}}
    return {place: number for place, number in left.items() if number}


def _numbers(reading: Reading, groups: Groups) -> dict[Part, int]:
    if reading.split is not None:
        halves = {key: len(numbers) // 2 for key, numbers in groups.items()}
        return {(key, groups[key][i]): groups[key][half + i] for key, half in halves.items() for i in range(half)}
    added = [place for place, statistic in enumerate(reading.statistics) if statistic.kind != "distinct"]
    return {(key, place): numbers[place] for key, numbers in groups.items() for place in added}
