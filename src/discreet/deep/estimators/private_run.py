"""One private run of a network on rows: what it costs before any row is seen, and the weights after it.

*Several rows of a person.* Let each of k rows of a person enter a batch by a coin of probability q, and move the sum by
at most C. With probability (1 - q)^k none enters; else the sum moves by a vector of norm at most k C, whichever rows
entered. Write the law of a step as the mixture over which rows entered, given that some did: the hockey-stick
divergence is jointly convex, so the step is dominated by that of one row which enters with probability
q' = 1 - (1 - q)^k and moves the sum by k C. Its event is a Gaussian of k times smaller noise multiplier on a Poisson
sample of probability q'.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from discreet import accounting, check
from discreet.deep.clipping import ClipRule, clip_rule
from discreet.deep.estimators.networks import own_numbers, public_state, weights_of
from discreet.deep.private_trainer import Trainer
from discreet.errors import InternalError, InvalidParameter
from discreet.noise import Bits, uniform_below
from discreet.privacy.events import Event, Gaussian, PoissonSampled, Repeated

MOST_STEPS = 10**6
MOST_ROWS = 1000  # of one person
_FINE = 1 << 60  # parts of a probability
_SIZE = (
    "Pass a public number of rows, or a public guess of it: each row enters a batch with probability batch_size / "
    "size. The real number of rows is private, and may not be read for this."
)

OPTIMIZERS: dict[str, tuple[Callable[..., Any], float]] = {
    "sgd": (torch.optim.SGD, 0.5),
    "momentum": (lambda parameters, lr: torch.optim.SGD(parameters, lr=lr, momentum=0.9), 0.1),
    "adam": (torch.optim.Adam, 0.01),
}
"""What makes an optimizer, and the learning rate it has unless one is given."""

Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class TrainingPrice:
    """Holds what a run releases about people, what its trainer says about rows, and the trainer's noise multiplier."""

    event: Event
    planned: Event
    noise: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class RunParameters:
    """Holds the public parameters of a run; equal ones have equal prices.

    Raises:
        InvalidParameter: outside their domains.
    """

    epsilon: Fraction
    delta: Fraction
    size: int
    batch_size: int
    epochs: Fraction
    clip: ClipRule
    physical_batch: int
    optimizer: str
    learning_rate: float
    rows_per_unit: int

    @classmethod
    def of(
        cls, *, epsilon: Any, delta: Any, size: Any, epochs: Any, batch_size: Any, clip: Any, **rest: Any
    ) -> RunParameters:
        """Returns the run of an estimator's parameters."""
        if size is None:
            raise InvalidParameter("size", None, "to be given", _SIZE)
        name = rest["optimizer"]
        if not isinstance(name, str) or name not in OPTIMIZERS:
            raise InvalidParameter("optimizer", name, f"to be one of {', '.join(OPTIMIZERS)}")
        rate = OPTIMIZERS[name][1] if rest["learning_rate"] is None else rest["learning_rate"]
        public = check.integer(size=size, at_least=1, at_most=10**12)
        expected = check.integer(batch_size=batch_size, at_least=1, at_most=public)
        times = check.positive(epochs=epochs)
        if times * public > MOST_STEPS * expected:
            raise InvalidParameter("epochs", epochs, f"to make at most {MOST_STEPS} steps", "Pass larger batches.")
        return cls(
            epsilon=check.positive(epsilon=epsilon),
            delta=check.probability(delta=delta),
            size=public,
            batch_size=expected,
            epochs=times,
            clip=clip_rule(clip),
            physical_batch=check.integer(physical_batch=rest["physical_batch"], at_least=1),
            optimizer=name,
            learning_rate=float(check.positive(learning_rate=rate)),
            rows_per_unit=check.integer(rows_per_unit=rest["rows_per_unit"], at_least=1, at_most=MOST_ROWS),
        )

    @property
    def price(self) -> TrainingPrice:
        """Returns what the run releases, whatever the network and the rows."""
        return _price(self)

    def train(
        self,
        build: Callable[[], nn.Module],
        loss: Loss,
        rows: Tensor,
        targets: Tensor,
        *,
        examples: list[Any],
        bits: Bits,
        most_steps: int | None = None,
    ) -> dict[str, Any]:
        """Returns the weights of a trained network, arrays by name; what no noisy step has changed is as it was.

        Random numbers of PyTorch, for first weights and dropout, have a seed that is drawn here, and others' are left
        alone; none of them is part of the guarantee.

        Args:
            build: makes the network.
            loss: gives one number for each example.
            rows: the examples, and `targets` theirs.
            targets: of the examples.
            examples: public ones, on which the network is checked first.
            bits: the source of randomness.
            most_steps: after which a rehearsal ends; None for all.

        Raises:
            InvalidParameter: if the network is refused; no row was read then.
        """
        price = self.price
        with own_numbers(uniform_below(1 << 62, bits=bits)):
            network = build().float().train()
            before = public_state(network)
            trainer = self._trainer(network, TensorDataset(rows, targets), price.noise, examples, bits)
            with trainer:
                if trainer.planned_event != price.planned:
                    raise InternalError("A run would release something else than it planned.")
                for inputs, wanted in trainer:
                    if most_steps is not None and trainer.taken > most_steps:
                        break
                    trainer.step(loss(network(inputs), wanted))
        return weights_of(network) | before

    def _trainer(self, network: nn.Module, data: TensorDataset, noise: Fraction, examples: Any, bits: Bits) -> Trainer:
        optimizer = OPTIMIZERS[self.optimizer][0](network.parameters(), lr=self.learning_rate)
        return Trainer(
            network,
            optimizer,
            data,
            size=self.size,
            noise_multiplier=noise,
            delta=self.delta,
            epochs=self.epochs,
            batch_size=self.batch_size,
            clip=self.clip,
            physical_batch=self.physical_batch,
            example=examples,
            bits=bits,
        )


