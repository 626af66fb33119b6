"""What every mechanism promises, whichever it is."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet import mechanisms
from discreet.errors import InvalidParameter, InvalidValue
from discreet.exact import exact_value
from discreet.mechanisms import Mechanism
from discreet.noise import SeededBits
from discreet.privacy import Estimate, events
from tests.cases import try_all
from tests.conformance.nothing import NoBits
from tests.conformance.specimens import SPECIMENS, Specimen

each = pytest.mark.parametrize("specimen", SPECIMENS, ids=lambda specimen: specimen.name)
NUMERIC = [specimen for specimen in SPECIMENS if specimen.numbers]
each_number = pytest.mark.parametrize("specimen", NUMERIC, ids=lambda specimen: specimen.name)


def exported() -> list[type[Mechanism]]:
    public = [getattr(mechanisms, name) for name in mechanisms.__all__]
    return [kind for kind in public if inspect.isclass(kind) and issubclass(kind, Mechanism) and kind is not Mechanism]


def test_every_exported_mechanism_has_a_specimen() -> None:
    built = {type(specimen.mechanism()) for specimen in SPECIMENS}
    assert set(exported()) == built


def release(specimen: Specimen, seed: int, value: Any = None) -> Any:
    given = specimen.value if value is None else value
    return specimen.mechanism().release(given, *specimen.arguments, bits=SeededBits(seed))


@each
def test_the_event_is_frozen_serialisable_and_the_same_every_time(specimen: Specimen) -> None:
    event = specimen.mechanism().event
    assert events.from_json(events.to_json(event)) == event
    assert specimen.mechanism().event == event
    assert hash(event) == hash(specimen.mechanism().event)


@pytest.mark.sampled(4)
@each
def test_equal_bits_give_equal_releases_and_others_do_not(specimen: Specimen) -> None:
    first, again = (repr([release(specimen, seed) for seed in range(20)]) for _ in range(2))
    assert first == again
    assert first != repr([release(specimen, seed) for seed in range(20, 40)])


@each
def test_parameters_are_frozen(specimen: Specimen) -> None:
    mechanism: Any = specimen.mechanism()
    for field in dataclasses.fields(mechanism):  # fails for what is no dataclass
        with pytest.raises(AttributeError):
            setattr(mechanism, field.name, getattr(mechanism, field.name))
    assert specimen.mechanism() == mechanism
    assert hash(specimen.mechanism()) == hash(mechanism)


@each
def test_parameters_are_by_keyword_only(specimen: Specimen) -> None:
    kinds = {parameter.kind for parameter in inspect.signature(specimen.build).parameters.values()}
    assert kinds == {inspect.Parameter.KEYWORD_ONLY}


@each
def test_bad_parameters_are_refused_by_name(specimen: Specimen) -> None:
    assert specimen.spoiled()
    for name, value in specimen.spoiled():
        with pytest.raises(InvalidParameter) as refused:
            specimen.mechanism(**{name: value})
        assert refused.value.name == name, (name, value)
        assert refused.value.condition


@each
def test_bad_values_are_refused_before_anything_is_drawn(specimen: Specimen) -> None:
    mechanism = specimen.mechanism()

    def check(value: Any) -> None:
        with pytest.raises(InvalidValue) as refused:
            mechanism.release(value, *specimen.arguments, bits=NoBits())
        assert refused.value.condition
        assert refused.value.hint

    bad: list[Any] = [float("nan"), float("inf"), True, None, "7", 1j, [1, [2]]]
    try_all([*bad, np.array([1.0, math.nan]), np.array([True])], check)


@each_number
def test_a_seeded_estimate_says_that_it_is_not_private(specimen: Specimen) -> None:
    mechanism: Any = specimen.mechanism()
    seeded: Estimate = mechanism.estimate(specimen.value, *specimen.arguments, bits=SeededBits(1))
    assert not seeded.private
    assert seeded.event == mechanism.event
    assert seeded.confidence == Fraction(19, 20)
    assert np.all(np.asarray(seeded.low) <= seeded.value)
    assert np.all(np.asarray(seeded.high) >= seeded.value)
    secure: Estimate = mechanism.estimate(specimen.value, *specimen.arguments)
    assert secure.private


@each_number
def test_shapes_are_kept(specimen: Specimen) -> None:
    released = release(specimen, 1)
    assert np.shape(released) == np.shape(specimen.value)
    if np.ndim(specimen.value) == 0:
        assert type(released) in (int, float)
    if specimen.array is None:
        return
    for array in (specimen.array, specimen.array.tolist(), specimen.array.T, specimen.array.reshape(-1)):
        assert release(specimen, 1, value=array).shape == np.shape(array)


@pytest.mark.sampled(4)
@each_number
def test_rt_001_outputs_lie_on_the_declared_grid_whatever_the_value(specimen: Specimen) -> None:
    mechanism: Any = specimen.mechanism()
    values = [specimen.value] if specimen.array is None else [specimen.value, specimen.array]
    for value in values:
        for seed in range(30):
            entries = np.asarray(release(specimen, seed, value=value)).ravel().tolist()
            assert all((exact_value(entry) / mechanism.grid.step).denominator == 1 for entry in entries)


@each_number
def test_intervals_contain_the_release_and_grow_with_the_confidence(specimen: Specimen) -> None:
    mechanism, released = specimen.mechanism(), release(specimen, 3)
    widths = []
    for confidence in ("0.01", 0.5, 0.9, 0.95, 0.999, 1 - Fraction(1, 10**12)):
        low, high = mechanism.interval(released, confidence=confidence)
        assert np.all(np.asarray(low) <= released)
        assert np.all(np.asarray(high) >= released)
        widths.append(np.max(np.asarray(high) - np.asarray(low)))
    assert widths == sorted(widths)
    assert widths[0] < widths[-1]


@each_number
def test_more_budget_never_widens_an_interval(specimen: Specimen) -> None:
    assert specimen.more
    released = release(specimen, 3)
    for confidence in (0.5, 0.95, 0.999):
        wide = np.max(specimen.mechanism().interval(released, confidence=confidence).width)
        narrow = np.max(specimen.mechanism(**specimen.more).interval(released, confidence=confidence).width)
        assert narrow <= wide
    assert narrow < wide


@each_number
def test_a_confidence_is_a_probability(specimen: Specimen) -> None:
    mechanism: Any = specimen.mechanism()

    def check(confidence: Any) -> None:
        with pytest.raises(InvalidParameter) as refused:
            mechanism.interval(specimen.value, confidence=confidence)
        assert refused.value.name == "confidence"
        with pytest.raises(InvalidParameter):
            mechanism.estimate(specimen.value, *specimen.arguments, confidence=confidence, bits=NoBits())

    try_all([0, 1, -1, 2, True, math.nan, None, "a"], check)


COVERED = 400  # releases
MISSED = 0.05 + 6 * math.sqrt(0.05 * 0.95 / COVERED)  # six deviations above 5 %: a false alarm in 10^9


@pytest.mark.sampled(3)
@each_number
def test_intervals_cover(specimen: Specimen) -> None:
    mechanism: Any = specimen.mechanism()
    source = SeededBits(int.from_bytes(hashlib.sha256(specimen.name.encode()).digest()))
    outside = 0.0
    for _ in range(COVERED):
        estimate = mechanism.estimate(specimen.value, *specimen.arguments, bits=source)
        outside += 1 - np.mean((estimate.low <= np.asarray(specimen.value)) & (estimate.high >= specimen.value))
    assert outside / COVERED < MISSED
