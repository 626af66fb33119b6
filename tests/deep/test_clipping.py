"""Norms and clipped sums equal the loop over examples, for every layer and random stacks of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch", reason="Deep learning needs torch, which is an extra.")

import torch
from torch import Tensor, nn

from discreet.deep import Flat, Normalised, PerLayer
from discreet.deep.clipping import LayerCallRecorder, PerExampleGradients
from discreet.deep.clipping.layer_rule import pair_norms, squares
from discreet.errors import InvalidParameter
from tests.deep.small_models import (
    MODELS,
    WORDS,
    Position,
    Summed,
    Tied,
    gradients,
    loop,
    names_of,
    seeded,
    values,
    words,
)

EXAMPLES = 4
# Rounding of a few hundred products of 32 bits, 2^-24 each, and the raise of norms by at most 100 * 2^-24 S^2.
CLOSE = 2e-4

CASES = [(name, make, values((EXAMPLES, *shape))) for name, (make, shape) in MODELS.items()]
CASES += [(name, make, words((EXAMPLES, *shape))) for name, (make, shape) in WORDS.items()]
each_model = pytest.mark.parametrize(("make", "x"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])


def squared(rows: dict[str, Tensor]) -> Tensor:
    return torch.stack([squares(gradient) for gradient in rows.values()]).sum(0)


def agree(found: dict[str, Tensor], expected: dict[str, Tensor], close: float = CLOSE) -> None:
    assert found.keys() <= expected.keys()
    for name, value in expected.items():
        scale = max(1.0, float(value.abs().max()))
        other = found.get(name, torch.zeros_like(value))
        assert float((other - value).abs().max()) <= close * scale, name


@pytest.mark.sampled(3)
@each_model
def test_norms_are_those_of_the_loop_and_never_below(make: Callable[[], nn.Module], x: Tensor) -> None:
    model = seeded(make)
    total = torch.stack(list(gradients(model, x).squared_norms().values())).sum(0)
    expected = squared(loop(model, x))
    assert torch.allclose(total, expected, rtol=CLOSE, atol=1e-6)


@pytest.mark.sampled(4)
@each_model
@pytest.mark.parametrize("clip", [Flat(0.5), PerLayer(0.7), Normalised(1)], ids=["flat", "per layer", "normalised"])
def test_clipped_sums_are_those_of_the_loop(make: Callable[[], nn.Module], x: Tensor, clip: Any) -> None:
    model = seeded(make)
    rows = loop(model, x)
    weights = clip.weights({name: squares(gradient) for name, gradient in rows.items()})
    expected = {name: torch.tensordot(weights[name].float(), rows[name], dims=1) for name in rows}
    agree(gradients(model, x).clipped_sum(clip), expected)


@pytest.mark.sampled(3)
@each_model
def test_one_example_moves_the_sum_by_no_more_than_the_bound(make: Callable[[], nn.Module], x: Tensor) -> None:
    model, clip = seeded(make), Flat(0.25)
    whole = gradients(model, x).clipped_sum(clip)
    fewer = gradients(model, x[1:]).clipped_sum(clip)
    moved = math.sqrt(sum(float(squares((whole[name] - fewer[name])[None])) for name in whole))
    assert moved <= 0.25
    assert moved > 0.2 or squared(loop(model, x))[0] < 0.25**2  # it is clipped to nearly the bound


class Detour(nn.Module):
    """Has a second layer, which runs only if an example asks for it."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(2, 1), nn.Linear(2, 1)

    def forward(self, x: Tensor) -> Tensor:
        asked = x[:, :1] > 5
        found = self.first(x)
        return found + self.second(x) * asked if bool(asked.any()) else found


def test_a_layer_that_one_example_uses_changes_no_other_examples_share() -> None:
    model, clip = seeded(Detour), PerLayer(0.5)
    others = values((6, 2))
    x = torch.cat([torch.tensor([[9.0, 1.0]]), others])
    whole, fewer = (gradients(model, part).clipped_sum(clip) for part in (x, others))
    apart = [values - fewer.get(name, torch.zeros_like(values)) for name, values in whole.items()]
    assert math.sqrt(sum(float(squares(each[None])) for each in apart)) <= 0.5


@pytest.mark.parametrize("losses", [lambda count: torch.zeros(count, 2), lambda count: torch.zeros(count + 1)])
def test_a_refusal_does_not_tell_how_many_examples_there_are(losses: Callable[[int], Tensor]) -> None:
    told = set()
    for count in (3, 7):
        model = seeded(lambda: Summed(nn.Linear(4, 3)))
        with pytest.raises(InvalidParameter) as refused:
            PerExampleGradients(LayerCallRecorder(model), losses(count), names_of(model), count)
        told.add(str(refused.value))
    assert len(told) == 1


