"""Scores of genomes against what was released about a group: likelihood ratio, distance, correlations.

Genotypes count the copies of one allele: 0, 1 or 2 (`ploidy=2`), or 0 and 1 for haplotypes (`ploidy=1`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.attacks.membership.score_threshold import ENOUGH, Floats, people
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter


@dataclass(frozen=True, slots=True)
class GenomeScores:
    """Scores genomes against a release by one method.

    Attributes:
        candidates: scores of those judged.
        controls: scores of people outside.
        coordinates: how many released numbers were used.
        products: inner products of standardised controls, for the effective number.
        noise: of a released number, in standard deviations of what is measured on a person.
    """

    candidates: Floats
    controls: Floats
    coordinates: int
    products: Floats
    noise: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackSetting:
    """Holds what the attacker knows in addition to the release.

    Attributes:
        ploidy: copies of a site in a person.
        n: people in the group.
        noise: standard deviation of the noise of a released number.
        rarest: the least frequency of a site's rarer allele that is looked at.
        ancestry: how many main directions of the reference are ignored.
    """

    ploidy: int
    n: int
    noise: float
    rarest: float
    ancestry: int


def _population(start: Floats, ploidy: int) -> Floats:
    """Returns frequencies of the reference; half an added allele of either kind keeps them off 0 and 1."""
    return np.asarray((start.sum(axis=0) + 0.5) / (ploidy * len(start) + 1))


def _usable(frequencies: Floats, population: Floats, rarest: float) -> NDArray[np.bool_]:
    used = np.isfinite(frequencies) & (np.minimum(population, 1 - population) >= rarest)
    if not used.any():
        hint = "Release more sites, or lower rarest."
        raise InvalidParameter("rarest", rarest, "to leave sites with a released frequency", hint)
    return used


def _likelihood_ratio(
    frequencies: Floats, start: Floats, stop: Floats, judged: Floats, setting: AttackSetting
) -> GenomeScores:
    """Returns the weights of alleles, ln(f/p) - ln((1-f)/(1-p)); the part that is equal for all people is left out.

    Of a noisy frequency the attacker takes the best guess, which lies nearer to p the more noise there is.
    """
    population = _population(start, setting.ploidy)
    used = _usable(frequencies, population, setting.rarest)
    p, f = population[used], frequencies[used]
    own = p * (1 - p) / (setting.ploidy * setting.n)  # variance of the group's frequency about p
    low = 1 / (2 * setting.n)
    f = np.clip(p + (f - p) * own / (own + setting.noise**2), low, 1 - low)
    scale = np.sqrt(setting.ploidy * p * (1 - p))
    strangers = _standardize_genotypes(stop[:ENOUGH], used, p, setting.ploidy)
    directions = np.zeros((0, len(p)))
    if setting.ancestry:
        directions = _directions(_standardize_genotypes(start, used, p, setting.ploidy), setting.ancestry)
        strangers = _without(strangers, directions)
    weights = np.zeros(len(used))
    weights[used] = _without((np.log(f / p) - np.log((1 - f) / (1 - p))) * scale, directions) / scale
    noise = setting.noise * setting.ploidy * math.sqrt(np.mean(scale**-2.0))
    return GenomeScores(judged @ weights, stop @ weights, len(p), strangers @ strangers.T, noise)


def _standardize_genotypes(part: Floats, used: NDArray[np.bool_], p: Floats, ploidy: int) -> Floats:
    return np.asarray((part[:, used] - ploidy * p) / np.sqrt(ploidy * p * (1 - p)))


def _directions(standardised: Floats, count: int) -> Floats:
    """Returns the first directions of a principal component analysis, as rows.

    From the small matrix of people by people.
    """
    kept = min(count, len(standardised) - 1)
    if kept < 1:
        return np.zeros((0, standardised.shape[1]))
    centred = standardised - standardised.mean(axis=0)
    _, vectors = np.linalg.eigh(centred @ centred.T)
    rows = vectors[:, -kept:].T @ centred
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def _without(values: Floats, directions: Floats) -> Floats:
    return np.asarray(values - (values @ directions.T) @ directions)


def _distance(frequencies: Floats, start: Floats, stop: Floats, judged: Floats, setting: AttackSetting) -> GenomeScores:
    """Returns T = mean / (sd / sqrt(m)) of |y - p| - |y - f| over m sites."""
    population = _population(start, setting.ploidy)
    used = _usable(frequencies, population, setting.rarest)
    p, f = population[used], frequencies[used]

    def statistic(part: Floats) -> Floats:
        y = part[:, used] / setting.ploidy
        nearer = np.abs(y - p) - np.abs(y - f)
        spread = nearer.std(axis=1)
        return np.asarray(nearer.mean(axis=1) * math.sqrt(len(p)) / np.where(spread > 0, spread, 1.0))

    strangers = _standardize_genotypes(stop[:ENOUGH], used, p, setting.ploidy)
    noise = setting.noise * math.sqrt(np.mean(setting.ploidy / (p * (1 - p))))
    return GenomeScores(statistic(judged), statistic(stop), len(p), strangers @ strangers.T, noise)


def correlations(haplotypes: Any) -> Floats:
    """Returns the correlations between sites, 0 where one does not vary.

    >>> correlations([[0, 0, 1], [1, 1, 1], [0, 0, 1], [1, 1, 1]]).tolist()
    [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    table = people(haplotypes=haplotypes)
    centred = table - table.mean(axis=0)
    length = np.linalg.norm(centred, axis=0)
    unit = centred / np.where(length > 0, length, 1.0)
    found = np.asarray(unit.T @ unit)
    np.fill_diagonal(found, 1.0)
    return np.round(found, 15)


def _correlations(matrix: Floats, start: Floats, stop: Floats, judged: Floats, setting: AttackSetting) -> GenomeScores:
    """Returns T = sum over i < j of (r_group - r_reference)_ij s_i s_j = s'Ws / 2, the diagonal of W being 0."""
    population = _population(start, setting.ploidy)
    used = _usable(np.diag(matrix), population, setting.rarest)
    weights = (matrix - correlations(start))[np.ix_(used, used)]
    np.fill_diagonal(weights, 0.0)

    def signs(part: Floats) -> Floats:
        return 2 * part[:, used] - 1

    def statistic(part: Floats) -> Floats:
        return np.asarray(np.einsum("ki,ij,kj->k", signs(part), weights, signs(part), optimize=True) / 2)

    sites, p = int(used.sum()), population[used]
    z = _standardize_genotypes(stop[:ENOUGH], used, p, setting.ploidy)
    # Inner products of the vectors (z_i z_j) over pairs i < j, from those of the vectors (z_i) and of their squares.
    products = ((z @ z.T) ** 2 - z**2 @ (z**2).T) / 2
    return GenomeScores(statistic(judged), statistic(stop), sites * (sites - 1) // 2, products, setting.noise)


SCORES = {"likelihood_ratio": _likelihood_ratio, "distance": _distance, "correlations": _correlations}
