"""Norms and clipped sums equal the loop over examples: random stacks of all layers, adapters, frozen and tied parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch", reason="Deep learning needs torch, which is an extra.")

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrizations
from torch.nn.utils.parametrize import register_parametrization

from discreet.deep import Flat, PerLayer
from discreet.deep.clipping.layer_rule import squares
from discreet.deep.clipping.recorded_calls import trainable_layers
from tests.deep.small_models import Attention, Recurrent, Tied, gradients, loop, seeded, values

EXAMPLES, POSITIONS, WIDTH = 3, 6, 4
# Sums of some hundred products of 64 bits, 2^-53 each, through up to ten layers; norms are raised by up to 200 * 2^-53
# of S^2, which may be some thousand times the squared norm.
CLOSE = 1e-9


def check(model: nn.Module, x: Tensor, bound: float = 0.5) -> None:
    """Compares with the loop, in 64 bits."""
    rows = loop(model, x)
    found = gradients(model, x)
    exact = {name: squares(gradient) for name, gradient in rows.items()}
    squared = found.squared_norms()
    assert squared.keys() <= exact.keys()
    total = sum(exact.values())
    for name, expected in exact.items():
        apart = squared.get(name, torch.zeros_like(expected)) - expected
        assert bool((apart.abs() <= CLOSE * (total + 1)).all()), name
    for clip in (Flat(bound), PerLayer(bound)):
        weights = clip.weights(exact)
        sums = gradients(model, x).clipped_sum(clip)
        for name, gradient in rows.items():
            expected = torch.tensordot(weights[name], gradient, dims=1)
            assert torch.allclose(sums.get(name, torch.zeros_like(expected)), expected, atol=100 * CLOSE), name


# ------------------------------------------------------------------------------------------------------ random stacks


class Block(nn.Module):
    """A layer between two shapes, which takes and gives (examples, positions, width)."""

    def __init__(self, layer: nn.Module, enter: Callable[[Tensor], Tensor], leave: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.layer, self.enter, self.leave = layer, enter, leave

    def forward(self, x: Tensor) -> Tensor:
        return self.leave(self.layer(self.enter(x)))


class Words(nn.Module):
    """Looks up what a position's sum stands for."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.table = nn.Embedding(7, WIDTH, **options)

    def forward(self, x: Tensor) -> Tensor:
        return self.table((3 * x.detach().sum(-1)).long() % 7)


class Stack(nn.Module):
    """Blocks one after the other, some of them more than once, some beside the identity."""

    def __init__(self, blocks: list[nn.Module], order: list[tuple[int, bool]]) -> None:
        super().__init__()
        self.blocks, self.order = nn.ModuleList(blocks), order
        self.head = nn.Linear(WIDTH, 2)

    def forward(self, x: Tensor) -> Tensor:
        for place, beside in self.order:
            y = torch.tanh(self.blocks[place](x))
            x = x + y if beside else y
        return self.head(x).flatten(1)


def same(x: Tensor) -> Tensor:
    return x


def turned(x: Tensor) -> Tensor:
    return x.mT


def convolution(data: st.DataObject, sides: int) -> nn.Module:
    """A convolution of any kind, on what a sequence of 24 numbers looks like in so many dimensions."""
    kind = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[sides - 1]
    shape, back = {1: ((4, 6), (6,)), 2: ((2, 4, 3), (3, 2)), 3: ((2, 2, 2, 3), (1, 3, 2))}[sides]
    pool = (functional.adaptive_avg_pool1d, functional.adaptive_avg_pool2d, functional.adaptive_avg_pool3d)[sides - 1]
    mode = data.draw(st.sampled_from(["zeros", "circular", "replicate", "reflect"]))
    options = {
        "kernel_size": tuple(data.draw(st.integers(1, 2)) for _ in range(sides)),
        "stride": data.draw(st.integers(1, 2)),
        "dilation": data.draw(st.integers(1, 2)),
        "padding": 1,
        "padding_mode": mode,
        "groups": data.draw(st.sampled_from([1, 2])),
        "bias": data.draw(st.booleans()),
    }
    if options["stride"] == 1 and data.draw(st.booleans()):
        options["padding"] = "same"
    layer = kind(shape[0], WIDTH, **options)
    return Block(layer, lambda x: x.reshape(len(x), *shape), lambda y: pool(y, back).flatten(2).mT)


def attention(data: st.DataObject) -> nn.Module:
    how = data.draw(st.sampled_from(["self", "others", "apart"]))
    mask = data.draw(st.sampled_from([None, "truths", "floats", "heads", "causal"]))
    layer = Attention(how, mask, None, False, bias=data.draw(st.booleans()))
    return Block(layer, same, lambda y: y.reshape(len(y), POSITIONS, WIDTH))