@pytest.mark.parametrize("options", [{"stride": 3}, {"dilation": 2}])
def test_a_number_that_no_patch_contains_silences_its_example(options: dict[str, int]) -> None:
    """Five pixels, of which patches of two or three leave some out; whatever computes the sum may touch them."""
    wide = 8 * EXAMPLES  # so many channels that pairs tell the norm, and no gradient is made
    model = seeded(lambda: Summed(nn.Conv1d(wide, wide, 2 if "stride" in options else 3, **options)))
    x = values((EXAMPLES, wide, 5))
    x[1, :, 3 if "dilation" in options else 2] = math.nan
    rest = torch.cat([x[:1], x[2:]])
    whole, fewer = (gradients(model, part).clipped_sum(Flat(1)) for part in (x, rest))
    agree(whole, fewer)


@pytest.mark.parametrize("layer", [nn.InstanceNorm1d(2, affine=True), nn.Linear(8, 8), nn.GroupNorm(1, 2)])
def test_outputs_that_are_changed_in_place(layer: nn.Module) -> None:
    """Some outputs are views, whose changes in place PyTorch's graph records elsewhere."""
    model = seeded(lambda: Summed(nn.Conv1d(2, 2, 1), layer, nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(16, 2)))
    x = values((EXAMPLES, 2, 8))
    agree(gradients(model, x).squared_norms(), {name: squares(rows) for name, rows in loop(model, x).items()})


@given(data=st.data())
def test_random_stacks(data: st.DataObject) -> None:
    width, channels, layers = 8, 2, []
    for _ in range(data.draw(st.integers(1, 4))):
        kind = data.draw(st.sampled_from(["conv", "norm", "instance", "relu"]))
        if kind == "conv":
            groups = data.draw(st.sampled_from([1, 2]))
            side, stride, gap = (data.draw(st.integers(1, 2)) for _ in range(3))
            layers += [nn.Conv1d(channels, 4, side, stride, padding=1, dilation=gap, groups=groups)]
            channels, width = 4, (width + 2 - gap * (side - 1) - 1) // stride + 1
        elif kind == "norm":
            layers += [nn.GroupNorm(data.draw(st.sampled_from([1, 2])), channels)]
        elif kind == "instance" and width > 1:
            layers += [nn.InstanceNorm1d(channels, affine=True)]
        else:
            again = bool(layers) and isinstance(layers[-1], nn.ReLU)  # PyTorch itself needs what that has put out
            layers += [nn.ReLU(inplace=data.draw(st.booleans()) and not again)]
    head = [nn.Flatten(), nn.Linear(channels * width, 3), nn.Tanh(), nn.Linear(3, 2)]
    model = seeded(lambda: Summed(nn.Conv1d(2, 2, 1), *layers, *head).double(), seed=data.draw(st.integers(0, 99)))
    x = values((3, 2, 8), data.draw(st.integers(0, 99)), torch.float64)
    rows = loop(model, x)
    clip = Flat(data.draw(st.sampled_from([0.1, 1, 10])))
    weights = clip.weights({name: squares(gradient) for name, gradient in rows.items()})
    agree(
        gradients(model, x).clipped_sum(clip),
        {name: torch.tensordot(weights[name], rows[name], dims=1) for name in rows},
        close=1e-9,
    )


@pytest.mark.parametrize(("positions", "width", "height"), [(3, 40, 30), (40, 3, 5), (7, 7, 7)])
def test_norms_of_positions_that_cancel_are_not_too_small(positions: int, width: int, height: int) -> None:
    """Positions of opposite signs leave a sum that rounding would hide."""
    a = 1000 * values((5, 1, positions, width))
    e = values((5, 1, positions, height))
    a, e = torch.cat([a, a], 2), torch.cat([e, -e * (1 + 1e-6)], 2)
    exact = squares(torch.matmul(e.double().mT, a.double()))
    assert bool((pair_norms(a, e) >= exact).all())
    assert bool((pair_norms(a, e) <= exact + 200 * 2.0**-24 * squares(a) * squares(e)).all())


def test_frozen_parameters_are_left_alone() -> None:
    model = seeded(lambda: Summed(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)))
    model.body[0].weight.requires_grad_(False)
    x = values((EXAMPLES, 4))
    found = gradients(model, x).clipped_sum(Flat(1000))
    assert found.keys() == {"body.0.bias", "body.2.weight", "body.2.bias"}
    agree(found, {name: rows.sum(0) for name, rows in loop(model, x).items()})


