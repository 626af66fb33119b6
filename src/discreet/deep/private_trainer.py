"""The private trainer: an ordinary loop over batches, in which three lines change."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from discreet import accounting, check, progress
from discreet.check import Number
from discreet.deep.banded_noise import BandedNoise
from discreet.deep.clipping import ClipRule, LayerCallRecorder, PerExampleGradients, clip_rule
from discreet.deep.gradient_noise import NoisySum
from discreet.deep.model_check import ModelCheck
from discreet.deep.poisson_batches import PoissonBatches
from discreet.deep.step_count import StepCount
from discreet.errors import InvalidParameter
from discreet.noise import Bits, source_of
from discreet.privacy import ApproxDP
from discreet.privacy.events import Event, to_json

_OWNER_ONLY = 0o600


def save_weights(path: Path, state: dict[str, Any]) -> None:
    """Writes tensors, numbers and texts in place of older ones: at every moment one of the two is whole."""
    fresh = path.with_name(path.name + ".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWNER_ONLY)
    with os.fdopen(descriptor, "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def load_weights(path: Path, run: str, taken: int) -> dict[str, Any] | None:
    """Returns the state of a run, loaded without running any code; None if none was saved.

    Raises:
        InvalidParameter: if it belongs to another run, or knows of more steps than were counted.
    """
    if not path.exists():
        return None
    state: dict[str, Any] = torch.load(path, weights_only=True)
    if state.get("run") != run:
        hint = "Its count of steps is missing or of another run. Find it, or pass another path to start again."
        raise InvalidParameter("checkpoint", str(path), "to belong to its count of steps", hint)
    if state["taken"] > taken:
        hint = "Steps would be spent twice. Find the newest count."
        raise InvalidParameter("checkpoint", str(path), "to be no newer than its count of steps", hint)
    return state


_TOLD = 20  # how often the privacy spent so far is reported
_SIZE = (
    "The step divides by size times the sampling rate, and may not read a private number for that: pass "
    "size=len(data) if the number of examples may be public, else a public guess of it."
)
_FORGOTTEN = "Call trainer.step(losses) once for each batch that the trainer gives."


class Trainer:
    """Trains a PyTorch model with differential privacy (DP-SGD; Abadi et al. 2016), whatever the optimizer.

    Batches are drawn by a coin for each example, gradients of examples are clipped, their sum gets exact noise and is
    divided by the expected size of a batch, a constant; the optimizer does the rest.

    Formal guarantee: the weights after every step, together, are described by `event` for neighbours that add or remove
    one example: Poisson-sampled Gaussians with one noise multiplier, found before any example is read; one for each
    step, or, with noise that is correlated over several steps, for so many of them (`discreet.deep.banded_noise`). What
    rounding of floats means for it is in `discreet.deep.gradient_noise`. One person, one example: a person with several
    is protected as a group. Losses that the loop computes are private: print none of them.

    Args:
        model: with trainable parameters; frozen ones stay. What mixes examples is refused (`deep.model_check`), and
            so is what the model keeps from batch to batch, be it in the real run only.
        optimizer: of the model's parameters.
        data: a dataset with a length, whose examples are tensors and numbers of one shape.
        size: the public number of examples, or a guess; the sampling rate is batch_size / size.
        epsilon: what the whole run may cost; or None, with a noise_multiplier.
        delta: likewise.
        epochs: how often an example is used on average.
        batch_size: the expected number of examples in a batch.
        clip: a bound for each example's gradient, or a rule: `Flat(1)`, `PerLayer(1)`, `Normalised(1)`.
        noise_multiplier: the noise's deviation in units of what one example moves, instead of epsilon.
        bands: over how many steps noise is correlated, so that much of it cancels (`BandedNoise`); 1 is independent.
        noise: "exact" noise is drawn on the processor, "device" noise where the model is (`discreet.deep.device_noise`
            says what that promises); by default exact for a model on the processor, and of the device for others.
        physical_batch: how many examples go through the model at once. 1 is slow, proves every rounding, and excludes
            that one example changes the gradient of another, which for more can be checked only.
        scheduler: a learning-rate schedule, or anything else with `step()`, called after every step.
        average: an `AveragedModel`, or anything else with `update_parameters(model)`, called after every step.
        example: a public example, if shapes must not be taken from the first one; or a list of at least three that
            differ, if synthetic examples mean nothing to the model.
        checkpoint: a path where weights are kept, with the count of steps next to it; a run that was broken off goes on
            from there.
        save_every: how many steps lie between two checkpoints; None for an epoch.
        progress: called with stages, and the share of epsilon that is spent.
        bits: a source of randomness, for tests.

    Attributes:
        steps: how many steps the run has.
        noise_multiplier: the noise's deviation in units of what one example moves: the bound, if noise is independent.
        private: False if the randomness was seeded.

    Raises:
        InvalidParameter: outside these domains, before anything is read or spent.

    >>> import torch
    >>> from torch.nn.functional import cross_entropy
    >>> data = torch.utils.data.TensorDataset(torch.eye(4).repeat(50, 1), torch.arange(4).repeat(50))
    >>> model = torch.nn.Linear(4, 4)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    >>> trainer = Trainer(model, optimizer, data, size=200, noise_multiplier=1, delta=1e-5, epochs=1, batch_size=20)
    >>> for inputs, labels in trainer:
    ...     trainer.step(cross_entropy(model(inputs), labels, reduction="none"))
    >>> trainer.taken, trainer.event.event.probability
    (10, Fraction(1, 10))
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: Any,
        data: Any,
        *,
        size: int | None = None,
        epsilon: Number | None = None,
        delta: Number,
        epochs: Number,
        batch_size: int,
        clip: Any = 1,
        noise_multiplier: Number | None = None,
        bands: int = 1,
        noise: str | None = None,
        physical_batch: int = 256,
        scheduler: Any = None,
        average: Any = None,
        example: Any = None,
        checkpoint: os.PathLike[str] | str | None = None,
        save_every: int | None = None,
        progress: progress.Progress | None = None,
        bits: Bits | None = None,
    ) -> None:
        if size is None:
            raise InvalidParameter("size", None, "to be a public number of examples", _SIZE)
        self.delta = check.probability(delta=delta)
        self._expected = check.integer(batch_size=batch_size, at_least=1, at_most=check.integer(size=size, at_least=1))
        self._rate = Fraction(self._expected, size)
        self._bands = BandedNoise(bands)
        self.steps = self._bands.whole(max(1, round(check.positive(epochs=epochs) / self._rate)))
        self._bits, self.private = bits, source_of(bits).private
        most, parts = check.integer(physical_batch=physical_batch, at_least=1), self._bands.bands
        self.epsilon, rule = None if epsilon is None else check.positive(epsilon=epsilon), clip_rule(clip)
        self._names = _names(model, optimizer)
        self._batches = PoissonBatches(data, self._bands.probability(self._rate), most, example, parts=parts)
        self.noise_multiplier = self._multiplier(noise_multiplier)
        self._sum = self._noisy_sum(rule, noise, alone=most == 1)
        self._model, self._optimizer, self._scheduler, self._average = model, optimizer, scheduler, average
        self._progress = progress
        self._save_every = check.integer(save_every=save_every or round(1 / self._rate), at_least=1)
        self._path = None if checkpoint is None else Path(checkpoint)
        self._waiting, self._last = 0, False  # examples whose losses are awaited, and whether their batch ends there
        self._turn, self._released = object(), False  # which loop is the newest, and whether its step was released
        self._spoiled = False  # whether a piece of the step has failed
        self._check: ModelCheck | None = None
        with ExitStack() as undone:
            self._recorder = LayerCallRecorder(model)
            undone.callback(self._recorder.close)
            # After all else that is refused: the file of a model that was would be in the way of the next one.
            self._count = StepCount(None if self._path is None else f"{self._path}.steps", self._parameters(rule))
            undone.callback(self._count.close)
            self._resume()
            undone.pop_all()

    def _multiplier(self, given: Number | None) -> Fraction:
        if (given is None) == (self.epsilon is None):
            hint = "Pass epsilon or noise_multiplier, but not both."
            raise InvalidParameter("epsilon", self.epsilon, "to be given, or else noise_multiplier", hint)
        if given is not None:
            return check.positive(noise_multiplier=given, floats="exact")
        budget: Any = self.epsilon
        return accounting.calibrate(lambda noise: self._event(noise, self.steps), epsilon=budget, delta=self.delta)

    def _noisy_sum(self, rule: ClipRule, noise: str | None, *, alone: bool) -> NoisySum:
        sizes = {name: parameter.numel() for parameter, name in self._names.items()}
        device = next(iter(self._names)).device if self._names else torch.device("cpu")
        exact = _is_exact(noise, device)
        band = self._bands.band(self.steps)
        return NoisySum(sizes, rule, self.noise_multiplier, alone=alone, band=band, device=device, exact=exact)

    def _event(self, noise: Fraction, steps: int) -> Event:
        return self._bands.event(self._rate, noise, steps)

    def _parameters(self, rule: Any) -> dict[str, Any]:
        """Returns what a run may not change on its way."""
        shapes = {name: list(parameter.shape) for parameter, name in self._names.items()}
        event = to_json(self._event(self._sum.mechanism.event.noise_multiplier, self.steps))
        bands = {"bands": self._bands.bands} if self._bands.bands > 1 else {}
        return {"event": event, "clip": f"{type(rule).__name__} {rule.bound}", "shapes": shapes, **bands}

    @property
    def taken(self) -> int:
        """Returns how many steps were begun, or given up by a run that was broken off with correlated noise."""
        return self._count.taken

    @property
    def event(self) -> Event:
        """Returns what was released so far."""
        return self._event(self._sum.mechanism.event.noise_multiplier, self.taken)

    @property
    def planned_event(self) -> Event:
        """Returns what the whole run releases."""
        return self._event(self._sum.mechanism.event.noise_multiplier, self.steps)

    @property
    def spent(self) -> ApproxDP:
        """Returns what was spent so far, at the run's delta; it takes a moment to compute."""
        return ApproxDP(accounting.epsilon(self.event, self.delta), self.delta)

    def __iter__(self) -> Iterator[Any]:
        """Yields public batches for a check of the model first, then the pieces of private ones, to the run's end.

        Raises:
            InvalidParameter: if model or losses mix examples, before a private one is read.
        """
        turn = self._turn = object()
        if self._check is not None:
            self._check.leave()  # a loop that was broken off by an error
        if self._check is None or not self._check.done:
            yield from self._check_batches(turn)
        self._begin()
        while self.taken < self.steps:
            self._tell()
            self._count.take()
            self._sum.clear()
            empty, self._released, self._spoiled = True, False, False
            part = (self.taken - 1) % self._bands.bands
            for batch, examples, last in self._batches.draw(self._bits, part=part):
                empty, self._last = False, last
                yield from self._yield_batch(batch, examples, turn)
            if empty:
                self._update()
            if not self._released:  # who runs the loop caught an error of its step
                self._begin()
        self._save()

    def _begin(self) -> None:
        """Draws parts, and begins to correlate noise, where the windows of earlier steps have ended."""
        while self.taken % self._bands.bands:
            self._count.take()
        self._sum.correlation.begin()
        self._batches.assign(self._bits)

    def _check_batches(self, turn: object) -> Iterator[Any]:
        self._check = ModelCheck(self._model, self._recorder, self._batches, self._names)
        for batch, examples in self._check.run():
            yield from self._yield_batch(batch, examples, turn)

    def _yield_batch(self, batch: Any, examples: int, turn: object) -> Iterator[Any]:
        self._waiting = examples
        if self._check is not None:
            self._check.state.begin()
        exact = self._check is not None and not self._check.done and self._check.is_exact
        self._recorder.start(examples, taps=not exact)
        yield batch
        if turn is not self._turn:
            hint = "Two loops would put an example into one step twice. Continue with the loop that began last."
            raise InvalidParameter("trainer", "in an older loop", "to be iterated once at a time", hint)
        if self._waiting:
            self._recorder.clear()
            raise InvalidParameter("losses", None, "to be given for every batch", _FORGOTTEN)

    def step(self, losses: Tensor) -> None:
        """Takes the losses of the batch that was given last, one for each example, and forgets the graph.

        When all pieces of a batch were taken, the noisy gradient is released and the optimizer makes its step.

        Raises:
            InvalidParameter: if losses are averaged, come a second time, or the model has changed its buffers or
                frozen parameters, before the step is released.
        """
        if not self._waiting:
            raise InvalidParameter("losses", "without a batch", "to belong to the last batch", _FORGOTTEN)
        examples, self._waiting = self._waiting, 0
        checking = self._check
        if checking is not None and not checking.done:
            checking.take(losses, examples)
            return
        spoiled, self._spoiled = self._spoiled, True
        found = PerExampleGradients(self._recorder, losses, self._names, examples)
        sums = found.clipped_sum(self._sum.clip)
        if checking is not None:
            checking.state.check()
        self._sum.add(sums)
        self._spoiled = spoiled
        # A step that misses a piece is given up: the piece may be missing for one of its examples.
        if self._last and not spoiled:
            self._update()

    def _update(self) -> None:
        """Releases the noisy gradient, of every trainable parameter, and makes a step."""
        noisy, self._released = self._sum.release(self._bits), True
        self._optimizer.zero_grad()  # of frozen parameters, too: their gradients are not private
        for parameter, name in self._names.items():
            parameter.grad = (noisy[name] / self._expected).reshape(parameter.shape).to(parameter)
        self._optimizer.step()
        if self._scheduler is not None:
            self._scheduler.step()
        if self._average is not None:
            self._average.update_parameters(self._model)
        if self.taken % self._save_every == 0:
            self._save()

    def _tell(self) -> None:
        every = max(1, self.steps // _TOLD)
        if self._progress is None or self.taken % every:
            return
        at = accounting.epsilon(self.event, self.delta) if self.taken else 0.0
        budget = accounting.epsilon(self.planned_event, self.delta) if self.epsilon is None else float(self.epsilon)
        with progress.told_to(self._progress):
            progress.stage(f"Step {self.taken} of {self.steps}, epsilon {at:.3g}", spent=min(1.0, at / budget))

    def _save(self) -> None:
        if self._path is None:
            return
        parts = {"model": self._model, "optimizer": self._optimizer, **self._beside()}
        states = {name: part.state_dict() for name, part in parts.items()}
        save_weights(self._path, {"run": self._count.run, "taken": self.taken, **states})

    def _beside(self) -> dict[str, Any]:
        both = {"scheduler": self._scheduler, "average": self._average}
        return {name: part for name, part in both.items() if hasattr(part, "state_dict")}

    def _resume(self) -> None:
        """Resumes from the last checkpoint. Steps after it stay counted, and are not made again."""
        state = None if self._path is None else load_weights(self._path, self._count.run, self.taken)
        if state is not None:
            for name, part in {"model": self._model, "optimizer": self._optimizer, **self._beside()}.items():
                part.load_state_dict(state[name])

    def close(self) -> None:
        """Takes the hooks off the model, and closes the file with the count of steps."""
        if self._check is not None:
            self._check.leave()
        self._recorder.close()
        self._count.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _is_exact(noise: str | None, device: torch.device) -> bool:
    if noise not in (None, "exact", "device"):
        raise InvalidParameter("noise", noise, 'to be "exact" or "device"', "Leave it out to use what suits the model.")
    return noise == "exact" or (noise is None and device.type == "cpu")


def _names(model: nn.Module, optimizer: Any) -> dict[nn.Parameter, str]:
    """Returns the trainable parameters of a model, which the optimizer's must be among."""
    found = {parameter: name for name, parameter in model.named_parameters() if parameter.requires_grad}
    if any(parameter not in {*model.parameters()} for group in optimizer.param_groups for parameter in group["params"]):
        raise InvalidParameter("optimizer", "of other parameters", "to hold parameters of the model", "Pass its own.")
    for parameter, name in found.items():
        if parameter.dtype not in (torch.float32, torch.float64):
            hint = "Weights of fewer bits lose small steps: call model.float(), and use torch.autocast with bfloat16."
            raise InvalidParameter("parameter", name, "to have 32 or 64 bits", hint)
    return found
