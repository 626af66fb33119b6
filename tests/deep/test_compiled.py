"""Compiled models: the same clipped sums, from one graph, and no use of a layer that goes unnoticed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="Deep learning needs torch, which is an extra.")

import torch
from torch import Tensor, nn
from torch._dynamo.utils import counters
from torch.nn.functional import cross_entropy
from torch.utils.data import TensorDataset

from discreet.deep import Flat, Trainer
from discreet.deep.clipping import LayerCallRecorder, PerExampleGradients
from discreet.errors import InvalidParameter
from tests.deep.small_models import MODELS, WORDS, Summed, gradients, losses_of, names_of, seeded, values, words
from tests.learn.spying import Told, told

# What the compiler itself asks of tensors between two of its graphs.
pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")

BACKEND = "aot_eager"  # all of the compiler but the last step, which needs a compiler of C++
CLIP = Flat(0.5)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch.compiler.reset()
    counters.clear()
    yield
    torch.compiler.reset()


def sums(model: nn.Module, batches: list[Tensor]) -> list[dict[str, Tensor]]:
    """Clipped sums of batches; the first of them goes through the model as it was written."""
    recorder, names = LayerCallRecorder(model), names_of(model)
    found: list[dict[str, Tensor]] = []
    for x in batches:
        recorder.start(len(x))
        with torch.compiler.set_stance("default" if found else "force_eager"):
            out = model(x)
        found.append(PerExampleGradients(recorder, losses_of(out), names, len(x)).clipped_sum(CLIP))
        assert all(parameter.requires_grad for parameter in names)
    recorder.close()
    return found


def agree(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == {f"_orig_mod.{name}" for name in expected}
    for name, value in expected.items():
        assert torch.allclose(found[f"_orig_mod.{name}"], value, atol=1e-5), name


QUICK = {"two layers"}
EACH = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in [*MODELS, *WORDS]]


@pytest.mark.ci
@pytest.mark.parametrize("name", EACH)
def test_clipped_sums_are_those_of_the_model_as_it_was_written(name: str) -> None:
    make, shape = (MODELS | WORDS)[name]
    model = seeded(make)
    batches = [(words if name in WORDS else values)((size, *shape), seed=size) for size in (3, 4, 3)]
    found = sums(torch.compile(model, backend=BACKEND), batches)
    for x, one in zip(batches, found, strict=True):
        agree(one, gradients(model, x).clipped_sum(CLIP))
    assert counters["stats"]["unique_graphs"] >= 1  # it was compiled indeed
    assert not counters["graph_break"] or "recurrent" in name  # which the compiler leaves alone


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_whole_compiler() -> None:
    make, shape = MODELS["encoder"]
    model = seeded(make)
    batches = [values((size, *shape), seed=size) for size in (3, 4, 5)]
    for x, one in zip(batches, sums(torch.compile(model), batches), strict=True):
        agree(one, gradients(model, x).clipped_sum(CLIP))


@pytest.mark.ci
def test_batches_of_many_sizes_are_few_graphs() -> None:
    model = seeded(lambda: Summed(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)))
    sums(torch.compile(model, backend=BACKEND), [values((size, 4)) for size in (3, 3, 4, 5, 6, 7, 8, 9)])
    assert counters["stats"]["unique_graphs"] == 2  # of three, and of any number


class Longer(nn.Module):
    """Its layers see as many positions as there are, and one of them is left out at times."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x) if x.shape[1] % 2 else x.sin()
        return self.second(y.cos()).sum(1)


@pytest.mark.slow
def test_other_shapes_and_other_uses_than_before_are_recorded() -> None:
    model = seeded(Longer)
    batches = [values((3, positions, 4), seed=positions) for positions in (3, 3, 4, 5, 6, 3)]
    for x, one in zip(batches, sums(torch.compile(model, backend=BACKEND), batches), strict=True):
        agree(one, gradients(model, x).clipped_sum(CLIP))


@pytest.mark.slow
def test_autocast() -> None:
    model, x = seeded(MODELS["encoder"][0]), values((4, 5, 4))
    fast = torch.compile(model, backend=BACKEND)
    recorder, names = LayerCallRecorder(fast), names_of(fast)
    for stance in ("force_eager", "default"):
        recorder.start(4)
        with torch.compiler.set_stance(stance), torch.autocast("cpu", dtype=torch.bfloat16):
            out = fast(x)
        found = PerExampleGradients(recorder, losses_of(out.float()), names, 4)
        assert found.reduced
        assert {call.a.dtype for call in found.calls if type(call.layer) is nn.Linear} == {torch.bfloat16}
        one = found.clipped_sum(CLIP)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        expected = gradients(model, x, lambda out: losses_of(out.float())).clipped_sum(CLIP)
    for name, value in expected.items():
        assert torch.allclose(one[f"_orig_mod.{name}"], value, atol=0.01), name


