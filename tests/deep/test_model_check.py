"""The check of models: what mixes examples is refused, what looks alike is accepted, and nothing is changed by it."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch", reason="Deep learning needs torch, which is an extra.")

import torch
from torch import nn
from torch.utils.data import TensorDataset

from discreet.deep import Trainer
from discreet.errors import InvalidParameter
from tests.deep.mixing_models import HONEST, MIXING, Case


def run(case: Case, net: nn.Module | None = None, **changed: Any) -> Trainer:
    """Trains for a step, or is refused."""
    model = case.make() if net is None else net
    data = TensorDataset(*case.data())
    options: dict[str, Any] = {"size": 12, "delta": 1e-5, "epochs": 1, "batch_size": 12, "noise_multiplier": 1}
    with Trainer(model, torch.optim.SGD(model.parameters(), lr=0.1), data, **{**options, **changed}) as trainer:
        for batch in trainer:
            trainer.step(case.loss(model, batch))
    return trainer


@pytest.mark.parametrize("name", MIXING)
def test_what_mixes_examples_is_refused(name: str) -> None:
    with pytest.raises(InvalidParameter):
        run(MIXING[name])


@pytest.mark.parametrize("name", HONEST)
def test_what_keeps_examples_apart_is_accepted(name: str) -> None:
    assert run(HONEST[name]).taken == 1
