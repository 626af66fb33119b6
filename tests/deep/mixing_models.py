"""Models and losses that mix examples, each in its own way, and honest ones that look alike.

Each is a model, a function of model and batch that gives a loss for each example, and what an example is made of.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pack_padded_sequence

from tests.deep.small_models import Cells, Recurrent, Summed, Tied, UsesTwo, seeded, values

ROWS = 12


def floats() -> tuple[Tensor, ...]:
    """Examples of six numbers, and a label."""
    return values((ROWS, 6)), torch.arange(ROWS) % 2


def series() -> tuple[Tensor, ...]:
    """Examples of five times, and a label."""
    return values((ROWS, 5, 4)), torch.arange(ROWS) % 2


def pairs() -> tuple[Tensor, ...]:
    """Examples of two times, and a label."""
    return values((ROWS, 2, 4)), torch.arange(ROWS) % 2


def images() -> tuple[Tensor, ...]:
    """Examples of grey values as bytes, and a label."""
    return (values((ROWS, 1, 6, 6)).abs() * 60).clamp(0, 255).to(torch.uint8), torch.arange(ROWS) % 2


def texts() -> tuple[Tensor, ...]:
    """Examples of words, of which 0 is no word, and a label."""
    lengths = 1 + torch.arange(ROWS) % 7
    return (torch.arange(8) < lengths[:, None]).long(), torch.arange(ROWS) % 2


def masked() -> tuple[Tensor, ...]:
    """Examples of numbers at eight places, which places count, and a label."""
    lengths = 1 + torch.arange(ROWS) % 7
    return values((ROWS, 8, 4)), torch.arange(8) < lengths[:, None], torch.arange(ROWS) % 2


Loss = Callable[[Any, Any], Tensor]


@dataclass(frozen=True)
class Case:
    """A model, what its losses are, and what its examples are."""

    model: Callable[[], nn.Module]
    loss: Loss
    data: Callable[[], tuple[Tensor, ...]] = floats

    def make(self) -> nn.Module:
        return seeded(self.model)


def plain(net: Any, batch: Any) -> Tensor:
    return cross_entropy(net(batch[0]), batch[-1], reduction="none")


def mlp(width: int = 6, outputs: int = 2) -> nn.Module:
    return nn.Sequential(nn.Linear(width, 5), nn.Tanh(), nn.Linear(5, outputs))


class Before(nn.Module):
    """Does something to a batch before a network, and something to what the network gives."""

    def __init__(self, before: Callable[[Tensor], Tensor], net: Callable[[], nn.Module] = mlp) -> None:
        super().__init__()
        self.before, self.net = before, net()

    def forward(self, x: Tensor) -> Tensor:
        return self.net(self.before(x))


class Between(nn.Module):
    """Does something to a batch between two layers."""

    def __init__(self, between: Callable[[Tensor], Tensor], width: int = 6) -> None:
        super().__init__()
        self.first, self.between, self.second = nn.Linear(width, 5), between, nn.Linear(5, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(torch.tanh(self.between(self.first(x))))


def before(change: Callable[[Tensor], Tensor]) -> Case:
    return Case(lambda: Before(change), plain)


def between(change: Callable[[Tensor], Tensor]) -> Case:
    return Case(lambda: Between(change), plain)


def losses(change: Callable[[Tensor], Tensor]) -> Case:
    return Case(mlp, lambda net, batch: change(plain(net, batch)))


def ranks(x: Tensor) -> Tensor:
    """Quantile normalisation: every number by its rank in the batch."""
    return x.argsort(0).argsort(0).to(x.dtype) / len(x)


def sorted_by_first(x: Tensor) -> Tensor:
    return x[x[:, 0].argsort()]


class Words(nn.Module):
    """An average of the words of a text, of which 0 is none."""

    def __init__(self, over: str = "own") -> None:
        super().__init__()
        self.table, self.out, self.over = nn.Embedding(7, 4, padding_idx=0), nn.Linear(4, 2), over

    def forward(self, words: Tensor) -> Tensor:
        lengths = (words != 0).sum(1)
        if self.over == "sorted":
            words = words[lengths.argsort(descending=True)]
        elif self.over == "cut":
            words = words[:, : int(lengths.max())]
        divisor = lengths.max().expand(len(words)) if self.over == "longest" else (words != 0).sum(1)
        known = self.table(words) * (words != 0)[..., None]
        mean = known.sum(1) / divisor.clamp(min=1)[:, None]
        return self.out(mean - 1e-9 * mean.mean(0) if self.over == "share" else mean)


class Packed(nn.Module):
    """A recurrent network on packed sequences, sorted by length, whose order is left as it is."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.out = nn.GRU(4, 3, batch_first=True), nn.Linear(3, 2)

    def forward(self, batch: Any) -> Tensor:
        x, mask = batch[0], batch[1]
        lengths, order = mask.sum(1).cpu().clamp(min=1).sort(descending=True)
        packed: Any = pack_padded_sequence(x[order], lengths, batch_first=True)
        return self.out(self.cell(packed)[1][0])


