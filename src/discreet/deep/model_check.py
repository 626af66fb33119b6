"""A check of model, losses and layers on made-up examples, before any private example is read.

The loop of the user runs on four public batches first. The second one is a neighbour of the first by one replaced
example, the fourth one of the third by one removed example. The losses and the norms of the gradients of all other
examples must stay what they are, and the gradients that the layers' rules give must be those of PyTorch. So batch
statistics, losses that are divided by the size of the batch, contrastive losses, parameters that are used past their
layer and layers that draw other random numbers the second time are found, whatever they are called.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from discreet.deep.clipping import PerExampleGradients, Recorder
from discreet.deep.poisson_batches import PoissonBatches
from discreet.errors import InvalidParameter

_CLOSE = 1e-3  # far above rounding in 32 bits, far below what a statistic of three examples moves
_OTHERS = [0, 2]  # the examples besides the one that is replaced or removed
_WEIGHTS = (1.0, 2.0, 4.0)
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
        self.done = False

    def run(self) -> Iterator[tuple[Any, int]]:
        """Yields four public batches; `take` must be given the losses of each.

        Raises:
            InvalidParameter: if the model or the losses do not keep examples apart.
        """
        generator, buffers = torch.get_rng_state(), [b.clone() for b in self._model.buffers()]
        was = self._model.training
        with _all_digits():
            for kinds, training in (((0, 1, 2), True), ((0, 3, 2), True), ((0, 1, 2), False), ((0, 2), False)):
                torch.set_rng_state(generator)
                self._model.train(was and training)
                yield self._batches.public_rows(kinds), len(kinds)
        self._model.train(was)
        if not all(map(torch.equal, buffers, self._model.buffers())):
            hint = "Batch statistics mix examples, and are kept without noise. Use GroupNorm or LayerNorm."
            raise InvalidParameter("model", type(self._model).__name__, "to keep nothing from batch to batch", hint)
        self._compare(self._seen[0], self._seen[1], _OTHERS)
        self._compare(self._seen[2], self._seen[3], [0, 1])
        if self._problem is not None:
            hint = (
                "Use a parameter in its layer's own call only, and no dropout inside of attention or of layers "
                "without a rule."
            )
            raise InvalidParameter("parameter", self._problem, "to have the gradient that its layer tells", hint)
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
            if truth:
                weights = torch.tensor(_WEIGHTS, dtype=torch.float64, device=losses.device)
                sums = found.weighted_sums(dict.fromkeys(squared, weights))
                self._problem = _first_difference(truth, squared, sums)

    def _truth(self, losses: Tensor) -> dict[str, Tensor]:
        """The gradient of each example, by a backward pass for each."""
        asked = list(self._names)
        rows = [torch.autograd.grad(loss, asked, retain_graph=True, allow_unused=True) for loss in losses]
        return {
            name: torch.stack([torch.zeros_like(p) if row[place] is None else row[place] for row in rows])
            for place, (p, name) in enumerate(self._names.items())
        }

    @staticmethod
    def _compare(
        one: tuple[Tensor, dict[str, Tensor]], other: tuple[Tensor, dict[str, Tensor]], rows: list[int]
    ) -> None:
        losses, squared = one
        left = {"losses": losses[_OTHERS], **{name: values[_OTHERS] for name, values in squared.items()}}
        right = {"losses": other[0][rows], **{name: values[rows] for name, values in other[1].items()}}
        if left.keys() != right.keys() or any(not _close(left[name], right[name]) for name in left):
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


def _close(one: Tensor, other: Tensor) -> bool:
    scale = float(torch.maximum(one.abs().max(), other.abs().max()))
    return bool(((one - other).abs() <= _CLOSE * scale + 1e-12).all())


def _first_difference(truth: dict[str, Tensor], squared: dict[str, Tensor], sums: dict[str, Tensor]) -> str | None:
    """The name of a parameter whose gradients are not those of the layers' rules."""
    for name, rows in truth.items():
        weights = torch.tensor(_WEIGHTS, dtype=rows.dtype, device=rows.device)
        expected = torch.tensordot(weights, rows, dims=1)
        if name not in sums:
            if bool((rows != 0).any()):
                return name
            continue
        norms = rows.flatten(1).double().square().sum(1)
        short = squared[name] < (1 - _CLOSE) * norms - 1e-12  # above is safe
        if not _close(sums[name], expected) or bool(short.any()):
            return name
    return None