@lru_cache(maxsize=256)
def _price(run: RunParameters) -> TrainingPrice:
    """Asks the trainer itself, on no rows: neither they nor the network have a part in the price."""
    rows = run.rows_per_unit
    if rows == 1:
        with _make_pricing_trainer(run, epsilon=run.epsilon) as trainer:
            return TrainingPrice(trainer.planned_event, trainer.planned_event, trainer.noise_multiplier)
    with _make_pricing_trainer(run, noise_multiplier=rows) as trainer:
        steps = trainer.steps
    rate = at_least_one_of(rows, Fraction(run.batch_size, run.size))
    noise = rows * accounting.calibrate(
        lambda one: Repeated(PoissonSampled(rate, Gaussian(one)), steps), epsilon=run.epsilon, delta=run.delta
    )
    with _make_pricing_trainer(run, noise_multiplier=noise) as trainer:
        planned = trainer.planned_event
    drawn = check.instance(PoissonSampled, step=check.instance(Repeated, run=planned).event)
    multiplier = check.instance(Gaussian, release=drawn.event).noise_multiplier
    return TrainingPrice(Repeated(PoissonSampled(rate, Gaussian(multiplier / rows)), steps), planned, noise)


def at_least_one_of(rows: int, rate: Fraction) -> Fraction:
    """Returns the chance that one of several rows enters a batch, rounded up.

    >>> at_least_one_of(2, Fraction(1, 4)), float(at_least_one_of(1000, Fraction(1, 2)))
    (Fraction(7, 16), 1.0)
    """
    none = math.floor((1 - rate) ** rows * _FINE)
    return 1 - Fraction(none, _FINE)


def _make_pricing_trainer(run: RunParameters, **noise: Any) -> Trainer:
    network = nn.Linear(1, 1, device="meta").to_empty(device="cpu")  # draws no random number
    return Trainer(
        network,
        torch.optim.SGD(network.parameters(), lr=1.0),
        TensorDataset(torch.zeros(0, 1)),
        size=run.size,
        delta=run.delta,
        epochs=run.epochs,
        batch_size=run.batch_size,
        clip=run.clip,
        example=(torch.zeros(1),),
        **noise,
    )