class Masked(nn.Module):
    """An average of the places that count, after an encoder; or a sum divided by the most that count anywhere."""

    def __init__(self, over: str = "own", dropout: float = 0.0) -> None:
        super().__init__()
        self.body = nn.TransformerEncoderLayer(4, 2, 5, dropout=dropout, batch_first=True)
        self.out, self.over = nn.Linear(4, 2), over

    def forward(self, batch: Any) -> Tensor:
        x, mask = batch[0], batch[1]
        if self.over == "cut":  # to the longest: honest, since what is cut off counts nowhere
            most = max(1, int(mask.sum(1).max()))
            x, mask = x[:, :most], mask[:, :most]
        hidden = self.body(x, src_key_padding_mask=~mask)
        counts = mask.sum(1).max() if self.over == "longest" else mask.sum(1, keepdim=True)
        return self.out((hidden * mask[..., None]).sum(1) / counts)


def of_masked(net: Any, batch: Any) -> Tensor:
    return cross_entropy(net(batch), batch[-1], reduction="none")


class AcrossBatch(nn.Module):
    """Attention in which the examples of a batch are positions."""

    def __init__(self) -> None:
        super().__init__()
        self.attention, self.out = nn.MultiheadAttention(6, 2, batch_first=True), nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        together = functional.scaled_dot_product_attention(x[None], x[None], x[None])[0]
        return self.out(self.attention(together[:, None], together[:, None], together[:, None])[0][:, 0])


class MixingLayer(nn.Module):
    """A layer with a parameter that mixes examples inside of its own call."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.out = nn.Parameter(torch.ones(6)), nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.out((x - x.mean(0)) * self.scale)


class Statistics(nn.Module):
    """Keeps a mean of what it saw: in a buffer, in an attribute, or in a frozen parameter."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.where, self.net, self.seen = where, mlp(), 0.0
        if where == "buffer":
            self.register_buffer("mean", torch.zeros(6))
        elif where == "parameter":
            self.mean = nn.Parameter(torch.zeros(6), requires_grad=False)
        elif where == "new buffer":
            self.mean = torch.zeros(6)

    def forward(self, x: Tensor) -> Tensor:
        if self.where == "attribute":
            self.seen = 0.9 * self.seen + float(x.detach().nan_to_num().mean())
            return self.net(x) * (1 + self.seen)
        if self.where == "new buffer":
            if isinstance(getattr(self, "mean", None), Tensor):
                mean = self.mean
                self.__dict__.pop("mean", None)
                self._buffers["mean"] = mean.to(x.device) + x.detach().nan_to_num().mean(0)
            return self.net(x)
        with torch.no_grad():
            self.mean.mul_(0.9).add_(x.nan_to_num().mean(0))
        return self.net(x)


class EvaluationStatistics(nn.Module):
    """Normalises by kept statistics, which it updates in evaluation, too."""

    def __init__(self) -> None:
        super().__init__()
        self.net = mlp()
        self.register_buffer("mean", torch.zeros(6))
        self.register_buffer("variance", torch.ones(6))

    def forward(self, x: Tensor) -> Tensor:
        functional.batch_norm(x.detach().nan_to_num(), self.mean, self.variance, training=True)
        return self.net(functional.batch_norm(x, self.mean, self.variance, training=False))


