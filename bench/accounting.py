"""What accounting costs and how tight it is beside dp-accounting and prv-accountant, CPU time, all measured in this
run.

The task is a training run: Gaussian noise of multiplier 1 on Poisson samples of one percent, 1000 steps, delta = 1e-5.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from _timing import Row, cpu, show
from rich.console import Console
from rich.table import Table

from discreet import accounting
from discreet.accounting import rdp
from discreet.errors import UnsupportedEvent
from discreet.privacy import events

RATE, SIGMA, STEPS, DELTA = 0.01, 1.0, 1000, 1e-5
MILLION = 10**6

Measured = tuple[str, str, float] | None


def optional(name: str) -> Any:
    """A peer's module, or None."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def training(steps: int) -> events.Repeated:
    return events.Repeated(events.PoissonSampled(str(RATE), events.Gaussian(SIGMA)), steps)


def afresh(work: Callable[[], float]) -> Callable[[], float]:
    """Forgets stored curves first, so that every run pays for all it needs."""

    def run() -> float:
        rdp._sampled_curve.cache_clear()
        return work()

    return run


def composed(count: int) -> float:
    """CPU seconds of the PLD of so many Gaussian releases."""
    released = events.Repeated(events.Gaussian(50), count)
    return cpu(lambda: accounting.epsilon(released, 1e-6, method="PLD"))


def peer_composed(count: int) -> float | None:
    """The same by dp-accounting, on a grid as fine as ours is for a thousand."""
    peer = optional("dp_accounting.pld.privacy_loss_distribution")
    if peer is None:
        return None

    def work() -> float:
        one = peer.from_gaussian_mechanism(50, value_discretization_interval=1e-4)
        return float(one.self_compose(count).get_epsilon_for_delta(1e-6))

    return cpu(work)


def measured(name: str, work: Callable[[], float | str]) -> tuple[str, str, float]:
    found = work()
    return name, found if isinstance(found, str) else f"{found:.6f}", cpu(work)


def peer_pld(grid: float) -> Measured:
    peer = optional("dp_accounting.pld.privacy_loss_distribution")
    if peer is None:
        return None

    def work() -> float:
        one = peer.from_gaussian_mechanism(SIGMA, sampling_prob=RATE, value_discretization_interval=grid)
        return float(one.self_compose(STEPS).get_epsilon_for_delta(DELTA))

    return measured(f"dp-accounting PLD, grid {grid:g}", work)


def peer_rdp() -> Measured:
    peer, rdp_peer = optional("dp_accounting"), optional("dp_accounting.rdp")
    if peer is None or rdp_peer is None:
        return None

    def work() -> float:
        step = peer.PoissonSampledDpEvent(RATE, peer.GaussianDpEvent(SIGMA))
        return float(rdp_peer.RdpAccountant().compose(step, STEPS).get_epsilon(DELTA))

    return measured("dp-accounting RDP", work)


def peer_prv() -> Measured:
    peer = optional("prv_accountant.dpsgd")
    if peer is None:
        return None

    def work() -> str:
        one = peer.DPSGDAccountant(
            noise_multiplier=SIGMA, sampling_probability=RATE, eps_error=0.01, delta_error=1e-9, max_steps=STEPS
        )
        low, _, high = one.compute_epsilon(delta=DELTA, num_steps=STEPS)
        return f"[{low:.4f}, {high:.4f}]"

    return measured("prv-accountant, error 0.01", work)


def method_table() -> None:
    """Many pure releases under every method, and the same number of Laplace releases, whose law is known."""
    table = Table(title="epsilon of k pure releases at delta = 1e-6", title_justify="left")
    names = [name for name in accounting.methods() if name != "GDP"]
    for heading in ("k", "each", *names, "Laplace noise"):
        table.add_column(heading, justify="right")
    for count, each in ((100, "0.1"), (10, "0.1"), (50, "0.5"), (365, "0.05")):
        row = [_epsilon(events.Repeated(events.Pure(each), count), name) for name in names]
        row.append(_epsilon(events.Repeated(events.Laplace(1 / Fraction(each)), count), None))
        table.add_row(str(count), each, *row)
    Console(width=110).print(table)


def _epsilon(event: events.Event, method: str | None) -> str:
    try:
        return f"{accounting.epsilon(event, 1e-6, method=method):.6f}"
    except UnsupportedEvent:
        return "no price"


def accuracy_table(results: list[tuple[str, Measured]]) -> None:
    table = Table(title=f"Training: q={RATE}, sigma={SIGMA:g}, {STEPS} steps, delta={DELTA:g}", title_justify="left")
    for heading in ("accountant", "epsilon", "CPU ms"):
        table.add_column(heading, justify="left" if heading == "accountant" else "right")
    for name, result in results:
        epsilon, seconds = ("not installed", math.nan) if result is None else result[1:]
        table.add_row(name, epsilon, "" if math.isnan(seconds) else f"{seconds * 1e3:.1f}")
    Console(width=110).print(table)


def main() -> None:
    ours = measured("Discreet, best of all", afresh(lambda: accounting.epsilon(training(STEPS), DELTA)))
    alone = measured("Discreet, PLD alone", lambda: accounting.epsilon(training(STEPS), DELTA, method="PLD"))
    fine, coarse = peer_pld(1e-4), peer_pld(1e-3)
    results: list[tuple[str, Measured]] = [(ours[0], ours), (alone[0], alone), ("dp-accounting PLD, grid 0.0001", fine)]
    results += [("dp-accounting PLD, grid 0.001", coarse), ("dp-accounting RDP", peer_rdp())]
    results += [("prv-accountant, error 0.01", peer_prv())]
    accuracy_table(results)
    many = cpu(afresh(lambda: accounting.epsilon(training(MILLION), DELTA)))
    rows = [
        Row("epsilon, against dp-accounting PLD, grid 1e-4", ours[2], fine and fine[2], Fraction(1, 5)),
        Row("epsilon, against dp-accounting PLD, grid 1e-3", ours[2], coarse and coarse[2], None),
        Row("10^6 steps, against our 10^3", many, ours[2], Fraction(5)),
        *(Row(f"PLD of {count:,} Gaussians", composed(count), peer_composed(count), None) for count in (1000, 100_000)),
    ]
    show("CPU time", rows, unit="ms", per=1e-3)
    method_table()


if __name__ == "__main__":
    main()
