"""Attention while gradients are recorded: the same numbers as PyTorch's, and nothing left behind."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

pytest.importorskip("torch", reason="Deep learning needs torch, which is an extra.")

import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from discreet.deep import Trainer
from discreet.deep.clipping import LayerCallRecorder, PerExampleGradients
from discreet.deep.clipping.attention import AttentionRule
from discreet.errors import InvalidParameter
from tests.deep.small_models import MODELS, Attention, Summed, gradients, losses_of, names_of, seeded, values

FORMS = sorted(name for name in MODELS if name.startswith("attention") and "learned" not in name)


@pytest.mark.parametrize("name", FORMS)
def test_what_comes_out_is_what_comes_out_of_pytorch(name: str) -> None:
    model, x = seeded(MODELS[name][0]), values((3, *MODELS[name][1]))
    expected = model(x)
    recorder = LayerCallRecorder(model)
    assert torch.equal(model(x), expected)  # nothing is recorded yet
    recorder.active = True
    assert torch.allclose(model(x), expected, atol=1e-6)
    assert recorder.calls
    recorder.close()
    assert torch.equal(model(x), expected)
    assert all("forward" not in vars(layer) for layer in model.modules())


def test_nothing_is_computed_once_more(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """No forward of attention runs besides the recorded one, not even PyTorch's own."""
    monkeypatch.setattr(nn.MultiheadAttention, "forward", None)
    with caplog.at_level("INFO", logger="discreet.deep"):
        assert gradients(seeded(MODELS["encoder"][0]), values((3, 5, 4))).squared_norms()
    assert not caplog.records
    with pytest.raises(TypeError):  # the same check on a form that is left to the rule for any layer
        gradients(seeded(lambda: Attention(add_zero_attn=True)), values((3, 5, 4)))


def test_parts_that_are_frozen_have_no_gradient() -> None:
    model = seeded(Attention)
    model.attention.in_proj_weight.requires_grad_(False)
    found = gradients(model, values((3, 5, 4))).squared_norms()
    assert found.keys() == {"attention.in_proj_bias", "attention.out_proj.weight", "attention.out_proj.bias"}


def test_copies_compute_with_their_own_parameters_and_record_nothing() -> None:
    model, x = seeded(Attention), values((3, 5, 4))
    names = model.state_dict().keys()
    recorder = LayerCallRecorder(model)
    recorder.active = True
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        with torch.no_grad():
            again.attention.out_proj.weight.zero_()
            again.attention.out_proj.bias.zero_()
        assert not again(x).any()
        assert not recorder.calls
        assert again.state_dict().keys() == names
        assert (
            type(LayerCallRecorder(again).layers[again.attention][0]) is AttentionRule
        )  # a copy can be trained itself
    assert model(x).any()
    assert len(recorder.calls) == 1
    recorder.close()


@pytest.mark.parametrize("weights", [False, True])
def test_dropout_is_drawn_once(weights: bool) -> None:
    """What was dropped in the forward pass is what the gradients know of."""
    model, x = seeded(lambda: Attention(weights=weights, dropout=0.5)), values((3, 5, 4))
    recorder = LayerCallRecorder(model)
    recorder.active = True
    torch.manual_seed(3)
    out = model(x)
    truth = torch.autograd.grad(losses_of(out).sum(), list(names_of(model)), retain_graph=True)
    found = PerExampleGradients(recorder, losses_of(out), names_of(model), 3)
    ones = torch.ones(3, dtype=torch.float64)
    sums = found.weighted_sums(dict.fromkeys(found.squared_norms(), ones))
    recorder.close()
    assert not torch.allclose(model(x), out)  # which is drawn anew each time
    for (_, name), expected in zip(names_of(model).items(), truth, strict=True):
        assert torch.allclose(sums[name], expected, atol=1e-5), name


def test_an_encoder_with_dropout_trains() -> None:
    inner = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.2, batch_first=True)
    model = seeded(lambda: Summed(inner, nn.Flatten(), nn.Linear(20, 1)))
    data: Any = TensorDataset(values((6, 5, 4)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    options: dict[str, Any] = {"size": 6, "delta": 1e-5, "epochs": 2, "batch_size": 3, "noise_multiplier": 1}
    with Trainer(model, optimizer, data, **options) as trainer:
        for (x,) in trainer:
            trainer.step(model(x)[:, 0])
        assert trainer.taken == trainer.steps


def test_one_example_without_a_batch_is_refused() -> None:
    class Lost(Attention):
        def forward(self, x: Tensor) -> Tensor:
            return self.attention(x[0], x[0], x[0])[0]

    with pytest.raises(InvalidParameter, match="first dimension of examples"):
        gradients(seeded(Lost), values((3, 5, 4)))
