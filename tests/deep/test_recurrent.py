"""Recurrent layers while gradients are recorded: the same numbers as PyTorch's, without a loop over examples."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch", reason="Deep learning needs torch, which is an extra.")

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from discreet.deep import Flat
from discreet.deep.clipping import LayerCallRecorder, PerExampleGradients
from discreet.deep.clipping.layer_rule import squares
from discreet.errors import InvalidParameter
from tests.deep.small_models import MODELS, Recurrent, Summed, gradients, loop, losses_of, names_of, seeded, values

FORMS = sorted(name for name in MODELS if name.startswith("recurrent"))


@pytest.mark.parametrize("name", FORMS)
def test_what_comes_out_is_what_comes_out_of_pytorch(name: str) -> None:
    model, x = seeded(MODELS[name][0]), values((3, *MODELS[name][1]))
    expected = model(x)
    recorder = LayerCallRecorder(model)
    recorder.start(3)
    assert torch.allclose(model(x), expected, atol=1e-6)
    assert recorder.calls
    recorder.close()
    assert torch.equal(model(x), expected)


def test_no_example_is_run_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = seeded(MODELS["recurrent, gates"][0]), values((3, 5, 4))
    monkeypatch.setattr(nn.GRU, "forward", None)
    assert gradients(model, x).clipped_sum(Flat(1))


@pytest.mark.filterwarnings("ignore:LSTM with projections:UserWarning")
def test_projected_states_are_left_to_the_rule_for_any_layer() -> None:
    model, x = seeded(lambda: Summed(nn.LSTM(4, 3, proj_size=2, batch_first=True))), values((3, 5, 4))
    found, rows = gradients(model, x).squared_norms(), loop(model, x)
    assert found.keys() == rows.keys()
    for name, value in rows.items():
        assert torch.allclose(found[name], squares(value), rtol=1e-4), name


def test_dropout_between_layers_is_drawn_once() -> None:
    model, x = seeded(lambda: Recurrent(nn.GRU, num_layers=2, dropout=0.5)), values((3, 5, 4))
    recorder, names = LayerCallRecorder(model), names_of(model)
    recorder.start(3)
    out = model(x)
    truth = torch.autograd.grad(losses_of(out).sum(), list(names), retain_graph=True)
    found = PerExampleGradients(recorder, losses_of(out), names, 3)
    sums = found.weighted_sums(dict.fromkeys(found.squared_norms(), torch.ones(3, dtype=torch.float64)))
    recorder.close()
    for name, expected in zip(names.values(), truth, strict=True):
        assert torch.allclose(sums[name], expected, atol=1e-5), name


class Packed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.recurrent = nn.LSTM(4, 3, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        lengths = torch.full((len(x),), x.shape[1])
        packed: Any = pack_padded_sequence(x, lengths, batch_first=True)
        return self.recurrent(packed)[1][0][0]


def test_packed_sequences_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="pad them"):
        gradients(seeded(Packed), values((3, 5, 4)))
