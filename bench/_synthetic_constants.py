"""The constants of `AllPairs`, chosen on tables that are not measured: census of another year, patients of hospitals.

The rule, written down before it ran: of the shares of columns and the powers of a pair's free numbers those with the
least errors, the sum over tables and epsilons of the logarithms of mean total variation of pairs and of triples; then
the certainty that a pair needs, in the same way. Rare values (3 deviations) are those of MST (McKenna, Miklau, Sheldon
2021). Whatever is found is used on all tables, and Adult and the excerpt of 2019 have no say in it. It was run before
cheap pairs went first; of a 64th and a 1024th of the room for a cheap pair, and no such order, these tables prefer the
first at epsilon 1, by the same measure.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from discreet.synthetic import all_pairs
from discreet.synthetic.independent import cells_weight

EPSILONS = (0.1, 1.0, 10.0)
TABLES = ("earlier", "patients")
SHARES = ("1/10", "1/5", "3/10", "2/5")
POWERS: dict[str, Callable[[int], int]] = {"1/2": all_pairs.pair_weight, "2/3": cells_weight}
CERTAINTIES = (1, 3)


@dataclass(frozen=True)
class Constants:
    """What is chosen."""

    share: str
    power: str
    certain: int = 2

    def set(self) -> None:
        """Changes the module, in a process of its own."""
        all_pairs.COLUMNS = Fraction(self.share)
        all_pairs.pair_weight = POWERS[self.power]


def chosen(errors: Callable[[str, float, Constants], tuple[float, float]]) -> Constants:
    """The constants with the least errors; `errors` measures those of pairs and triples."""

    def loss(constants: Constants) -> float:
        runs = [errors(table, epsilon, constants) for table in TABLES for epsilon in EPSILONS]
        found = math.fsum(math.log(two) + math.log(three) for two, three in runs)
        print(f"{constants}: {found:.3f}", flush=True)
        return found

    first = {one: loss(one) for one in (Constants(share, power) for share in SHARES for power in POWERS)}
    best = min(first, key=lambda one: first[one])
    second = {one: loss(one) for one in (replace(best, certain=certain) for certain in CERTAINTIES)} | {
        best: first[best]
    }
    return min(second, key=lambda one: second[one])
