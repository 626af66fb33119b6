"""Small models of every supported layer, and the slow, obvious gradients of their examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from discreet.deep.clipping import LayerCallRecorder, PerExampleGradients


class Summed(nn.Module):
    """A model whose outputs are what a layer gives, flattened."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.body = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        out = self.body(x)
        return (out[0] if isinstance(out, tuple) else out).flatten(1)


class Attention(nn.Module):
    """Attention from some positions to others, in any of its forms.

    Args:
        how: "self", "others" (keys are values), "apart" (all three differ) or "widths" (which differ, too).
        mask: of positions: None, "truths", "floats", "heads" (one for each example and head) or "causal".
        padding: None, or the type of a mask that leaves out the last key of each example.
        weights: whether the weights are a part of what comes out: False, True for their means, None for all of them.
    """

    def __init__(
        self,
        how: str = "self",
        mask: str | None = None,
        padding: str | None = None,
        weights: bool | None = False,
        **options: Any,
    ) -> None:
        super().__init__()
        widths = {"kdim": 3, "vdim": 2} if how == "widths" else {}
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True, **widths, **options)
        self.how, self.mask, self.padding, self.weights = how, mask, padding, weights

    def forward(self, x: Tensor) -> Tensor:
        keys, last = x, x
        if self.how != "self":
            keys = x[:, 1:, :3] if self.how == "widths" else x[:, 1:] * 2
            last = {"others": keys, "apart": x[:, 1:].cos(), "widths": x[:, 1:, 2:]}[self.how]
        out, found = self.attention(
            x,
            keys,
            last,
            key_padding_mask=self._padding(keys),
            attn_mask=self._mask(x, keys),
            need_weights=self.weights is not False,
            average_attn_weights=self.weights is True,
            is_causal=self.mask == "causal",
        )
        return out.flatten(1) if found is None else torch.cat([out.flatten(1), found.flatten(1)], 1)

    def _mask(self, x: Tensor, keys: Tensor) -> Tensor | None:
        later = torch.triu(torch.ones(x.shape[1], keys.shape[1], dtype=torch.bool, device=x.device), 1)
        if self.mask is None or self.mask in {"truths", "causal"}:
            return None if self.mask is None else later
        floats = torch.cos(torch.arange(float(later.numel()))).reshape(later.shape).to(x)
        each = floats * x.detach().mean((1, 2)).repeat_interleave(2)[:, None, None]
        return floats if self.mask == "floats" else each

    def _padding(self, keys: Tensor) -> Tensor | None:
        if self.padding is None:
            return None
        last = torch.arange(keys.shape[1], device=keys.device) == keys.shape[1] - 1
        chosen = last & (keys.detach().sum((1, 2)) > 0)[:, None]
        return chosen if self.padding == "truths" else chosen.to(keys) * -1.5


class Recurrent(nn.Module):
    """A recurrent layer, of which all outputs and the last states count, from states that depend on the example."""

    def __init__(self, kind: Any, *, given: bool = False, **options: Any) -> None:
        super().__init__()
        self.recurrent = kind(4, 3, batch_first=True, **options)
        self.given = given

    def forward(self, x: Tensor) -> Tensor:
        layer: Any = self.recurrent
        count = layer.num_layers * (1 + layer.bidirectional)
        first = x.mean(1)[None, :, :3].cos().expand(count, -1, -1)
        states = (first, first * 2) if isinstance(layer, nn.LSTM) else first
        out, last = layer(x, states) if self.given else layer(x)
        ends = last if isinstance(last, tuple) else (last,)
        return torch.cat([out.flatten(1), *(each.mT.sum(0).mT for each in ends)], 1)


