"""What every statistical test of the suite agrees on: laws of the auditor, and how sure a test has to be."""

from __future__ import annotations

from fractions import Fraction

from discreet.audit.mechanisms.goodness_of_fit import (
    BernoulliLaw,
    CategoricalLaw,
    DiscreteGaussianLaw,
    DiscreteLaplaceLaw,
    Floats,
    GeometricLaw,
    Law,
    UniformLaw,
    p_value,
    share_p_value,
)

FALSE_ALARM = 1e-9  # per test; seeds are fixed, so a passing test passes for ever
WRONG = (Fraction(13, 10), Fraction(7, 10))  # factors of the scale that every test must tell from the truth

__all__ = [
    "FALSE_ALARM",
    "WRONG",
    "BernoulliLaw",
    "CategoricalLaw",
    "DiscreteGaussianLaw",
    "DiscreteLaplaceLaw",
    "Floats",
    "GeometricLaw",
    "Law",
    "UniformLaw",
    "p_value",
    "share_p_value",
]