def recurrent(data: st.DataObject) -> nn.Module:
    kind = data.draw(st.sampled_from([nn.RNN, nn.GRU, nn.LSTM]))
    options = {"bidirectional": data.draw(st.booleans()), "num_layers": data.draw(st.integers(1, 2))}
    layer = Recurrent(kind, given=data.draw(st.booleans()), bias=data.draw(st.booleans()), **options)
    return Block(layer, same, lambda y: functional.adaptive_avg_pool1d(y, 24).reshape(-1, POSITIONS, WIDTH))


def encoder(data: st.DataObject) -> nn.Module:
    first = data.draw(st.booleans())
    layer = nn.TransformerEncoderLayer(WIDTH, 2, 5, dropout=0.0, batch_first=True, norm_first=first)
    return Block(layer, same, same)


KINDS: dict[str, Callable[[st.DataObject], nn.Module]] = {
    "linear": lambda data: Block(nn.Linear(WIDTH, WIDTH, bias=data.draw(st.booleans())), same, same),
    "conv1d": lambda data: convolution(data, 1),
    "conv2d": lambda data: convolution(data, 2),
    "conv3d": lambda data: convolution(data, 3),
    "transposed": lambda _: Block(nn.ConvTranspose1d(WIDTH, WIDTH, 3, padding=1), turned, turned),
    "words": lambda data: Words(padding_idx=data.draw(st.sampled_from([None, 2]))),
    "layer norm": lambda _: Block(nn.LayerNorm(WIDTH), same, same),
    "layer norm of all": lambda _: Block(nn.LayerNorm((POSITIONS, WIDTH)), same, same),
    "rms norm": lambda _: Block(nn.RMSNorm(WIDTH), same, same),
    "group norm": lambda data: Block(nn.GroupNorm(data.draw(st.sampled_from([1, 2])), WIDTH), turned, turned),
    "instance norm": lambda _: Block(nn.InstanceNorm1d(WIDTH, affine=True), turned, turned),
    "slope": lambda _: Block(nn.PReLU(), same, same),
    "attention": attention,
    "recurrent": recurrent,
    "encoder": encoder,
}


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel:UserWarning")
@given(data=st.data())
def test_random_stacks_of_all_layers(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4))
    blocks = [KINDS[name](data) for name in names]
    again = data.draw(st.lists(st.integers(0, len(blocks) - 1), max_size=2))
    order = [(place, data.draw(st.booleans())) for place in [*range(len(blocks)), *again]]
    model = seeded(lambda: Stack(blocks, order).double(), seed=data.draw(st.integers(0, 99)))
    frozen = data.draw(st.sampled_from(["none", "none", "matrices", "some"]))
    for place, parameter in enumerate(model.blocks.parameters()):
        parameter.requires_grad_(frozen == "none" or (parameter.dim() < 2 if frozen == "matrices" else place % 2 == 0))
    check(model, values((EXAMPLES, POSITIONS, WIDTH), data.draw(st.integers(0, 99)), torch.float64))


# ------------------------------------------------------------------------------------- adapters, frozen and tied parts