class LastState(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.recurrent = nn.GRU(4, 3, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.recurrent(x)[1][0]


class Tied(nn.Module):
    """An embedding that is the last layer's matrix, too, and a layer that is used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(7, 4)
        self.inner = nn.Linear(4, 4)
        self.out = nn.Linear(4, 7)
        self.out.weight = self.words.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.inner(torch.tanh(self.inner(self.words(x))))).flatten(1)


class Twice(nn.Module):
    """Layers of several kinds that are used twice, at other numbers of positions."""

    def __init__(self) -> None:
        super().__init__()
        self.mixed = nn.Conv1d(4, 4, 3, padding=1)
        self.scaled = nn.LayerNorm(4)
        self.inner = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        y = self.mixed(torch.tanh(self.mixed(x.mT))).mT
        y = self.inner(self.scaled(self.inner(y[:, :2])))
        return self.scaled(y).flatten(1)


class Position(nn.Module):
    """A parameter of its own, beside those of layers inside."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.position = nn.Parameter(0.1 * torch.arange(20.0).reshape(5, 4))

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(self.inner(x) + self.position).flatten(1)


class Repeated(nn.Module):
    """Modules that share their attention, one behind the other; the first one twice."""

    def __init__(self, *several: Any) -> None:
        super().__init__()
        for each in several[1:]:
            each.attention = several[0].attention
        self.several = nn.ModuleList(several)

    def forward(self, x: Tensor) -> Tensor:
        for each in (self.several[0], *self.several):
            x = each(x).reshape(x.shape)
        return x.flatten(1)


class Cells(nn.Module):
    """A cell that is used at every time, and twice if so asked; all that it gives counts."""

    def __init__(self, kind: Any, times: int = 1) -> None:
        super().__init__()
        self.cell, self.out, self.times = kind(4, 3), nn.Linear(3, 2), times

    def forward(self, x: Tensor) -> Tensor:
        state, total = None, 0
        for time in range(x.shape[1]):
            for _ in range(self.times):
                state = self.cell(x[:, time], state)
                total = total + sum(state if isinstance(state, tuple) else (state,))
        return self.out(total)


class TwoOutputs(nn.Module):
    """A layer of its own parameters whose second output is made from the first."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.shift = nn.Parameter(torch.ones(6, 5)), nn.Parameter(torch.ones(5))

    def forward(self, x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        first = torch.tanh(x @ self.weight)
        return first, {"second": first * self.shift, "same": first}


class UsesTwo(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.two, self.out = TwoOutputs(), nn.Linear(5, 2)

    def forward(self, x: Tensor) -> Tensor:
        first, others = self.two(x)
        return self.out(first + others["second"] * others["same"])


def losses_of(out: Tensor) -> Tensor:
    """One loss for each example, with a gradient that depends on the outputs."""
    weights = torch.cos(torch.arange(out.shape[1], dtype=out.dtype))
    return ((out * weights).sin() + out**2 / 2).sum(1)


def names_of(model: nn.Module) -> dict[nn.Parameter, str]:
    return {parameter: name for name, parameter in model.named_parameters() if parameter.requires_grad}


def gradients(model: nn.Module, x: Any, losses: Callable[[Tensor], Tensor] = losses_of) -> PerExampleGradients:
    """The gradients of a batch by one backward pass."""
    recorder = LayerCallRecorder(model)
    recorder.active = True
    found = PerExampleGradients(recorder, losses(model(x)), names_of(model), len(x))
    recorder.close()
    return found


def loop(model: nn.Module, x: Tensor) -> dict[str, Tensor]:
    """The gradient of each example, from a forward and a backward pass of its own."""
    names = names_of(model)
    rows = [torch.autograd.grad(losses_of(model(row[None])).sum(), list(names), allow_unused=True) for row in x]
    return {
        name: torch.stack([torch.zeros_like(p) if row[i] is None else row[i] for row in rows])
        for i, (p, name) in enumerate(names.items())
    }


def values(shape: tuple[int, ...], seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    """Numbers like normal ones, the same for a seed."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def words(shape: tuple[int, ...], seed: int = 0) -> Tensor:
    return torch.randint(0, 7, shape, generator=torch.Generator().manual_seed(seed))


def seeded(make: Callable[[], nn.Module], seed: int = 0) -> nn.Module:
    """A model with weights that follow from a seed, scales included."""
    model = make()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.5 * torch.randn(parameter.shape, generator=generator))
    return model


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "linear": (lambda: Summed(nn.Linear(4, 3)), (4,)),
    "linear without bias": (lambda: Summed(nn.Linear(4, 3, bias=False)), (4,)),
    "linear on few positions of many features": (lambda: Summed(nn.Linear(40, 30)), (3, 40)),
    "linear on many positions": (lambda: Summed(nn.Linear(4, 3)), (9, 4)),
    "linear on a grid": (lambda: Summed(nn.Linear(4, 3)), (3, 2, 4)),
    "two layers": (lambda: Summed(nn.Linear(4, 5), nn.ReLU(inplace=True), nn.Linear(5, 3)), (4,)),
    "conv1d": (lambda: Summed(nn.Conv1d(2, 3, 3)), (2, 8)),
    "conv1d same": (lambda: Summed(nn.Conv1d(2, 3, 3, padding="same", dilation=2)), (2, 8)),
    "conv1d causal": (lambda: Summed(nn.Conv1d(4, 4, 3, dilation=2, padding=4, groups=4)), (4, 8)),
    "conv2d": (lambda: Summed(nn.Conv2d(2, 4, 3, stride=2, padding=1)), (2, 7, 6)),
    "conv2d groups": (lambda: Summed(nn.Conv2d(4, 6, (3, 2), stride=(1, 2), groups=2, dilation=(2, 1))), (4, 7, 6)),
    "conv2d one patch": (lambda: Summed(nn.Conv2d(2, 30, 6)), (2, 6, 6)),
    "conv2d one patch, groups": (lambda: Summed(nn.Conv2d(4, 8, 6, groups=2)), (4, 6, 6)),
    "conv2d reflect": (lambda: Summed(nn.Conv2d(2, 3, 3, padding=1, padding_mode="reflect")), (2, 5, 5)),
    "conv2d circular": (lambda: Summed(nn.Conv2d(2, 3, 3, padding=1, padding_mode="circular")), (2, 5, 5)),
    "conv3d": (lambda: Summed(nn.Conv3d(2, 3, (2, 3, 1), padding=(0, 1, 0), bias=False)), (2, 3, 4, 2)),
    "layer norm": (lambda: Summed(nn.Linear(4, 6), nn.LayerNorm(6)), (3, 4)),
    "layer norm of two": (lambda: Summed(nn.LayerNorm((3, 4))), (3, 4)),
    "rms norm": (lambda: Summed(nn.Linear(4, 6), nn.RMSNorm(6)), (3, 4)),
    "group norm": (lambda: Summed(nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4), nn.ReLU()), (2, 5, 5)),
    "group norm without positions": (lambda: Summed(nn.Linear(4, 6), nn.GroupNorm(2, 6)), (4,)),
    "instance norm": (lambda: Summed(nn.Conv2d(2, 4, 3), nn.InstanceNorm2d(4, affine=True)), (2, 5, 5)),
    "attention": (Attention, (5, 4)),
    "attention with a mask": (lambda: Attention(mask="truths"), (5, 4)),
    "attention to the past": (lambda: Attention(mask="causal"), (5, 4)),
    "attention with a mask for each head": (lambda: Attention(mask="heads", bias=False), (5, 4)),
    "attention with padding": (lambda: Attention(mask="truths", padding="truths"), (5, 4)),
    "attention with padding of floats": (lambda: Attention(mask="floats", padding="floats", weights=True), (5, 4)),
    "attention and its weights": (lambda: Attention(weights=None), (5, 4)),
    "attention to others": (lambda: Attention("others", padding="truths"), (5, 4)),
    "attention to others and their weights": (lambda: Attention("others", weights=True), (5, 4)),
    "attention with three inputs": (lambda: Attention("apart"), (5, 4)),
    "attention of several widths": (lambda: Attention("widths"), (5, 4)),
    "attention of several widths without bias": (lambda: Attention("widths", bias=False), (5, 4)),
    "attention with learned keys": (lambda: Attention(add_bias_kv=True, add_zero_attn=True), (5, 4)),
    "attention that is used twice": (lambda: Repeated(Attention()), (5, 4)),
    "attention that is used in two ways": (lambda: Repeated(Attention(), Attention("others")), (5, 4)),
    "encoder": (
        lambda: Summed(nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True), nn.Linear(4, 2)),
        (5, 4),
    ),
    "transposed convolution": (lambda: Summed(nn.ConvTranspose2d(2, 3, 3)), (2, 4, 4)),
    "learned slope": (lambda: Summed(nn.Linear(4, 3), nn.PReLU()), (4,)),
    "parameter beside layers": (Position, (5, 4)),
    "layers that are used twice": (Twice, (5, 4)),
    "recurrent": (lambda: Summed(nn.LSTM(4, 3, batch_first=True)), (5, 4)),
    "recurrent, last state": (LastState, (5, 4)),
    "recurrent, tanh": (lambda: Recurrent(nn.RNN, num_layers=2), (5, 4)),
    "recurrent, relu": (lambda: Recurrent(nn.RNN, nonlinearity="relu", bias=False), (5, 4)),
    "recurrent, long memory": (lambda: Recurrent(nn.LSTM, num_layers=2, bidirectional=True, given=True), (5, 4)),
    "cell": (lambda: Cells(nn.RNNCell), (2, 4)),
    "cell, gates": (lambda: Cells(nn.GRUCell), (2, 4)),
    "cell, long memory": (lambda: Cells(nn.LSTMCell), (2, 4)),
    "cell that is used twice": (lambda: Cells(nn.LSTMCell, 2), (2, 4)),
    "outputs that are made from outputs": (UsesTwo, (6,)),
    "recurrent, gates": (lambda: Recurrent(nn.GRU, num_layers=2, bidirectional=True, given=True), (5, 4)),
}
"""Models of floats, and the shape of an example."""

WORDS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "embedding": (lambda: Summed(nn.Embedding(7, 4)), (6,)),
    "embedding with padding": (lambda: Summed(nn.Embedding(7, 4, padding_idx=2), nn.Linear(4, 3)), (6,)),
    "embedding of a grid": (lambda: Summed(nn.Embedding(7, 4), nn.LayerNorm(4)), (3, 2)),
    "tied": (Tied, (6,)),
}
"""Models of words, and the shape of an example."""
