"""What a model is run under while it is checked, and left as it was afterwards: modes, random numbers, digits."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Distribution
from torch.nn.modules.dropout import _DropoutNd
from torch.utils._python_dispatch import TorchDispatchMode

from discreet.errors import InvalidParameter

_KEPT = (
    "What the model keeps is released without noise, and mixes examples. Use GroupNorm or LayerNorm instead of batch "
    "statistics. Use no buffers that the forward pass changes, such as those of spectral_norm in training. Change "
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
    """Returns the bits of numbers: a NaN that stays is no change."""
    values = values if values.layout is torch.strided else values.to_dense()
    return values.detach().contiguous().reshape(-1).view(torch.uint8)


_DRAWING = (_DropoutNd, nn.MultiheadAttention, nn.RNNBase)
"""Layers of PyTorch that draw random numbers in training, and do nothing else with their mode."""

aten = torch.ops.aten


class ModelMode(enum.Enum):
    """How a model runs.

    Attributes:
        TRAINING: as it was left.
        QUIET: likewise, but for PyTorch's own dropout, which is off: the same examples give the same losses in batches
            of every size, and whatever a model does in training only is still done.
        STILL: as in evaluation, for models that draw other random numbers.
    """

    TRAINING = enum.auto()
    QUIET = enum.auto()
    STILL = enum.auto()


class ModuleModes:
    """The modes of a model's modules. Attributes are set: `train()` of a module may do more than that."""

    def __init__(self, model: nn.Module) -> None:
        self._was = [(module, module.training) for module in model.modules()]

    @contextmanager
    def set(self, mode: ModelMode) -> Iterator[None]:
        """Sets modes while it lasts, and gives every module back its own."""
        for module, was in self._was:
            off = mode is ModelMode.STILL or (mode is ModelMode.QUIET and isinstance(module, _DRAWING))
            module.training = was and not off
        try:
            yield
        finally:
            for module, was in self._was:
                module.training = was


class Generators:
    """The random numbers of PyTorch, on the processor and on all devices that are in use.

    Attributes:
        first: the state of all generators at first.
    """

    def __init__(self) -> None:
        self._was = _states()
        self.first = self.state()

    @contextmanager
    def rewound(self) -> Iterator[None]:
        """Draws the same numbers each time, and leaves generators as they were at first."""
        self._rewind()
        try:
            yield
        finally:
            self._rewind()

    def state(self) -> Tensor:
        """Returns the state of all generators that are looked after, as bytes."""
        now = _states()
        return torch.cat([now[key].flatten() for key in self._was])

    def _rewind(self) -> None:
        for (kind, place), state in self._was.items():
            if kind == "cpu":
                torch.set_rng_state(state)
            else:
                torch.get_device_module(kind).set_rng_state(state, place)


def _states() -> dict[tuple[str, int], Tensor]:
    found = {("cpu", 0): torch.get_rng_state()}
    for kind in ("cuda", "xpu"):
        module: Any = getattr(torch, kind)
        if module.is_available() and module.is_initialized():
            found |= {(kind, place): state.cpu() for place, state in enumerate(module.get_rng_state_all())}
    return found


@contextmanager
def looked_up(model: nn.Module, found: list[tuple[Tensor, int]]) -> Iterator[None]:
    """Notes what the tables of a model are asked for, and how many rows they have."""

    def note(table: Any, given: tuple[Any, ...]) -> None:
        if given and isinstance(given[0], Tensor):
            found.append((given[0].detach(), int(table.num_embeddings)))

    tables = [module for module in model.modules() if isinstance(module, nn.Embedding | nn.EmbeddingBag)]
    handles = [table.register_forward_pre_hook(note) for table in tables]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def all_digits() -> Iterator[None]:
    """Makes PyTorch multiply in 32 bits, whatever its settings: with fewer, rounding looks like others' influence."""
    products, convolutions = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(products)
        torch.backends.cudnn.allow_tf32 = convolutions


def as_written() -> AbstractContextManager[Any]:
    """Runs models without what was compiled of them, while it lasts."""
    return torch.compiler.set_stance("force_eager") if hasattr(torch.compiler, "set_stance") else nullcontext()


@contextmanager
def no_numbers() -> Iterator[None]:
    """Lets an example of NaN through operations that end a program, or a device, when they see one."""
    was = Distribution._validate_args
    with ExitStack() as undone:
        undone.callback(Distribution.set_default_validate_args, was)
        Distribution.set_default_validate_args(False)
        undone.enter_context(torch.autograd.set_detect_anomaly(False))
        undone.enter_context(_Tolerant())
        yield


_FUSSY = frozenset(("multinomial", "bernoulli", "bernoulli_", "poisson", "binomial", "histc"))


class _Tolerant(TorchDispatchMode):
    """Cross entropies of NaN are NaN; indices, samples and decompositions see 0 in its place.

    The values that follow show nothing about NaN. They show the effect of the other examples that replace one.
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        if func is aten.binary_cross_entropy.default:
            return _cross_entropy(func, *args, **named)
        integers = func is aten._to_copy.default and not _floats(named.get("dtype"))
        name = getattr(getattr(func, "overloadpacket", None), "__name__", "")
        if integers or name in _FUSSY or "linalg_" in name:
            written = int(func._schema.is_mutable)  # what is written to stays itself
            args = (*args[:written], *(_finite(each) for each in args[written:]))
        return func(*args, **named)


def _floats(dtype: Any) -> bool:
    return dtype is None or dtype.is_floating_point or dtype.is_complex


def _finite(value: Any) -> Any:
    return torch.nan_to_num(value) if isinstance(value, Tensor) and value.is_floating_point() else value


def _cross_entropy(func: Any, chances: Tensor, labels: Tensor, *rest: Any, **named: Any) -> Tensor:
    missing = chances.isnan() | labels.isnan()
    found: Tensor = func(chances.masked_fill(missing, 0.5), labels.masked_fill(missing, 0.5), *rest, **named)
    return found.masked_fill(missing if found.dim() else missing.any(), float("nan"))
