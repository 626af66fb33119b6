"""Membership in a group from statistics of its genomes: allele frequencies, or correlations between sites.

Genotypes count the copies of one allele: 0, 1 or 2 (`ploidy=2`), or 0 and 1 for haplotypes (`ploidy=1`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np

from discreet import check
from discreet.attacks.attack import beside, compare_trials
from discreet.attacks.membership.genome_scores import SCORES, AttackSetting, GenomeScores
from discreet.attacks.membership.score_threshold import (
    Floats,
    Tracing,
    accuse,
    allowed_rate,
    average_findings,
    bound_of,
    effective_number,
    mask_of,
    people,
    power,
    split,
)
from discreet.attacks.membership.trace import Law, noisy_sums, private_law
from discreet.errors import InvalidParameter
from discreet.noise import Bits, source_of
from discreet.privacy.events import Event
from discreet.report.attack_finding import RAW, Comparison, Trial

Method = Literal["likelihood_ratio", "distance", "correlations"]
NAMES = {
    "likelihood_ratio": "Genome tracing by likelihood ratio",
    "distance": "Genome tracing by distance",
    "correlations": "Genome tracing by correlations",
}


def compare(
    group: Any,
    reference: Any,
    others: Any,
    *,
    epsilons: Iterable[float] = (0.1, 1, 10),
    law: Law = "laplace",
    delta: check.Number = 1e-6,
    method: Method = "likelihood_ratio",
    ploidy: int = 2,
    rounding: Iterable[float] = (0.01, 0.05),
    fewest: int = 5,
    repeats: int = 10,
    rarest: float = 0.0,
    ancestry: int = 0,
    controls: Any = None,
    false_positives: check.Number = 0.05,
    bits: Bits | None = None,
) -> Comparison:
    """Compares tracing from raw, rounded and private frequencies, without small counts, and from a tenth of the sites.

    Formal guarantee of the private releases: a person moves each of d allele counts by at most the ploidy, if added or
    removed and if replaced by another, so that noise for ploidy * d (Laplace, L1) or ploidy * sqrt(d) (Gaussian, L2)
    makes *all* frequencies together epsilon-DP or (epsilon, delta)-DP under both relations; the size of the group is
    public. A group with a member and the same group with a stranger in the member's place are neighbours, so that the
    bound is 1 - f(alpha) of the whole release, the pure one for Laplace noise, the Gaussian curve for Gaussian.

    Args:
        group: genotypes of the people whose frequencies are released, one row each.
        reference: genotypes of people of the same population whom the attacker knows, none of them in the group.
        others: genotypes of people outside, who measure the false positives.
        epsilons: each for all frequencies together.
        law: "laplace" (pure) or "gaussian" (with delta).
        delta: of the Gaussian law.
        method: "likelihood_ratio" or "distance".
        ploidy: copies of each site in a person.
        rounding: steps of rounded releases.
        fewest: sites where the rarer allele was seen less often in the group are withheld.
        repeats: private releases at each epsilon, over which findings are averaged.
        rarest: as for `genome`.
        ancestry: as for `genome`.
        controls: people who set the threshold; None takes half of the reference.
        false_positives: allowed rate.
        bits: source of randomness.
    """
    if method == "correlations":
        raise InvalidParameter("method", method, "to be about frequencies", "Use method='likelihood_ratio'.")
    per_person, source = check.integer(ploidy=ploidy, at_least=1, at_most=2), source_of(bits)
    inside = _genotypes(None, per_person, group=group).astype(np.int64)
    outside = _genotypes(inside.shape[1], per_person, others=others)
    chosen = sorted(float(check.positive(epsilons=epsilon)) for epsilon in epsilons)
    times = check.integer(repeats=repeats, at_least=1)
    candidates = np.concatenate([inside, outside])
    start, stop = split(_genotypes(inside.shape[1], per_person, reference=reference), controls, source)

    def trace_frequencies(frequencies: Floats, noise: float = 0.0, event: Event | None = None) -> Tracing:
        return genome(
            frequencies,
            start,
            candidates,
            members=np.arange(len(candidates)) < len(inside),
            n=len(inside),
            method=method,
            ploidy=per_person,
            noise=noise,
            rarest=rarest,
            ancestry=ancestry,
            controls=stop,
            false_positives=false_positives,
            event=event,
        )

    copies, counts = per_person * len(inside), inside.sum(axis=0)

    def private(epsilon: float) -> Tracing:
        drawn = (noisy_sums(counts, per_person, law, epsilon=epsilon, delta=delta, bits=source) for _ in range(times))
        return average_findings(
            [trace_frequencies(sums.values / copies, sums.noise / copies, sums.event) for sums in drawn]
        )

    releases = _ad_hoc(counts, copies, rounding, fewest)
    trials = [
        Trial(defence=name, epsilon=None, finding=trace_frequencies(released)) for name, released in releases.items()
    ]
    trials += [Trial(defence=f"epsilon {e:g}", epsilon=e, finding=private(e)) for e in chosen]
    alpha = allowed_rate(false_positives)
    return compare_trials(trials, bound=lambda e: bound_of(private_law(law, e, delta, counts.size).event, alpha))


def _ad_hoc(counts: Any, copies: int, rounding: Iterable[float], fewest: int) -> dict[str, Floats]:
    """Releases without a guarantee; what is withheld is NaN."""
    raw = counts / copies
    rare = np.minimum(counts, copies - counts) < check.integer(fewest=fewest, at_least=0)
    steps = [float(check.positive(rounding=step)) for step in rounding]
    return {
        RAW: raw,
        **{f"rounded to {100 * step:g} %": np.round(raw / step) * step for step in steps},
        f"counts below {fewest} withheld": np.where(rare, np.nan, raw),
        "one site in ten": np.where(np.arange(len(raw)) % 10 == 0, raw, np.nan),
    }


@beside(compare)
def genome(
    released: Any,
    reference: Any,
    candidates: Any,
    *,
    n: int | None = None,
    method: Method = "likelihood_ratio",
    ploidy: int = 2,
    members: Any = None,
    noise: float = 0.0,
    rarest: float = 0.0,
    ancestry: int = 0,
    controls: Any = None,
    false_positives: check.Number = 0.05,
    event: Event | None = None,
    bits: Bits | None = None,
) -> Tracing:
    """Accuses candidates of being in a group from frequencies, or correlations, of its alleles.

    "likelihood_ratio" is the best test for independent sites: the sum of g ln(f/p) + (ploidy - g) ln((1-f)/(1-p)), f
    the released frequency held to [1/2n, 1-1/2n], p that of the reference (Sankararaman et al. 2009). "distance" asks
    whether a person is nearer to the group than to the reference (Homer et al. 2008). "correlations" takes a matrix of
    correlations between sites and haplotypes: sum over pairs of (r_group - r_reference) s_i s_j, s = -1 or 1 (Wang et
    al. 2009).

    The predicted power is about the likelihood ratio and about correlations, as in `power`. Sites near each other are
    inherited together and say less than as many independent ones; the prediction counts them by their correlations
    among the controls (`effective`).

    Args:
        released: a frequency for each site (NaN where none was released), or a matrix of correlations.
        reference: genotypes of people of the same population, one row each, none of them in the group.
        candidates: genotypes of those to judge.
        n: how many people are in the group; None if that is unknown: scores then take as many as the reference has, and
            nothing is predicted.
        method: which score.
        ploidy: copies of each site in a person: 2, or 1 for haplotypes.
        members: which candidates are in the group, to keep score: a mask or places; None if that is unknown.
        noise: standard deviation of the noise of a released frequency.
        rarest: sites whose rarer allele is less frequent than this in the reference are left out: chance rules there.
        ancestry: how many main directions in which the reference varies the likelihood ratio ignores; a mixed
            population differs more along them than a member differs from strangers.
        controls: people outside who set the threshold; None takes half of the reference.
        false_positives: how many of those outside may be accused.
        event: the guarantee of the whole release about a person, for the bound.
        bits: source of randomness, for the split of the reference.

    Raises:
        InvalidParameter: if tables do not fit, or there are too few controls for the rate of false positives.

    >>> from discreet.noise import SeededBits
    >>> from discreet.noise.experiment import coins
    >>> bits = SeededBits(1)
    >>> study, reference, others = (coins((2, count, 300), bits=bits).sum(axis=0) for count in (20, 200, 50))
    >>> candidates = np.concatenate([study, others])
    >>> trace_frequencies = genome(study.mean(axis=0) / 2, reference, candidates, n=20, members=range(20), bits=bits)
    >>> trace_frequencies.success, round(trace_frequencies.predicted, 2), trace_frequencies.false_positives
    (1.0, 0.97, 0.0)
    """
    score = SCORES.get(method)
    if score is None:
        raise InvalidParameter("method", method, f"to be one of {', '.join(SCORES)}", "See the documentation of each.")
    setting = AttackSetting(
        ploidy=check.integer(ploidy=ploidy, at_least=1, at_most=1 if method == "correlations" else 2),
        n=len(reference) if n is None else check.integer(n=n, at_least=1),
        noise=float(check.not_negative(noise=noise, floats="exact")),
        rarest=float(check.share(rarest=rarest)),
        ancestry=check.integer(ancestry=ancestry, at_least=0),
    )
    alpha = allowed_rate(false_positives)
    numbers = _check_released(released, method)
    start, stop = split(_genotypes(numbers.shape[-1], setting.ploidy, reference=reference), controls, bits)
    judged = _genotypes(numbers.shape[-1], setting.ploidy, candidates=candidates)
    known = mask_of(members, len(judged))
    found = score(numbers, start, stop, judged, setting)
    effective = effective_number(found.products)
    return accuse(
        found.candidates,
        found.controls,
        members=known,
        false_positives=alpha,
        event=event,
        attack=NAMES[method],
        coordinates=found.coordinates,
        effective=effective,
        predicted=None
        if n is None or method == "distance"
        else _predicted_power(found, setting, len(start), effective, alpha),
    )


def _predicted_power(
    found: GenomeScores, setting: AttackSetting, reference: int, effective: float, alpha: float
) -> float:
    return power(
        found.coordinates, setting.n, noise=found.noise, reference=reference, effective=effective, false_positives=alpha
    )


def _check_released(released: Any, method: Method) -> Floats:
    numbers = np.asarray(released, dtype=np.float64)
    square = numbers.ndim == 2 and numbers.shape[0] == numbers.shape[1]
    if method == "correlations" and not (square and np.isfinite(numbers).all()):
        raise InvalidParameter("released", numbers.shape, "to be a square matrix of correlations", "Sites by sites.")
    if method != "correlations" and not (numbers.ndim == 1 and np.isfinite(numbers).any()):
        raise InvalidParameter("released", numbers.shape, "to be a frequency for each site", "NaN where withheld.")
    return numbers


def _genotypes(width: int | None, ploidy: int, **parameter: Any) -> Floats:
    table = people(width, **parameter)
    if not ((table >= 0) & (table <= ploidy) & (table == np.floor(table))).all():
        name = next(iter(parameter))
        hint = "Pass counts of one allele, and ploidy=1 for haplotypes."
        raise InvalidParameter(name, "genotypes", f"to be whole numbers from 0 to {ploidy}", hint)
    return table