class Adapted(nn.Module):
    """A frozen layer and two narrow layers beside it."""

    def __init__(self, width: int = WIDTH, height: int = WIDTH) -> None:
        super().__init__()
        self.base = nn.Linear(width, height).requires_grad_(False)
        self.down, self.up = nn.Linear(width, 2, bias=False), nn.Linear(2, height, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + self.up(self.down(x)) / 2


class AdaptedByParameters(nn.Module):
    """The same with matrices of its own."""

    def __init__(self, width: int = WIDTH, height: int = WIDTH) -> None:
        super().__init__()
        self.base = nn.Linear(width, height).requires_grad_(False)
        self.down, self.up = nn.Parameter(torch.zeros(2, width)), nn.Parameter(torch.zeros(height, 2))

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + x @ self.down.T @ self.up.T / 2


class AdaptedLinear(nn.Linear):
    """The same as a linear layer that is none."""

    def __init__(self, width: int = WIDTH, height: int = WIDTH) -> None:
        super().__init__(width, height)
        self.down, self.up = nn.Parameter(torch.zeros(2, width)), nn.Parameter(torch.zeros(height, 2))
        self.weight.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + x @ self.down.T @ self.up.T / 2


@pytest.mark.parametrize("kind", [Adapted, AdaptedByParameters, AdaptedLinear])
def test_adapters(kind: Any) -> None:
    inner = nn.TransformerEncoderLayer(WIDTH, 2, 5, dropout=0.0, batch_first=True).requires_grad_(False)
    inner.linear1, inner.linear2 = kind(WIDTH, 5), kind(5, WIDTH)
    model = seeded(lambda: nn.Sequential(kind(), inner, nn.Flatten()).double())
    assert all("base" not in name for name in gradients(model, values((3, 6, 4), 0, torch.float64)).squared_norms())
    check(model, values((EXAMPLES, POSITIONS, WIDTH), 1, torch.float64))


@pytest.mark.parametrize("seed", [0, 1])
def test_biases_alone(seed: int) -> None:
    parts = [nn.Conv1d(POSITIONS, POSITIONS, 1), nn.TransformerEncoderLayer(WIDTH, 2, 5, dropout=0.0, batch_first=True)]
    model = seeded(lambda: nn.Sequential(*parts, nn.GRU(WIDTH, 3, batch_first=True), First()).double(), seed)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("bias" in name)
    assert len([p for p in model.parameters() if p.requires_grad]) == 9
    check(model, values((EXAMPLES, POSITIONS, WIDTH), seed, torch.float64))


class First(nn.Module):
    def forward(self, several: tuple[Tensor, ...]) -> Tensor:
        return several[0].flatten(1)


class TiedAcross(nn.Module):
    """One matrix in layers of three kinds: a linear layer, attention and a convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.attention = nn.Linear(WIDTH, WIDTH), Attention()
        self.second = nn.Linear(WIDTH, WIDTH, bias=False)
        self.attention.attention.out_proj.weight = self.first.weight
        self.second.weight = self.first.weight

    def forward(self, x: Tensor) -> Tensor:
        y = self.attention(torch.tanh(self.first(x))).reshape(x.shape)
        return self.second(y).flatten(1)


def test_a_matrix_that_layers_of_several_kinds_share() -> None:
    check(seeded(lambda: TiedAcross().double()), values((EXAMPLES, POSITIONS, WIDTH), 0, torch.float64))


def test_tied_words() -> None:
    model = seeded(lambda: Tied().double())
    check(model, torch.randint(0, 7, (EXAMPLES, POSITIONS), generator=torch.Generator().manual_seed(0)))


def test_mutant_norms_of_uses_that_are_added_up_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """A layer that is used twice, each use clipped by a norm of its own."""
    model = seeded(lambda: TiedAcross().double())
    x = values((EXAMPLES, POSITIONS, WIDTH), 0, torch.float64)
    monkeypatch.setattr("discreet.deep.clipping.clipped_sum.squares", lambda rows: squares(rows) / 2)
    with pytest.raises(AssertionError):
        check(model, x)


# ------------------------------------------------------------------------------- weights made from other parameters


def normed(make: Callable[[nn.Module], nn.Module]) -> nn.Module:
    inner = make(nn.Linear(WIDTH, WIDTH))
    return seeded(
        lambda: nn.Sequential(inner, nn.Tanh(), nn.Linear(WIDTH, 2), inner_twice(inner), nn.Flatten()).double()
    )


def inner_twice(inner: nn.Module) -> nn.Module:
    """The same layer once more, on what the head gives."""
    return Block(inner, lambda y: torch.cat([y, y.cos()], -1), same)


@pytest.mark.filterwarnings("ignore:`torch.nn.utils.weight_norm` is deprecated:FutureWarning")
@pytest.mark.parametrize("make", [parametrizations.weight_norm, torch.nn.utils.weight_norm], ids=["new", "old"])
def test_weights_that_are_made_from_other_parameters(make: Callable[[nn.Module], nn.Module]) -> None:
    model = normed(make)
    x = values((EXAMPLES, POSITIONS, WIDTH), 0, torch.float64)
    assert len(gradients(model, x).squared_norms()) == len(list(model.parameters()))
    check(model, x)


def test_a_layer_beside_made_weights_keeps_its_own_rule() -> None:
    """A module with made weights of its own does not take the parameters of layers inside of it."""

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.scale = nn.Linear(WIDTH, WIDTH), nn.Parameter(torch.ones(WIDTH))

        def forward(self, x: Tensor) -> Tensor:
            return (self.inner(x) * self.scale).flatten(1)

    class Doubled(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return 2 * x

    outer = Outer()
    register_parametrization(outer, "scale", Doubled())
    model = seeded(outer.double)
    layers = dict(trainable_layers(model))
    assert {type(layer).__name__: names for layer, names in layers.items()} == {
        "ParametrizedOuter": ("parametrizations.scale.original",),
        "Linear": ("weight", "bias"),
    }
    check(model, values((EXAMPLES, POSITIONS, WIDTH), 0, torch.float64))