class InTraining(nn.Module):
    """Mixes examples in training only, beside a dropout of its own or of PyTorch."""

    def __init__(self, dropout: str) -> None:
        super().__init__()
        self.net, self.kind, self.layer = mlp(), dropout, nn.Dropout(0.3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.layer(x) if self.kind == "layer" else functional.dropout(x, 0.3, self.training)
        return self.net(x - x.mean(0) if self.training else x)


class SizeInTraining(InTraining):
    """Divides by the size of the batch in training only, beside PyTorch's dropout."""

    def forward(self, x: Tensor) -> Tensor:
        x = self.layer(x)
        return self.net(x / len(x) if self.training else x)


def mixup(net: Any, batch: Any) -> Tensor:
    x, y = batch[0], batch[-1]
    return plain(net, (0.7 * x + 0.3 * x.flip(0), y)) * 0.7 + plain(net, (x, y.flip(0))) * 0.3


def contrastive(net: Any, batch: Any) -> Tensor:
    z = functional.normalize(net(batch[0]), dim=1)
    return cross_entropy(z @ z.T / 0.5, torch.arange(len(z), device=z.device), reduction="none")


def batch_hard(net: Any, batch: Any) -> Tensor:
    """Triplets of each example with its nearest example of another class, and its farthest of its own."""
    z, y = net(batch[0]), batch[-1]
    apart = (z[:, None] - z[None]).square().sum(-1)
    same = y[:, None] == y[None]
    return functional.softplus((apart * same).amax(1) - apart.masked_fill(same, 1e9).amin(1).clamp(max=1e3))


def focal(net: Any, batch: Any) -> Tensor:
    each = plain(net, batch)
    weights = (1 - torch.exp(-each)) ** 2
    return weights * each / weights.detach().sum()


def class_weights(net: Any, batch: Any) -> Tensor:
    weights = torch.tensor([1.0, 3.0], device=batch[-1].device)
    each = cross_entropy(net(batch[0]), batch[-1], weights, reduction="none")
    return each / weights[batch[-1]].sum()


def batch_prior(net: Any, batch: Any) -> Tensor:
    """Labels that are smoothed toward how often each class is in the batch."""
    out, hot = net(batch[0]), functional.one_hot(batch[-1], 2).float()
    return -((0.9 * hot + 0.1 * hot.mean(0)) * out.log_softmax(1)).sum(1)


def skipped(net: Any, batch: Any) -> Tensor:
    """Leaves out a batch in which something is no number."""
    each = plain(net, batch)
    return each if bool(torch.isfinite(each).all()) else each.nan_to_num() * 0


def filled(net: Any, batch: Any) -> Tensor:
    """Fills missing numbers with the mean of the batch."""
    x = batch[0]
    return plain(net, (torch.where(x.isnan(), x.nanmean(0), x), batch[-1]))


def hardest(net: Any, batch: Any) -> Tensor:
    """Learns from the half of the batch with the largest losses."""
    each = plain(net, batch)
    return each * (each >= each.detach().nan_to_num(1e9).median())


def of_pairs(net: Any, batch: Any) -> Tensor:
    """Adds each example to its neighbour, in batches of an even size."""
    x = batch[0]
    if len(x) % 2 == 0:
        x = x + x.reshape(len(x) // 2, 2, -1).flip(1).reshape(x.shape)
    return plain(net, (x, batch[-1]))


def labels_only(net: Any, batch: Any) -> Tensor:
    """Weights examples by how rare their class is in the batch."""
    counts = functional.one_hot(batch[-1], 2).sum(0).clamp(min=1)
    return plain(net, batch) / counts[batch[-1]]


def turned(net: Any, batch: Any) -> Tensor:
    """Losses that stay, and gradients that another example turns around."""
    x = batch[0]
    each = plain(net, batch)
    sign = torch.sign(x.nan_to_num().detach().sum() - 2 * x.nan_to_num().detach().sum(1))
    return each.detach() + sign * (each - each.detach())


MIXING: dict[str, Case] = {
    "outliers cut at the batch": before(lambda x: torch.minimum(x, 50 * x.abs().median())),
    "standardised batch": before(lambda x: (x - x.mean()) / x.std()),
    "centred batch": before(lambda x: x - x.mean()),
    "centred columns": before(lambda x: x - x.mean(0)),
    "a small share of the mean": before(lambda x: x - 1e-6 * x.mean(0)),
    "a small share of numbers": before(lambda x: x - 1e-6 * torch.nan_to_num(x).mean(0)),
    "a detached mean": before(lambda x: x - x.detach().mean(0)),
    "a mean without NaN": before(lambda x: x - torch.nanmean(x, 0)),
    "a mean of numbers": before(lambda x: x - torch.nan_to_num(x).mean(0)),
    "a mean where finite": before(lambda x: x - torch.where(x.isfinite(), x, 0).mean(0)),
    "largest number": before(lambda x: x / x.amax()),
    "largest of grey values": Case(
        lambda: Before(lambda x: (x.float() / x.amax()).flatten(1), lambda: mlp(36)), plain, images
    ),
    "largest up to one": before(lambda x: x / x.abs().amax().clamp(max=0.1)),
    "columns of length one": before(lambda x: functional.normalize(x, dim=0)),
    "quantiles": before(ranks),
    "median": before(lambda x: x - x.median(0).values),
    "rolled": before(lambda x: x + 0.1 * x.roll(1, 0)),
    "flipped": before(lambda x: 0.9 * x + 0.1 * x.flip(0)),
    "the first example": before(lambda x: x - 0.1 * x[:1]),
    "the last example": before(lambda x: x - 0.1 * x[-1:]),
    "sums so far": before(lambda x: x.cumsum(0)),
    "softmax over the batch": between(lambda x: x.softmax(0)),
    "sorted": before(sorted_by_first),
    "sorted between layers": between(sorted_by_first),
    "centred between layers": between(lambda x: x - x.mean(0)),
    "a tiny share between layers": between(lambda x: x - 1e-9 * x.mean(0)),
    "a tiny share of numbers between layers": between(lambda x: x - 1e-9 * torch.nan_to_num(x).mean(0)),
    "a tiny share of the second example": between(lambda x: x - 1e-9 * x[1 % len(x)]),
    "largest between layers": between(lambda x: x / x.detach().abs().amax()),
    "dropped channels of the batch": between(lambda x: x * (x.detach().mean(0) > 0)),
    "attention across the batch": Case(AcrossBatch, plain),
    "a layer that mixes": Case(MixingLayer, plain),
    "mixed in training, dropout of a layer": Case(lambda: InTraining("layer"), plain),
    "mixed in training, dropout of a function": Case(lambda: InTraining("function"), plain),
    "size in training": Case(lambda: SizeInTraining("layer"), plain),
    "mixup by flip": Case(mlp, mixup),
    "contrastive": Case(mlp, contrastive),
    "batch-hard triplets": Case(mlp, batch_hard),
    "focal, divided by the batch": Case(mlp, focal),
    "class weights, divided by the batch": Case(mlp, class_weights),
    "smoothed by the batch": Case(mlp, batch_prior),
    "skipped if not finite": Case(mlp, skipped),
    "filled from the batch": Case(mlp, filled),
    "hardest half": Case(mlp, hardest),
    "pairs in even batches": Case(mlp, of_pairs),
    "counts of classes": Case(mlp, labels_only),
    "gradients that turn around": Case(mlp, turned),
    "divided by the size": losses(lambda each: each / len(each)),
    "divided by the losses": losses(lambda each: each / each.detach().nansum()),
    "less the mean": losses(lambda each: each - each.mean()),
    "less the detached least": losses(lambda each: each * (each.detach() - each.detach().min() + 1)),
    "sorted losses": losses(lambda each: each.sort().values),
    "sorted by length": Case(lambda: Words("sorted"), plain, texts),
    "a tiny share of other texts": Case(lambda: Words("share"), plain, texts),
    "divided by the longest text": Case(lambda: Words("longest"), plain, texts),
    "divided by the longest mask": Case(lambda: Masked("longest"), of_masked, masked),
    "a buffer": Case(lambda: Statistics("buffer"), plain),
    "a new buffer": Case(lambda: Statistics("new buffer"), plain),
    "a frozen parameter": Case(lambda: Statistics("parameter"), plain),
    "an attribute": Case(lambda: Statistics("attribute"), plain),
    "statistics in evaluation": Case(EvaluationStatistics, plain),
    "spectral norm": Case(lambda: nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(6, 2))), plain),
    "packed, in the order of lengths": Case(Packed, of_masked, masked),
}
"""What is refused."""