def test_gradients_of_uses_are_added_before_their_norm() -> None:
    """Norms of single uses, added up, are too small by up to the root of their number."""
    model, x = seeded(Tied), words((EXAMPLES, 6))
    found = gradients(model, x)
    assert len([call for call in found.calls if call.layer is model.inner]) == 1  # at the positions of both
    rows = loop(model, x)
    assert torch.allclose(found.squared_norms()["inner.weight"], squares(rows["inner.weight"]), rtol=CLOSE)
    assert torch.allclose(found.squared_norms()["words.weight"], squares(rows["words.weight"]), rtol=CLOSE)


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e30])
@pytest.mark.sampled(4)
@each_model
def test_an_example_that_is_no_number_contributes_nothing(make: Callable[[], nn.Module], x: Tensor, bad: float) -> None:
    if not x.is_floating_point():
        pytest.skip("Words are always numbers.")
    model = seeded(make)
    spoiled = x.clone()
    spoiled[1] = bad
    found = gradients(model, spoiled).clipped_sum(Flat(0.5))
    without = gradients(model, x[[0, 2, 3]]).clipped_sum(Flat(0.5))
    rows = loop(model, spoiled)
    if bool(torch.isfinite(squared(rows)[1])):
        pytest.skip("The layer makes a number of it.")
    agree(found, without)


@pytest.mark.parametrize(
    ("layer", "told"),
    [
        (nn.BatchNorm2d(3), "GroupNorm"),
        (nn.InstanceNorm1d(3, affine=True, track_running_stats=True), "track_running_stats=False"),
        (nn.Embedding(3, 2, max_norm=1.0), "without noise"),
        (nn.Embedding(3, 2, scale_grad_by_freq=True), "private"),
        (nn.LSTM(3, 2), "batch_first=True"),
        (nn.MultiheadAttention(4, 2), "batch_first=True"),
    ],
)
def test_layers_that_mix_examples_are_refused(layer: nn.Module, told: str) -> None:
    with pytest.raises(InvalidParameter, match=told):
        gradients(Summed(layer), values((2, 3, 4)))


@pytest.mark.parametrize("losses", [torch.mean, torch.sum, lambda out: out, lambda out: out.sum(1)[:2]])
def test_losses_that_are_not_one_for_each_example_are_refused(losses: Callable[[Tensor], Tensor]) -> None:
    with pytest.raises(InvalidParameter, match='reduction="none"'):
        gradients(seeded(lambda: Summed(nn.Linear(4, 3))), values((3, 4)), losses)


def test_examples_along_another_dimension_are_refused() -> None:
    model = seeded(lambda: Summed(nn.Flatten(0, 1), nn.Linear(4, 3)))
    with pytest.raises(InvalidParameter, match="first dimension"):
        gradients(model, values((3, 2, 4)), lambda out: out.reshape(3, -1).sum(1))


def test_inputs_that_change_in_place_are_refused() -> None:
    model = seeded(lambda: Summed(nn.Linear(4, 4), nn.Linear(4, 4)))

    def losses(out: Tensor) -> Tensor:
        x.add_(1)
        return out.sum(1)

    x = values((3, 4))
    with pytest.raises(InvalidParameter, match="stays as it is"):
        gradients(model, x, losses)


class Both(tuple[Tensor, ...]):
    """What a layer gives, in a form of its own."""

    __slots__ = ()


class Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x: Tensor) -> Both:
        return Both((x * self.scale, x))


def test_outputs_are_handed_on_as_they_are() -> None:
    model = Summed(nn.Linear(4, 4), Pair())

    def losses(out: Tensor) -> Tensor:
        return out.sum(1)

    assert isinstance(model.body(values((3, 4))), Both)
    recorded: list[Any] = []
    model.body.register_forward_hook(lambda *given: recorded.append(given[-1]))
    gradients(model, values((3, 4)), losses)
    assert isinstance(recorded[0], Both)


def test_layers_without_a_rule_are_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="discreet.deep"):
        gradients(seeded(Position), values((2, 5, 4)))
    assert [record.getMessage() for record in caplog.records] == [
        "Position has no clipping rule: its gradients are computed example by example."
    ]


@pytest.mark.parametrize("bound", [0, -1, 2.0**-31, 2.0**31, math.inf])
def test_bounds_are_positive_and_moderate(bound: float) -> None:
    with pytest.raises(InvalidParameter):
        Flat(bound)
