"""The k-marginal score as SDNist 2 computes it on the NIST excerpts of the American Community Survey.

Every pair of features together with the area (PUMA) is a marginal of three features; the densities of its cells in the
target and in the made-up table differ by an L1 distance of 0 to 2, and the score is 1000 (1 - mean / 2) over all pairs.
Numbers (AGEP, POVPIP, PINCP and the weights) are put into 20 bins by their percentile ranks in the target, the largest
value of POVPIP, 501, and what does not apply (N) into bins of their own; DENSITY has bins of equal logarithms. That is
`sdnist/metrics/kmarginal.py` and `sdnist/report/dataset/binning.py` of usnistgov/SDNist, whose first version (the NIST
PSCR challenge) took a random sample of pairs and the mean over areas of the distance within each.

The published score of AIM at epsilon 1, 976, is of ten demographic features without the area (the report
`aim_e_1_demographic` of SDNist 2.5, by smartnoise-synth): marginals are pairs there. The same report has the scores of
random parts of the target, which tell whether this script computes the same thing: see `PARTS`.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from _synthetic_data import DEMOGRAPHIC, Codes, Rows, density_edges, frame_of, nist_domain, nist_rows
from numpy.typing import NDArray

from discreet import synthetic

RANKED = ("AGEP", "POVPIP", "PINCP", "PWGTP", "WGTP")
BINS = 20
AREA = "PUMA"
PUBLISHED = "demographic features without area"
"""The features that AIM's score was published for."""
PARTS = {0.01: 902, 0.05: 946, 0.1: 969, 0.2: 977, 0.3: 984, 0.5: 989, 0.7: 993, 0.9: 996}
"""Published scores of random parts of the target, of these features."""
FEATURES = {
    "all 24 features": {"leave": ()},
    "21 features": {},
    "demographic features": {"only": DEMOGRAPHIC},
    PUBLISHED: {"only": DEMOGRAPHIC[1:]},
}
"""Sets of features; the last two are the demographic one of the NIST collaborative research cycle."""

Values = NDArray[Any]
Frame = dict[str, list[Any]]


def kmarginal_score(target: Frame, made: Frame) -> float:
    """The score of a table, 0 to 1000; without the area among the features, marginals are pairs."""
    coded = [(name, *_coded(name, target[name], made[name])) for name in target if name != AREA]
    area = (np.zeros(_rows(target), int), np.zeros(_rows(made), int))
    if AREA in target:
        area = _coded(AREA, target[AREA], made[AREA])
    found = []
    for (_, *first), (_, *second) in combinations(coded, 2):
        sizes = [int(max(part.max() for part in parts)) + 1 for parts in (area, first, second)]
        tables = [
            np.bincount(np.ravel_multi_index((area[i], first[i], second[i]), sizes), minlength=int(np.prod(sizes)))
            for i in (0, 1)
        ]
        found.append(np.abs(tables[0] / tables[0].sum() - tables[1] / tables[1].sum()).sum())
    return 1000 * (1 - float(np.mean(found)) / 2)


def _rows(frame: Frame) -> int:
    return len(next(iter(frame.values())))


def _coded(name: str, target: list[Any], made: list[Any]) -> tuple[Codes, Codes]:
    """Codes of both tables, from 0."""
    if name in RANKED:
        edges = _rank_edges(name, [value for value in target if value is not None])
        return _binned(name, target, edges), _binned(name, made, edges)
    if name == "DENSITY":
        edges = np.array(density_edges(52_864))[1:-1]
        return np.searchsorted(edges, np.array(target)), np.searchsorted(edges, np.array(made))
    known = {value: code for code, value in enumerate(dict.fromkeys([*target, *made]))}
    return np.array([known[value] for value in target]), np.array([known[value] for value in made])


def _rank_edges(name: str, values: list[float]) -> Values:
    """The largest value of each bin but the last, by mean percentile ranks, as pandas' rank(pct=True) has them."""
    whole = np.floor(np.array([value for value in values if not (name == "POVPIP" and value >= 501)]))
    distinct, counts = np.unique(whole, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2) / len(whole)
    bins = np.minimum((BINS * ranks).astype(int), BINS - 1)
    return np.array([distinct[bins == number].max() for number in np.unique(bins)])[:-1]


def _binned(name: str, values: list[Any], edges: Values) -> Codes:
    """Bins from 2 on; 0 is what does not apply, 1 the largest POVPIP."""
    numbers = np.array([np.nan if value is None else float(value) for value in values])
    codes = np.searchsorted(edges, np.floor(np.nan_to_num(numbers))) + 2
    if name == "POVPIP":
        codes = np.where(numbers >= 501, 1, codes)
    return np.where(np.isnan(numbers), 0, codes)


def kmarginal_run(generator: str, epsilon: float, seed: int, features: str, *, delta: float) -> float:
    """The score of one generator, or of a bootstrap, learnt from all rows of the national excerpt of 2019."""
    rows: Rows | None = nist_rows()
    assert rows is not None
    domain = nist_domain(**FEATURES[features])
    frame = frame_of(rows, domain)
    random = np.random.default_rng(seed)
    if generator == "bootstrap":
        return kmarginal_score(frame, _taken(frame, random.integers(0, len(rows), len(rows)).tolist()))
    if generator == "part":  # of which epsilon is the share
        return kmarginal_score(frame, _taken(frame, random.permutation(len(rows))[: int(epsilon * len(rows))].tolist()))
    made = getattr(synthetic, generator)(epsilon=epsilon, delta=delta, random_state=seed)
    model = made.fit(frame, domain=domain)
    fake = model.sample(len(rows), random_state=seed)
    return kmarginal_score(_filled(frame), _filled(fake))


def _taken(frame: Frame, places: list[int]) -> Frame:
    return {name: [values[place] for place in places] for name, values in frame.items()}


def _filled(frame: Any) -> Frame:
    """Texts and numbers, None for what does not apply."""
    return {name: ["N" if value is None and name not in RANKED else value for value in frame[name]] for name in frame}
