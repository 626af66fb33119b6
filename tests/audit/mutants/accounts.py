"""Mistakes in accounting: what several releases cost together, and which people are in a sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from discreet import accounting, audit
from discreet.accounting import composition
from discreet.mechanisms import Laplace, PartitionSelection
from discreet.noise import Bits, SeededBits, bernoulli, uniform_below
from discreet.privacy import ApproxDP, events
from tests.audit.mutants import accounts as here
from tests.audit.mutants.registry import Mutant, catcher, setting

SURE = 1 - 1e-6
RATE = Fraction(1, 10)
COUNTED = Laplace(epsilon=3, sensitivity=1)


def drawn(people: list[int], bits: Bits) -> list[int]:
    """Each person is in the sample with the same probability, independently: Poisson sampling."""
    return [person for person in people if bernoulli(RATE, bits=bits)]


def with_replacement(people: list[int], bits: Bits) -> list[int]:
    """As many draws as there are people, over and over."""
    return [people[uniform_below(len(people), bits=bits)] for _ in people]


def sampled_count(bits: Bits) -> Callable[[list[int]], int]:
    """A noisy count of the ones in a sample, each person once."""
    return lambda people: int(COUNTED.release(min(1, sum(here.drawn(people, bits))), bits=bits))


@catcher("audit.exact")
def repeated_releases_cost_their_sum() -> None:
    mechanism = Laplace(epsilon=1, sensitivity=1)
    assert audit.exact(mechanism, [0] * 3, [1] * 3, event=events.Repeated(mechanism.event, 3)).passed
    one, two = (Laplace(epsilon=e, sensitivity=1).event for e in (1, 2))
    assert audit.exact(mechanism, [0] * 3, [1] * 3, event=events.Composed([one, two])).passed


@catcher("audit.exact")
def deltas_add_up() -> None:
    mechanism = PartitionSelection(epsilon=1, delta=1e-2)
    total = accounting.delta(events.Repeated(mechanism.event, 2), 2)
    assert audit.exact(mechanism, [0, 0], [1, 1], epsilon=2, delta=total).passed


@catcher("audit.distinguish")
def a_sample_hides_its_members() -> None:
    event = events.PoissonSampled(RATE, COUNTED.event)
    count = sampled_count(SeededBits(31))
    assert audit.distinguish(count, [0] * 9, [0] * 9 + [1], runs=1200, confidence=SURE, event=event).passed


def _once(patch: Any) -> None:
    right = composition._collect

    def collect(event: events.Event, count: int, total: Counter[events.Event], calibrated: bool) -> None:
        right(event.event if isinstance(event, events.Repeated) else event, count, total, calibrated)

    patch.setattr(composition, "_collect", collect)


def _without_delta(released: Any) -> ApproxDP:
    total = ApproxDP(0, 0)
    for event, count in released.items():
        total = ApproxDP(total.epsilon + count * composition.basic(event).epsilon, composition.basic(event).delta)
    return total


def _largest(released: Any) -> ApproxDP:
    found: list[ApproxDP] = [composition.basic(event) * count for event, count in released.items()]
    return max(found, key=lambda loss: loss.epsilon)


MUTANTS = [
    Mutant(
        "repetition counted once",
        "A release that is made three times is charged once.",
        _once,
        repeated_releases_cost_their_sum,
    ),
    Mutant(
        "the largest instead of the sum",
        "Only the most expensive of several releases is charged, as if each were about different people.",
        setting(composition, "compose", _largest),
        repeated_releases_cost_their_sum,
    ),
    Mutant(
        "delta forgotten in composition",
        "Epsilons are added up, but deltas are not.",
        setting(composition, "compose", _without_delta),
        deltas_add_up,
    ),
    Mutant(
        "sampling with replacement",
        "Amplification is claimed for a sample that contains each person six times as often as declared.",
        setting(here, "drawn", with_replacement),
        a_sample_hides_its_members,
    ),
]
