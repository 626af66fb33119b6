"""Every mechanism of the project is audited at its declared epsilon: by runs, and exactly where its law is written."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from typing import Any

import pytest

from discreet import audit
from discreet.audit.mechanisms.epsilon_bound import claim_of
from discreet.audit.mechanisms.exact_loss import LAWS
from discreet.audit.mechanisms.goodness_of_fit import DiscreteGaussianLaw as GaussianLaw
from discreet.audit.mechanisms.goodness_of_fit import DiscreteLaplaceLaw as LaplaceLaw
from discreet.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Mechanism,
    PartitionSelection,
    RandomizedResponse,
    SparseVector,
)
from discreet.mechanisms.private_selection import Selection
from discreet.noise import SeededBits
from discreet.privacy import Neighbours as Relation
from tests.audit.neighbouring import neighbours, runner
from tests.conformance.specimens import SPECIMENS, Specimen
from tests.conformance.test_mechanisms import exported
from tests.statistical.laws import FALSE_ALARM, WRONG, CategoricalLaw

NAMED = [pytest.param(specimen, id=f"{place}-{specimen.name}") for place, specimen in enumerate(SPECIMENS)]


def built(named: Any) -> Mechanism:
    """The mechanism of a named specimen."""
    specimen: Specimen = named.values[0]
    return specimen.mechanism()


EXACT = [named for named in NAMED if isinstance(built(named), (*LAWS, Gaussian))]
LOOSE = (SparseVector, PartitionSelection)  # no pair of neighbours comes near: test_exact has pairs for them
LATTICE = (Laplace, DiscreteLaplace, DiscreteGaussian)
CONFIDENCE = 1 - Fraction(1, 1000 * len(SPECIMENS))  # one false alarm in a thousand suites, if seeds were not fixed
FAST = (Laplace, DiscreteLaplace, RandomizedResponse)


def audited(specimen: Specimen, runs: int) -> audit.Audit:
    mechanism = specimen.mechanism()
    pair = neighbours(mechanism)
    seed = int.from_bytes(hashlib.sha256(specimen.name.encode()).digest(), "big")
    return audit.distinguish(
        runner(mechanism, SeededBits(seed)),
        pair.a,
        pair.b,
        runs=runs,
        confidence=CONFIDENCE,
        event=mechanism.event,
        delta=pair.delta,
        neighbours=Relation(pair.relation),
    )


def test_every_mechanism_is_audited() -> None:
    """A new mechanism joins by an entry in `neighbouring`; without one this fails."""
    for kind in exported():
        assert neighbours.dispatch(kind) is not neighbours.dispatch(object), kind


@pytest.mark.sampled(3)
@pytest.mark.parametrize("specimen", NAMED)
def test_a_few_runs_refute_no_claim(specimen: Specimen) -> None:
    runs = 800 if isinstance(specimen.mechanism(), FAST) else 100
    assert audited(specimen, runs).passed


@pytest.mark.slow
@pytest.mark.parametrize("specimen", NAMED)
def test_many_runs_refute_no_claim(specimen: Specimen) -> None:
    found = audited(specimen, neighbours(specimen.mechanism()).speed)
    assert found.passed, found.summary()
    assert found.most > 1.5 * found.epsilon_claimed or found.mu_claimed is not None, "too few runs to refute anything"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("specimen", EXACT)
def test_exact_laws_keep_the_claim(specimen: Specimen) -> None:
    mechanism = specimen.mechanism()
    pair = neighbours(mechanism)
    found = audit.exact(mechanism, pair.a, pair.b, delta=pair.delta, neighbours=pair.relation)
    assert found.passed, found.summary()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("specimen", [one for one in EXACT if not isinstance(built(one), LOOSE)])
def test_exact_laws_would_not_keep_a_third_of_the_claim(specimen: Specimen) -> None:
    """The neighbours are hard ones: the audit has something to refute."""
    mechanism = specimen.mechanism()
    pair = neighbours(mechanism)
    claim = claim_of(mechanism, epsilon=None, delta=pair.delta, event=None, neighbours=Relation(pair.relation))
    third = audit.exact(mechanism, pair.a, pair.b, epsilon=claim.epsilon / 3, delta=claim.delta)
    assert not third.passed, third.summary()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("specimen", [one for one in NAMED if isinstance(built(one), LATTICE)])
def test_noise_follows_the_law_that_was_priced(specimen: Specimen, bits: SeededBits) -> None:
    mechanism: Any = specimen.mechanism()
    step, event = mechanism.grid.step, mechanism.event
    draws = [int(Fraction(mechanism.release(0, bits=bits)) / step) for _ in range(3000)]
    kind, scale = (GaussianLaw, event.sigma) if isinstance(mechanism, DiscreteGaussian) else (LaplaceLaw, event.scale)
    assert audit.fits(draws, kind(scale), level=FALSE_ALARM).passed
    for wrong in WRONG:
        assert not audit.fits(draws, kind(wrong * scale), level=FALSE_ALARM).passed


@pytest.mark.ci
@pytest.mark.sampled(3)
@pytest.mark.parametrize("specimen", [one for one in NAMED if isinstance(built(one), Selection)])
def test_choices_follow_the_law_that_was_written_out(specimen: Specimen, bits: SeededBits) -> None:
    """The exact law of the auditor against the code; that of a claim with four times the epsilon is refused."""
    mechanism: Any = specimen.mechanism()
    scores = neighbours(mechanism).a
    draws = [mechanism.release(scores, bits=bits) for _ in range(3000)]
    sharper: Any = specimen.mechanism(epsilon=4 * mechanism.epsilon)
    laws = [
        CategoricalLaw(tuple(float(one.p.high) for one in LAWS[type(each)](each, scores, scores)(40).listed))
        for each in (mechanism, sharper)
    ]
    assert audit.fits(draws, laws[0], level=FALSE_ALARM).passed
    assert not audit.fits(draws, laws[1], level=FALSE_ALARM).passed