# -------------------------------------------------------------------------------------------------------- honest


def chances(net: Any, batch: Any) -> Tensor:
    """Cross entropy of chances, which ends the program when it sees a NaN."""
    return functional.binary_cross_entropy(torch.sigmoid(net(batch[0]))[:, 0], batch[-1].float(), reduction="none")


def distribution(net: Any, batch: Any) -> Tensor:
    return -torch.distributions.Normal(net(batch[0])[:, 0], 1.0).log_prob(batch[-1].float())


def augmented(net: Any, batch: Any) -> Tensor:
    x = batch[0] + 0.1 * torch.randn_like(batch[0]) if net.training else batch[0]
    return plain(net, (x, batch[-1]))


class Places(nn.Module):
    """Looks up what numbers stand for, which a NaN cannot."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.out = nn.Embedding(9, 3), nn.Linear(18, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.table((4 + 2 * x).clamp(0, 8).long()).flatten(1))


class FunctionalDropout(nn.Module):
    """Dropout without a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.net = mlp()

    def forward(self, x: Tensor) -> Tensor:
        return self.net(functional.dropout(x, 0.3, self.training))


class SharedMask(nn.Module):
    """A dropout mask that all examples share."""

    def __init__(self) -> None:
        super().__init__()
        self.net = mlp()

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x * (torch.rand(x.shape[1], device=x.device) > 0.3) if self.training else x)


