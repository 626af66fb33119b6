"""Training under autocast: products of bfloat16, added up in 32 bits, and more of the bound left for rounding."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch", reason="Deep learning needs torch, which is an extra.")

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import TensorDataset

from discreet.deep import Flat, Trainer
from discreet.deep.clipping import layer_rule, linear_layers
from discreet.deep.clipping.layer_rule import LayerCall, pair_norms, squares
from discreet.deep.clipping.linear_layers import LinearRule
from discreet.errors import InvalidParameter
from tests.deep.small_models import MODELS, WORDS, Summed, gradients, loop, losses_of, seeded, values, words

# What PyTorch says of processors without such numbers.
pytestmark = pytest.mark.filterwarnings("ignore:mkldnn_matmul:UserWarning", "ignore:Mismatch dtype:UserWarning")

EXAMPLES = 3
# Numbers of 8 bits are rounded by 2^-8, in each of up to three layers, there and back, and the loop's result once more.
CLOSE = 8 * 2.0**-8

LONG = {"recurrent", "recurrent, long memory"}  # PyTorch's own cannot, on processors without such numbers
CASES = {name: (make, values((EXAMPLES, *shape))) for name, (make, shape) in MODELS.items() if name not in LONG}
CASES |= {name: (make, words((EXAMPLES, *shape))) for name, (make, shape) in WORDS.items()}


class Mixed(nn.Module):
    """A model under autocast, and losses outside of it."""

    def __init__(self, inner: nn.Module, dtype: Any = torch.bfloat16) -> None:
        super().__init__()
        self.inner, self.dtype = inner, dtype

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=self.dtype):
            return self.inner(x).float()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CASES)
def test_clipped_sums_are_those_of_the_loop_under_autocast(name: str) -> None:
    make, x = CASES[name]
    model = Mixed(seeded(make))
    rows, clip = loop(model, x), Flat(0.5)
    weights = clip.weights({key: squares(gradient) for key, gradient in rows.items()})
    found = gradients(model, x).clipped_sum(clip)
    expected = {key: torch.tensordot(weights[key].float(), value, dims=1) for key, value in rows.items()}
    # Relative to all parameters together: a gradient of keys, say, is nothing but rounding.
    scale = math.sqrt(sum(float(value.square().sum()) for value in expected.values()))
    for key, value in expected.items():
        assert found[key].dtype == torch.float32
        assert float((found[key] - value).norm()) <= CLOSE * scale, key


def made(positions: int, width: int = 40, height: int = 30) -> LayerCall:
    a, e = values((EXAMPLES, positions, width)), values((EXAMPLES, positions, height), seed=1)
    return LayerCall(nn.Linear(width, height), (a.bfloat16(),), {}, (e.bfloat16(),))


def off(call: LayerCall) -> tuple[float, float]:
    """How far norms and weighted sums are from those in 64 bits, relatively."""
    rule, weights = LinearRule(), torch.tensor([0.3, 0.7, 1.1]).double()
    exact = torch.matmul(call.e.double().mT, call.a.double())
    squared = rule.squared_norms(call, ["weight"])["weight"]
    total = rule.weighted_sums(call, ["weight"], weights)["weight"]
    assert total.dtype == torch.float32
    assert bool((squared >= squares(exact) * (1 - 1e-6)).all())
    expected = torch.tensordot(weights, exact, dims=1)
    apart = squared / squares(exact) - 1
    return float(apart.max()), float((total - expected).norm() / expected.norm())


@pytest.mark.parametrize("positions", [1, 5, 60])
def test_nothing_is_added_up_in_fewer_than_32_bits(positions: int) -> None:
    """Norms are raised by what 72 products and the guard can hide of S^2, about as many squared norms as positions."""
    norms, sums = off(made(positions))
    assert norms < (80 + 64) * 2.0**-24 * 2 * positions + 1e-6
    assert sums < 1e-5


@pytest.mark.parametrize("positions", [5, 60])
def test_mutant_sums_of_bfloat16(positions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (layer_rule, linear_layers):
        monkeypatch.setattr(module, "wide", lambda values: values)
    with pytest.raises(AssertionError):
        test_nothing_is_added_up_in_fewer_than_32_bits(positions)


def test_norms_of_positions_that_cancel_are_not_too_small() -> None:
    call = made(7)
    a, e = (torch.cat([each, sign * each], 1)[:, None] for each, sign in ((call.a, 1), (call.e, -1)))
    e[:, :, -1] *= 1 + 2.0**-7
    exact = squares(torch.matmul(e.double().mT, a.double()))
    assert bool((pair_norms(a, e) >= exact).all())


def losses(net: nn.Module, batch: Any) -> Tensor:
    return cross_entropy(net(batch[0]), batch[1], reduction="none")


def network() -> nn.Module:
    return seeded(lambda: Summed(nn.Linear(3, 4), nn.LayerNorm(4), nn.Tanh(), nn.Linear(4, 2)))


def test_one_example_moves_the_sum_by_less_than_the_bound() -> None:
    """Weights aim at 1 - 2^-5 of the bound, far examples reach that, and 8 bits never take them beyond the bound."""
    model, x, clip = Mixed(network()), 10 * values((6, 3)), Flat(0.25)
    whole, fewer = (gradients(model, part).clipped_sum(clip) for part in (x, x[1:]))
    moved = math.sqrt(sum(float(squares((whole[name] - fewer[name])[None])) for name in whole))
    assert 0.25 * (1 - 2.0**-4) < moved < 0.25 * (1 - 2.0**-5 + 2.0**-9)


def train(compute: Callable[[nn.Module, Any], Tensor], *, inside: bool = False, **options: Any) -> Trainer:
    model, data = network(), TensorDataset(values((10, 3)), torch.arange(10) % 2)
    chosen = {"size": 10, "delta": 1e-5, "epochs": 3, "batch_size": 10, "noise_multiplier": 1, **options}
    with Trainer(model, torch.optim.SGD(model.parameters(), lr=0.1), data, **chosen) as trainer:
        for batch in trainer:
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=inside):
                trainer.step(compute(model, batch))
    return trainer


def mixed(model: nn.Module, batch: Any, dtype: Any = torch.bfloat16) -> Tensor:
    with torch.autocast("cpu", dtype=dtype):
        return losses(model, batch)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("physical", [1, 4, 100])
def test_a_model_trains(physical: int) -> None:
    assert train(mixed, physical_batch=physical).taken == 3


def test_a_step_inside_of_autocast_is_the_same() -> None:
    model, x = network(), values((5, 3))

    def inside(out: Tensor) -> Tensor:
        return losses_of(out.float())

    outside = gradients(Mixed(model), x).clipped_sum(Flat(1))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        within = gradients(model, x, inside).clipped_sum(Flat(1))
    for name, value in within.items():
        assert torch.equal(value, outside["inner." + name]), name
    assert train(losses, inside=True).taken == 3


def test_float16_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="GradScaler"):
        train(lambda model, batch: mixed(model, batch, torch.float16))


def test_a_precision_that_public_examples_did_not_show_is_refused() -> None:
    """Else one example that switches autocast on would change what all others contribute."""
    calls: list[int] = []

    def counted(model: nn.Module, batch: Any) -> Tensor:
        calls.append(len(calls))
        return losses(model, batch)

    public = -train(counted).taken + len(calls)  # a batch for each step, after those of the check
    calls.clear()

    def late(model: nn.Module, batch: Any) -> Tensor:
        calls.append(len(calls))
        return (mixed if len(calls) > public else losses)(model, batch)

    with pytest.raises(InvalidParameter, match="for every batch"):
        train(late)
    assert len(calls) == public + 1
