"""What a model keeps besides its trained weights, which must not change while it sees private examples.

Noise protects the weights that the optimizer changes, and nothing else. A buffer that is updated in the forward pass
(a running mean, a memory of earlier examples, a count) is a function of examples without noise, released with the
model, and it lets the examples of one piece of a batch meet those of the next.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from discreet.errors import InvalidParameter

_KEPT = (
    "What it keeps is released without noise, and mixes examples. Use GroupNorm or LayerNorm in place of batch "
    "statistics, and no buffers that the forward pass changes, such as those of spectral_norm in training. Change "
    "frozen parameters after trainer.step(losses)."
)


class ModelState:
    """The buffers of a model, as public examples left them, and how often its parameters were changed in place.

    Args:
        model: the model.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._buffers = {name: buffer.detach().clone() for name, buffer in model.named_buffers()}
        self._versions: list[int] = []
        self.begin()

    def begin(self) -> None:
        """Notes the parameters before a piece of a batch is handed out."""
        self._versions = [parameter._version for parameter in self._model.parameters()]

    def add(self) -> None:
        """Takes up buffers that a model has made in its first batch, which is public."""
        for name, buffer in self._model.named_buffers():
            self._buffers.setdefault(name, buffer.detach().clone())

    def check(self) -> None:
        """Compares, after a piece of a batch has gone through the model.

        Raises:
            InvalidParameter: if something has changed. Buffers are put back first, so that they keep nothing.
        """
        parameters = [parameter._version for parameter in self._model.parameters()]
        if parameters == self._versions and self._is_unchanged():
            return
        self._restore()
        raise InvalidParameter("model", type(self._model).__name__, "to keep nothing from batch to batch", _KEPT)

    def _is_unchanged(self) -> bool:
        now = dict(self._model.named_buffers())
        if now.keys() != self._buffers.keys():
            return False
        pairs = [(was, now[name]) for name, was in self._buffers.items()]
        if any(was.shape != is_.shape or was.dtype != is_.dtype or was.device != is_.device for was, is_ in pairs):
            return False
        same = [(_bytes(was) == _bytes(is_)).all() for was, is_ in pairs if was.numel()]
        on: dict[torch.device, list[Tensor]] = {}
        for each in same:
            on.setdefault(each.device, []).append(each)
        return all(bool(torch.stack(several).all()) for several in on.values())  # one wait for each device

    def _restore(self) -> None:
        for name, buffer in self._model.named_buffers():
            was = self._buffers.get(name)
            if was is not None and was.shape == buffer.shape:
                buffer.detach().copy_(was)


def _bytes(values: Tensor) -> Tensor:
    """The bits of numbers: a NaN that stays is no change."""
    values = values if values.layout is torch.strided else values.to_dense()
    return values.detach().contiguous().reshape(-1).view(torch.uint8)