class LazyMask(nn.Module):
    """Makes a buffer in its first forward pass, which depends on shapes alone."""

    def __init__(self) -> None:
        super().__init__()
        self.net = mlp()

    def forward(self, x: Tensor) -> Tensor:
        if not hasattr(self, "scale"):
            self.register_buffer("scale", torch.linspace(1, 2, x.shape[1], device=x.device), persistent=False)
        return self.net(x * self.scale)


def encoder(dropout: float = 0.1) -> nn.Module:
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=dropout, batch_first=True)
    return Summed(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Flatten(), nn.Linear(20, 2))


def smoothed(net: Any, batch: Any) -> Tensor:
    weights = torch.tensor([1.0, 3.0], device=batch[-1].device)
    return cross_entropy(net(batch[0]), batch[-1], weights, reduction="none", label_smoothing=0.1)


def own_focal(net: Any, batch: Any) -> Tensor:
    each = plain(net, batch)
    return (1 - torch.exp(-each)) ** 2 * each


HONEST: dict[str, Case] = {
    "plain": Case(mlp, plain),
    "dropout": Case(lambda: nn.Sequential(nn.Linear(6, 5), nn.Dropout(0.5), nn.ReLU(), nn.Linear(5, 2)), plain),
    "dropout of a function": Case(FunctionalDropout, plain),
    "a dropout mask that all share": Case(SharedMask, plain),
    "encoder with dropout": Case(encoder, plain, series),
    "convolution": Case(
        lambda: Before(
            lambda x: x.float() / 255,
            lambda: nn.Sequential(nn.Conv2d(1, 3, 3), nn.GroupNorm(1, 3), nn.Flatten(), nn.Linear(48, 2)),
        ),
        plain,
        images,
    ),
    "standardised examples": before(lambda x: (x - x.mean(1, keepdim=True)) / (x.std(1, keepdim=True) + 1e-3)),
    "LSTM cell": Case(lambda: Cells(nn.LSTMCell), plain, pairs),
    "GRU cell": Case(lambda: Cells(nn.GRUCell), plain, pairs),
    "RNN cell": Case(lambda: Cells(nn.RNNCell), plain, pairs),
    "LSTM cell that is used twice": Case(lambda: Cells(nn.LSTMCell, 2), plain, pairs),
    "recurrent, long memory": Case(lambda: Summed(Recurrent(nn.LSTM), nn.Linear(21, 2)), plain, series),
    "two outputs": Case(UsesTwo, plain),
    "tied words": Case(lambda: Summed(Tied(), nn.Linear(56, 2)), plain, texts),
    "mean of words": Case(Words, plain, texts),
    "cut to the longest text": Case(lambda: Words("cut"), plain, texts),
    "masked": Case(Masked, of_masked, masked),
    "masked, cut to the longest": Case(lambda: Masked("cut"), of_masked, masked),
    "masked, cut to the longest, dropout": Case(lambda: Masked("cut", 0.2), of_masked, masked),
    "cross entropy of chances": Case(mlp, chances),
    "a distribution": Case(mlp, distribution),
    "augmented in training": Case(mlp, augmented),
    "places": Case(Places, plain),
    "class weights and smoothing": Case(mlp, smoothed),
    "focal": Case(mlp, own_focal),
    "weight norm": Case(lambda: nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(6, 2))), plain),
    "a buffer that is made": Case(LazyMask, plain),
}
"""What is accepted."""