# ------------------------------------------------------------------------------------------------- the trainer


def network() -> nn.Module:
    return seeded(lambda: Summed(nn.Linear(3, 4), nn.Dropout(0.1), nn.LayerNorm(4), nn.Tanh(), nn.Linear(4, 2)))


def rows() -> TensorDataset:
    return TensorDataset(values((10, 3)), torch.arange(10) % 2)


def train(model: nn.Module, called: Callable[[Tensor], Tensor], **changed: Any) -> Trainer:
    options: dict[str, Any] = {"size": 10, "delta": 1e-5, "epochs": 3, "batch_size": 10, "noise_multiplier": 1}
    with Trainer(model, torch.optim.SGD(model.parameters(), lr=0.1), rows(), **{**options, **changed}) as trainer:
        for x, labels in trainer:
            trainer.step(cross_entropy(called(x), labels, reduction="none"))
    return trainer


def handed(model: nn.Module, called: Callable[[Tensor], Tensor], **changed: Any) -> list[Told]:
    size = sum(parameter.numel() for parameter in model.parameters())
    return told(lambda: train(model, called, **changed), [np.zeros(size)] * 3)


@pytest.mark.ci
@pytest.mark.parametrize("physical", [pytest.param(1, marks=pytest.mark.slow), 4])
def test_what_meets_the_noise_is_the_same(physical: int) -> None:
    models = [seeded(lambda: Summed(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))) for _ in range(2)]
    expected = handed(models[0], models[0], physical_batch=physical)
    fast = torch.compile(models[1], backend=BACKEND)
    seen = handed(fast, fast, physical_batch=physical)
    assert counters["stats"]["unique_graphs"] >= 1
    for one, other in zip(expected, seen, strict=True):
        assert np.allclose(one.value, other.value, atol=1e-5)


@pytest.mark.slow
def test_a_model_that_compiles_itself() -> None:
    model = network()
    model.compile(backend=BACKEND)
    assert train(model, model).taken == 3
    assert counters["stats"]["unique_graphs"] >= 1


@pytest.mark.slow
def test_a_compiled_function_of_a_model_that_the_trainer_knows() -> None:
    """The trainer cannot know that it is compiled: the compiler is left at every layer, and the sums are the same."""
    models = [seeded(lambda: Summed(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))) for _ in range(2)]
    expected = handed(models[0], models[0])
    seen = handed(models[1], torch.compile(models[1], backend=BACKEND))
    assert counters["graph_break"]
    for one, other in zip(expected, seen, strict=True):
        assert np.allclose(one.value, other.value, atol=1e-5)


def used() -> tuple[nn.Module, Any]:
    """A model that was compiled and run before a trainer put hooks on it, which the compiler does not look for."""
    model = seeded(lambda: Summed(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)))
    fast = torch.compile(model, backend=BACKEND)
    for training, size in ((True, 3), (False, 3), (False, 2)):
        model.train(training)
        fast(values((size, 3))).sum().backward()
    model.train()
    return model, fast


@pytest.mark.slow
def test_a_compiled_model_that_was_used_before_is_compiled_anew() -> None:
    model = seeded(lambda: Summed(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)))
    expected = handed(model, model)
    _, fast = used()
    for one, other in zip(expected, handed(fast, fast), strict=True):
        assert np.allclose(one.value, other.value, atol=1e-5)


@pytest.mark.ci
def test_a_compiled_function_that_was_used_before_is_refused() -> None:
    model, fast = used()
    with pytest.raises(InvalidParameter, match=r"torch\.compiler\.reset"):
        train(model, fast)
    torch.compiler.reset()
    assert train(model, fast).taken == 3


@pytest.mark.slow
def test_an_evaluation_on_the_way_changes_nothing() -> None:
    def looked_at(x: Tensor) -> Tensor:
        with torch.no_grad():
            fast.eval()(x)
            fast.train()
            fast(x)
        return fast(x)

    model = seeded(lambda: Summed(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)))
    expected = handed(model, model)
    fast: Any = torch.compile(seeded(lambda: Summed(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))), backend=BACKEND)
    for one, other in zip(expected, handed(fast, looked_at), strict=True):
        assert np.allclose(one.value, other.value, atol=1e-5)


@pytest.mark.slow
def test_mutant_a_layer_that_the_compiled_model_does_not_tell_of(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = LayerCallRecorder.note

    def broken(self: LayerCallRecorder, layer: nn.Module, *rest: Any) -> None:
        if not torch.compiler.is_compiling() or not isinstance(layer, nn.LayerNorm):
            honest(self, layer, *rest)

    fast = torch.compile(network(), backend=BACKEND)
    assert train(fast, fast).taken == 3
    monkeypatch.setattr(LayerCallRecorder, "note", broken)
    torch.compiler.reset()
    with pytest.raises(InvalidParameter, match="use its layers in every batch"):
        train(fast, fast)
