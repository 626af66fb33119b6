"""An audit of a training run: canaries among its examples, one run, and guesses about who was in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from discreet.audit.mechanisms.distinguisher import CONFIDENCE, CanaryGame
from discreet.audit.mechanisms.epsilon_bound import Claim, OneRun, claim_of
from discreet.check import Number
from discreet.errors import InvalidParameter
from discreet.noise import Bits
from discreet.privacy.events import Event


class TrainingRun(Protocol):
    """Describes what knows its own cost: a `deep.Trainer` after its loop, or any object with an event and a delta."""

    @property
    def event(self) -> Event:
        """Returns what was released."""

    @property
    def delta(self) -> Any:
        """Returns the delta at which the claim is looked at."""


class _Examples(Sequence[Any]):
    """Describes a dataset: examples with a length, each found by its number."""

    def __init__(self, data: Sequence[Any], more: list[Any]) -> None:
        self._data, self._more = data, more

    def __len__(self) -> int:
        return len(self._data) + len(self._more)

    def __getitem__(self, place: Any) -> Any:
        return self._data[place] if place < len(self._data) else self._more[place - len(self._data)]


def training(
    train: Callable[[Sequence[Any]], tuple[TrainingRun, Any]],
    canaries: Sequence[Any],
    score: Callable[[Any, Any], float],
    *,
    data: Sequence[Any] = (),
    guesses: int | None = None,
    confidence: Number = CONFIDENCE,
    bits: Bits | None = None,
) -> OneRun:
    """Certifies a lower bound on the epsilon of a training run, next to the cost that its trainer reports.

    Each canary is added to the data by a fair coin, and the run is made once. The more a canary moves the model, the
    better it shows: choose examples that no others resemble, and whose gradients are longer than the bound.

    Args:
        train: a function of a dataset that makes a model and its `deep.Trainer`, runs the loop, and returns the
            trainer and whatever is to be seen of the run, such as the model, or the weights after every step. The
            trainer's `size` must be a constant, not the length of this dataset.
        canaries: examples to include or not.
        score: of what was seen and a canary; the higher, the more it seems to have been in.
        data: examples that are always included.
        guesses: about how many canaries to guess, half of them "in"; all by default. Fewer are surer.
        confidence: of the bound.
        bits: the coins of the experiment; None is the secure source. The trainer brings its own.

    Returns:
        A `OneRun`, whose claim is the trainer's event at its delta. That it passed proves nothing: an order of examples
        that is shuffled, not drawn, can cost much more than is claimed without one run being able to show it. That
        it failed refutes the claim.

    Raises:
        InvalidParameter: if a parameter is outside its domain.

    Formal guarantee: that of `one_run`.

    >>> from types import SimpleNamespace
    >>> from discreet.mechanisms import Gaussian
    >>> from discreet.noise import SeededBits
    >>> noise = Gaussian.with_multiplier(noise_multiplier=1, sensitivity=1)
    >>> def counts(dataset, bits=SeededBits(1)):
    ...     held = [place in dataset for place in range(200)]
    ...     return SimpleNamespace(event=noise.event, delta=1e-5), noise.release([float(x) for x in held], bits=bits)
    >>> found = training(counts, range(200), lambda seen, place: seen[place], guesses=40, bits=SeededBits(2))
    >>> found.passed, 0.2 < found.epsilon_lower < found.epsilon_claimed < 5
    (True, True)
    """
    if not callable(train):
        raise InvalidParameter("train", train, "to be a function of a dataset")
    game = CanaryGame(canaries, guesses=guesses, confidence=confidence)

    def read_claim(output: tuple[TrainingRun, Any]) -> Claim:
        return claim_of(None, epsilon=None, delta=output[0].delta, event=output[0].event)

    def score_canary(output: tuple[TrainingRun, Any], canary: Any) -> float:
        return score(output[1], canary)

    def run(included: list[Any]) -> tuple[TrainingRun, Any]:
        return train(_Examples(data, included))

    return game.play(run, score_canary, read_claim, "This training run", bits)
