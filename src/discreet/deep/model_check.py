"""A check of model, losses and layers on made-up examples, before any private example is read.

The loop of the user runs on four public batches first. The second one is a neighbour of the first by one replaced
example, the fourth one of the third by one removed example. The losses and the norms of the gradients of all other
examples must stay what they are, and the gradients that the layers' rules give must be those of PyTorch. So batch
statistics, losses that are divided by the size of the batch, contrastive losses, parameters that are used past their
layer and layers that draw other random numbers the second time are found, whatever they are called.

The first batch goes through the model as it was written, those after it as it was compiled, if it was. So uses of
layers that a compiled model does not tell of are found, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from discreet.deep.clipping import PerExampleGradients, Recorder
from discreet.deep.poisson_batches import PoissonBatches
from discreet.errors import InvalidParameter

_CLOSE = 1e-3  # far above rounding in 32 bits, far below what a statistic of three examples moves
_CLOSE_REDUCED = 0.03  # the same for numbers of 8 bits, whose rounding is 2^-8 in each layer
_OTHERS = [0, 2]  # the examples besides the one that is replaced or removed
_WEIGHTS = (1.0, 2.0, 4.0)
_FORGETFUL = (
    "If it was compiled and run before the trainer was made, call torch.compiler.reset() first: what was compiled then "
    "does not tell of its layers."
)
_MIXED = "Examples must not depend on each other: no batch statistics, no division by the batch's size."


class ModelCheck:
    """Runs the check, batch by batch.

    Args:
        model: the model.
        recorder: of its layers.
        batches: that make up public examples.
        names: of the trainable parameters.
    """

    def __init__(
        self, model: nn.Module, recorder: Recorder, batches: PoissonBatches, names: dict[nn.Parameter, str]
    ) -> None:
        self._model, self._recorder, self._batches, self._names = model, recorder, batches, names
        self._seen: list[tuple[Tensor, dict[str, Tensor]]] = []
        self._problem: str | None = None
        self._tolerance = _CLOSE
        self.done = False

    def run(self) -> Iterator[tuple[Any, int]]:
        """Yields four public batches; `take` must be given the losses of each.

        Raises:
            InvalidParameter: if the model or the losses do not keep examples apart.
        """
        generator, buffers = torch.get_rng_state(), [b.clone() for b in self._model.buffers()]
        was = self._model.training
        for kinds, training in (((0, 1, 2), True), ((0, 3, 2), True), ((0, 1, 2), False), ((0, 2), False)):
            torch.set_rng_state(generator)
            self._model.train(was and training)
            with _all_digits(), nullcontext() if self._seen else _as_written():
                yield self._batches.public_rows(kinds), len(kinds)
        self._model.train(was)
        if not all(map(torch.equal, buffers, self._model.buffers())):
            hint = "Batch statistics mix examples, and are kept without noise. Use GroupNorm or LayerNorm."
            raise InvalidParameter("model", type(self._model).__name__, "to keep nothing from batch to batch", hint)
        self._compare(self._seen[0], self._seen[1], _OTHERS)
        self._compare(self._seen[2], self._seen[3], [0, 1])
        if self._problem is not None:
            hint = "Use a parameter in its layer's own call only, and no dropout inside of layers without a rule."
            raise InvalidParameter("parameter", self._problem, "to have the gradient that its layer tells", hint)
        self._recorder.reduced = self._tolerance > _CLOSE
        self.done = True

    def take(self, losses: Tensor, examples: int) -> None:
        """Takes the losses of the batch that was yielded last."""
        if not bool(torch.isfinite(losses).all()):
            hint = "Made-up examples have none here: pass example=[...], three public ones."
            raise InvalidParameter("losses", "of public examples", "to be finite", hint)
        first = not self._seen and losses.dim() == 1 and len(losses) == examples
        truth = self._truth(losses) if first else {}
        found = PerExampleGradients(self._recorder, losses, self._names, examples)
        with torch.no_grad():
            squared = found.squared_norms()
            self._seen.append((losses.detach(), squared))
            self._tolerance = _CLOSE_REDUCED if found.reduced else self._tolerance
            if truth:
                weights = torch.tensor(_WEIGHTS, dtype=torch.float64, device=losses.device)
                sums = found.weighted_sums(dict.fromkeys(squared, weights))
                self._problem = _first_difference(truth, squared, sums, self._tolerance)

    def _truth(self, losses: Tensor) -> dict[str, Tensor]:
        """The gradient of each example, by a backward pass for each."""
        asked = list(self._names)
        rows = [torch.autograd.grad(loss, asked, retain_graph=True, allow_unused=True) for loss in losses]
        return {
            name: torch.stack([torch.zeros_like(p) if row[place] is None else row[place] for row in rows])
            for place, (p, name) in enumerate(self._names.items())
        }

    def _compare(
        self, one: tuple[Tensor, dict[str, Tensor]], other: tuple[Tensor, dict[str, Tensor]], rows: list[int]
    ) -> None:
        losses, squared = one
        left = {"losses": losses[_OTHERS], **{name: values[_OTHERS] for name, values in squared.items()}}
        right = {"losses": other[0][rows], **{name: values[rows] for name, values in other[1].items()}}
        if left.keys() != right.keys():
            raise InvalidParameter("model", type(self._model).__name__, "to use its layers in every batch", _FORGETFUL)
        if any(not _close(left[name], right[name], self._tolerance) for name in left):
            raise InvalidParameter("losses", "of one example", "to be the same in every batch", _MIXED)


@contextmanager
def _all_digits() -> Iterator[None]:
    """Products of 32 bits, whatever PyTorch is set to: with fewer, rounding looks like other examples' influence."""
    products, convolutions = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(products)
        torch.backends.cudnn.allow_tf32 = convolutions


def _as_written() -> Any:
    """Runs models without what was compiled of them, while it lasts."""
    return torch.compiler.set_stance("force_eager") if hasattr(torch.compiler, "set_stance") else nullcontext()


def _close(one: Tensor, other: Tensor, tolerance: float) -> bool:
    scale = float(torch.maximum(one.abs().max(), other.abs().max()))
    return bool(((one - other).abs() <= tolerance * scale + 1e-12).all())


def _first_difference(
    truth: dict[str, Tensor], squared: dict[str, Tensor], sums: dict[str, Tensor], tolerance: float
) -> str | None:
    """The name of a parameter whose gradients are not those of the layers' rules."""
    for name, rows in truth.items():
        weights = torch.tensor(_WEIGHTS, dtype=rows.dtype, device=rows.device)
        expected = torch.tensordot(weights, rows, dims=1)
        if name not in sums:
            if bool((rows != 0).any()):
                return name
            continue
        norms = rows.flatten(1).double().square().sum(1)
        short = squared[name] < (1 - tolerance) * norms - 1e-12  # above is safe
        if not _close(sums[name], expected, tolerance) or bool(short.any()):
            return name
    return None
