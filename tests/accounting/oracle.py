"""dp-accounting's privacy-loss distributions as a bracket: its pessimistic and its optimistic estimate.

Its Renyi accountant is no oracle here: randomized response composed n times is charged once there (0.6.0).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache, reduce
from typing import Any

from dp_accounting.pld import privacy_loss_distribution as peer

from discreet.privacy import events
from discreet.privacy.events import Event


def distribution(event: Event, *, pessimistic: bool, grid: float) -> Any:
    """One event as the peer sees it."""
    options: dict[str, Any] = {"value_discretization_interval": grid, "pessimistic_estimate": pessimistic}
    if not pessimistic:
        options["use_connect_dots"] = False  # connecting the dots has no optimistic form
    inner, rate = (event.event, float(event.probability)) if isinstance(event, events.PoissonSampled) else (event, 1.0)
    if isinstance(inner, events.Gaussian):
        return peer.from_gaussian_mechanism(float(inner.noise_multiplier), sampling_prob=rate, **options)
    if isinstance(inner, events.Laplace):
        return peer.from_laplace_mechanism(float(inner.noise_multiplier), sampling_prob=rate, **options)
    raise NotImplementedError(event)


def composed(listed: Iterable[tuple[Event, int]], *, pessimistic: bool, grid: float = 1e-3) -> Any:
    """All of them together."""
    return _composed(tuple(listed), pessimistic, grid)


@lru_cache(maxsize=4)
def _composed(listed: tuple[tuple[Event, int], ...], pessimistic: bool, grid: float) -> Any:
    parts = [
        distribution(event, pessimistic=pessimistic, grid=grid).self_compose(count, tail_mass_truncation=1e-18)
        for event, count in listed
    ]
    return reduce(lambda one, other: one.compose(other, tail_mass_truncation=1e-18), parts)
