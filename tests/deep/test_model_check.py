"""The check of models: what mixes examples is refused, what looks alike is accepted, and nothing is changed by it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("torch", reason="Deep learning needs torch, which is an extra.")

import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from discreet.deep import Trainer, model_check, public_examples
from discreet.deep.check_surroundings import ModelMode, ModelState, ModuleModes
from discreet.deep.clipping import LayerCallRecorder
from discreet.deep.model_check import ModelCheck
from discreet.deep.public_examples import OutlierKind, PublicExamples
from discreet.errors import InvalidParameter
from tests.deep.mixing_models import HONEST, MIXING, Case, floats, mlp, plain, texts
from tests.deep.small_models import MODELS, WORDS, Summed, values, words
from tests.learn.spying import told


def run(case: Case, net: nn.Module | None = None, **changed: Any) -> Trainer:
    """Trains for a step, or is refused."""
    model = case.make() if net is None else net
    data = TensorDataset(*case.data())
    options: dict[str, Any] = {"size": 12, "delta": 1e-5, "epochs": 1, "batch_size": 12, "noise_multiplier": 1}
    with Trainer(model, torch.optim.SGD(model.parameters(), lr=0.1), data, **{**options, **changed}) as trainer:
        for batch in trainer:
            trainer.step(case.loss(model, batch))
    return trainer


def is_refused(case: Case, **changed: Any) -> bool:
    try:
        run(case, **changed)
    except InvalidParameter:
        return True
    return False


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", MIXING)
def test_what_mixes_examples_is_refused(name: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        run(MIXING[name])
    assert refused.value.hint


LONG = {"LSTM cell that is used twice", "recurrent, long memory"}
HONESTLY = [pytest.param(name, marks=pytest.mark.slow if name in LONG else ()) for name in HONEST]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", HONESTLY)
def test_what_keeps_examples_apart_is_accepted(name: str) -> None:
    assert run(HONEST[name]).taken == 1


EACH = [pytest.param(name, marks=() if name in {"encoder", "tied"} else pytest.mark.slow) for name in [*MODELS, *WORDS]]


@pytest.mark.parametrize("name", EACH)
def test_every_layer_is_accepted(name: str) -> None:
    make, shape = (MODELS | WORDS)[name]
    x = (words if name in WORDS else values)((12, *shape))
    case = Case(make, lambda net, batch: (net(batch[0]).sin() + net(batch[0]) ** 2).sum(1), lambda: (x,))
    assert run(case).taken == 1


def test_a_batch_that_is_refused_was_public() -> None:
    """Nothing private is read, and no step is begun."""
    net = mlp()
    case = MIXING["centred columns"]
    asked: list[int] = []

    class Watched(torch.utils.data.Dataset[Any]):
        def __len__(self) -> int:
            return 12

        def __getitem__(self, place: int) -> Any:
            asked.append(place)
            return tuple(tensor[place] for tensor in floats())

    options: dict[str, Any] = {"size": 12, "delta": 1e-5, "epochs": 1, "batch_size": 12, "noise_multiplier": 1}
    with Trainer(net, torch.optim.SGD(net.parameters(), lr=0.1), Watched(), **options) as trainer:

        def train() -> None:
            for batch in trainer:
                trainer.step(case.loss(lambda x: net(x - x.mean(0)), batch))

        with pytest.raises(InvalidParameter):
            train()
        assert (trainer.taken, asked) == (0, [0])  # the first one tells shapes


def test_a_refusal_that_the_loop_catches_is_one() -> None:
    def caught(case: Case) -> Trainer:
        model, data = case.make(), TensorDataset(*case.data())
        options: dict[str, Any] = {"size": 12, "delta": 1e-5, "epochs": 1, "batch_size": 12, "noise_multiplier": 1}
        with Trainer(model, torch.optim.SGD(model.parameters(), lr=0.1), data, **options) as trainer:
            for batch in trainer:
                with suppress(InvalidParameter):
                    trainer.step(case.loss(model, batch))
        return trainer

    for name in ("less the mean", "a buffer"):
        with pytest.raises(InvalidParameter, match="Do not catch"):
            caught(MIXING[name])


def test_a_step_of_which_a_piece_has_failed_is_given_up() -> None:
    """Else the examples that come with one that makes a piece fail would be missing from a sum that is released."""
    model, data = mlp(), TensorDataset(*floats())
    trainer = Trainer(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        data,
        size=12,
        delta=1e-5,
        epochs=1,
        batch_size=12,
        noise_multiplier=1,
        physical_batch=4,
    )

    def caught() -> None:
        for batch in trainer:
            failing = trainer.taken and bool((batch[0] == data.tensors[0][0]).all(1).any())
            with suppress(InvalidParameter):
                each = plain(model, batch)
                trainer.step(each.mean() if failing else each)
        trainer.close()

    assert told(caught) == []
    assert trainer.taken == 1


# ------------------------------------------------------------------------------------------------ nothing is changed


def partly_evaluated() -> nn.Module:
    model = nn.Sequential(nn.Linear(6, 5), nn.Dropout(0.5), nn.Sequential(nn.Dropout(0.2)), nn.Linear(5, 2))
    model[2].eval()
    return model


@pytest.mark.parametrize("loss", [plain, MIXING["mixup by flip"].loss], ids=["accepted", "refused"])
def test_every_module_keeps_its_mode(loss: Any) -> None:
    model = partly_evaluated()
    before = [module.training for module in model.modules()]
    is_refused(Case(mlp, loss), net=model)
    assert [module.training for module in model.modules()] == before == [True, True, True, False, False, True]


def test_modes_and_random_numbers_are_given_back_after_an_error_of_the_loop() -> None:
    model = partly_evaluated()
    before = [module.training for module in model.modules()]
    trainer = Trainer(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        TensorDataset(*floats()),
        size=12,
        delta=1e-5,
        epochs=1,
        batch_size=12,
        noise_multiplier=1,
    )
    loop = iter(trainer)
    for _ in range(3):  # in the third batch dropout is off
        batch = next(loop)
        kept = [module.training for module in model.modules()]
        if kept == before:
            trainer.step(plain(model, batch))
        else:
            break
    assert kept != before
    iter_again = iter(trainer)
    next(iter_again)
    assert [module.training for module in model.modules()] == before
    trainer.close()
    assert [module.training for module in model.modules()] == before


def test_random_numbers_go_on_as_if_there_were_no_check() -> None:
    model, seen = HONEST["dropout"].make(), []
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    with Trainer(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        TensorDataset(*floats()),
        size=12,
        delta=1e-5,
        epochs=1,
        batch_size=12,
        noise_multiplier=1,
    ) as trainer:
        for batch in trainer:
            if trainer.taken:
                seen.append(torch.rand(4))
            trainer.step(plain(model, batch))
    assert torch.equal(seen[0], expected)


# ------------------------------------------------------------------------------------------------------ the real run


class Later(nn.Module):
    """Keeps something once it sees examples that no check has: in a buffer, or in a frozen parameter."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.net, self.where = mlp(), where
        if where == "parameter":
            self.kept = nn.Parameter(torch.zeros(6), requires_grad=False)
        else:
            self.register_buffer("kept", torch.zeros(6))

    def forward(self, x: Tensor) -> Tensor:
        if len(x) == 12:
            with torch.no_grad():
                if self.where == "data":
                    self.kept.data.copy_(x[0])
                elif self.where == "another":
                    self.kept = x[0].clone()
                else:
                    self.kept.copy_(x[0])
        return self.net(x)


@pytest.mark.parametrize("where", ["buffer", "data", "another", "parameter"])
def test_what_is_kept_in_the_real_run_is_refused_before_its_step(where: str) -> None:
    model = Later(where)
    weights = [parameter.detach().clone() for parameter in model.net.parameters()]

    def train() -> None:
        with pytest.raises(InvalidParameter, match="to keep nothing from batch to batch"):
            run(Case(mlp, plain), net=model)

    assert told(train) == []
    assert all(map(torch.equal, weights, model.net.parameters()))
    assert where == "parameter" or not model.kept.any()  # nothing of an example is left


def test_mutant_the_real_run_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ModelState, "check", lambda _: None)
    assert run(Case(mlp, plain), net=Later("buffer")).taken == 1


# ------------------------------------------------------------------------------------------------- examples alone


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["centred columns", "divided by the size", "contrastive", "mixup by flip", "sorted"])
def test_examples_that_come_alone_cannot_be_mixed(name: str) -> None:
    assert is_refused(MIXING[name], physical_batch=2)
    assert run(MIXING[name], physical_batch=1).taken == 1


@pytest.mark.parametrize("name", ["a buffer", "an attribute", "a frozen parameter", "a new buffer"])
def test_what_is_kept_mixes_examples_that_come_alone(name: str) -> None:
    assert is_refused(MIXING[name], physical_batch=1)


def public_sizes(case: Case, physical: int = 256) -> list[int]:
    """How many examples each batch of the check has."""
    sizes: list[int] = []

    def counted(net: Any, batch: Any) -> Tensor:
        sizes.append(len(batch[0]))
        return case.loss(net, batch)

    run(replace(case, loss=counted), physical_batch=physical)
    return sizes[: -math.ceil(12 / physical)]


@pytest.mark.parametrize("physical", [1, 2, 3, 6])
def test_batches_of_the_check_are_no_larger_than_pieces(physical: int) -> None:
    assert max(public_sizes(HONEST["plain"], physical)) == physical


def test_the_check_costs_what_the_manual_says() -> None:
    public = public_sizes(HONEST["plain"])
    assert (set(public), len(public), sum(public)) == ({1, 5, 7, 8}, 18, 99)
    assert len(public_sizes(HONEST["dropout"])) == 18
    assert len(public_sizes(HONEST["dropout of a function"])) == 24
    assert len(public_sizes(HONEST["plain"], physical=1)) == 5


# ---------------------------------------------------------------------------------------------- penalties, outputs


@pytest.mark.parametrize("share", [1e-2, 1e-8])
def test_penalties_of_parameters_are_refused_with_their_remedy(share: float) -> None:
    def penalised(net: Any, batch: Any) -> Tensor:
        return plain(net, batch) + share * sum(parameter.square().sum() for parameter in net.parameters())

    with pytest.raises(InvalidParameter, match="weight_decay") as refused:
        run(Case(mlp, penalised))
    assert refused.value.name == "parameter"
    model = mlp()  # what is proposed works
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=share)
    options: dict[str, Any] = {"size": 12, "delta": 1e-5, "epochs": 1, "batch_size": 12, "noise_multiplier": 1}
    with Trainer(model, optimizer, TensorDataset(*floats()), **options) as trainer:
        for batch in trainer:
            trainer.step(plain(model, batch))


def test_a_parameter_that_the_losses_use_is_refused() -> None:
    class Warm(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net, self.warmth = mlp(), nn.Parameter(torch.ones(()))

        def forward(self, x: Tensor) -> Tensor:
            return self.net(x)

    def warmed(net: Any, batch: Any) -> Tensor:
        return plain(lambda x: net(x) * net.warmth, batch)

    with pytest.raises(InvalidParameter, match="forward pass of the module that has them"):
        run(Case(Warm, warmed))


@pytest.mark.ci
def test_mutant_outputs_that_share_an_edge(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gradient of a cell's memory then counts what its output gets, once more: 12 % of the norm."""
    honest = LayerCallRecorder.watch

    def broken(self: LayerCallRecorder, made: Tensor, **_: Any) -> Any:
        return honest(self, made)

    monkeypatch.setattr(LayerCallRecorder, "watch", broken)
    with pytest.raises(InvalidParameter, match="to have the gradient that its layer reports"):
        run(HONEST["LSTM cell"])


# ------------------------------------------------------------------------------------------------- given examples


def test_given_examples_must_differ() -> None:
    x, y = floats()
    for alike in ([(x[0], y[0])] * 3, [(x[0], y[0]), (x[1], y[1])]):
        with pytest.raises(InvalidParameter, match="at least 3 public ones that all differ"):
            run(HONEST["plain"], example=alike)
    assert run(HONEST["plain"], example=[(x[k], y[k]) for k in range(3)]).taken == 1


GIVEN = ["largest number", "centred columns", "flipped", "skipped if not finite", "class weights, divided by the batch"]


@pytest.mark.parametrize("name", [*GIVEN, "divided by the size", "sorted losses"])
def test_three_given_examples_tell_what_mixes_them(name: str) -> None:
    x, y = floats()
    assert is_refused(MIXING[name], example=[(x[k], y[k]) for k in range(3)])


def test_given_examples_stay_within_their_range() -> None:
    """But for the one that is no number: a model may look numbers up."""
    given = [(values((6,), seed=k).clamp(-1, 1), torch.tensor(k % 2)) for k in range(5)]
    found: list[float] = []

    def watched(net: Any, batch: Any) -> Tensor:
        found.append(float(batch[0].nan_to_num().abs().max()))
        return plain(net, batch)

    run(Case(mlp, watched), example=given, size=12)
    assert max(found[:-1]) <= 1


def test_examples_that_look_alike_to_a_model_are_refused() -> None:
    """A mean of one-hot words, of which one is known: whatever is done to the order of texts is not seen."""

    class Hot(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.out = nn.Linear(6, 2)

        def forward(self, text: Tensor) -> Tensor:
            known = torch.nn.functional.one_hot(text, 7)[..., 1:].float()
            return self.out(known.sum(1) / known.sum((1, 2))[:, None])

    with pytest.raises(InvalidParameter, match="at least three public ones that differ"):
        run(Case(Hot, plain, texts))
    given = [(torch.arange(8) % (k + 2) + 1, torch.tensor(k % 2)) for k in range(4)]
    assert run(Case(Hot, plain, texts), example=given).taken == 1


def test_random_numbers_that_do_not_end_with_evaluation_are_refused() -> None:
    def noisy(net: Any, batch: Any) -> Tensor:
        return plain(net, (batch[0] + 0.1 * torch.randn_like(batch[0]), batch[-1]))

    with pytest.raises(InvalidParameter, match="__getitem__"):
        run(Case(mlp, noisy))


def test_random_numbers_of_another_generator_are_named() -> None:
    generator = torch.Generator().manual_seed(0)

    def noisy(net: Any, batch: Any) -> Tensor:
        return plain(net, batch) * (1 + torch.rand((), generator=generator))

    with pytest.raises(InvalidParameter):
        run(Case(mlp, noisy))
    with pytest.raises(InvalidParameter, match="default generators"):
        run(Case(mlp, noisy), physical_batch=1)


# ------------------------------------------------------------------------------------------------------- mutants


def nothing(*_: Any) -> Iterator[Any]:
    return iter(())


def no_nan(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = public_examples._made_up

    def broken(shape: Any, dtype: Any, kind: Any, *rest: Any) -> Tensor:
        return honest(shape, dtype, kind if isinstance(kind, int) else (kind[0], OutlierKind.ABOVE), *rest)

    monkeypatch.setattr(public_examples, "_made_up", broken)


def near(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public_examples, "_FAR", 1.0)


def middle_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ModelCheck, "_remove_examples", nothing)
    monkeypatch.setattr(ModelCheck, "_replaced_beside", nothing)
    monkeypatch.setattr(model_check, "_ends", lambda count: (count // 2,))


def not_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ModelCheck, "_remove_examples", nothing)


def no_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_check, "_reaches_others", lambda *_: False)


def norms_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_check, "_even", torch.zeros_like)


def evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = ModuleModes.set
    monkeypatch.setattr(
        ModuleModes, "set", lambda self, mode: honest(self, mode if mode is ModelMode.TRAINING else ModelMode.STILL)
    )


def not_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ModelCheck, "_replaced_beside", nothing)


def two_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PublicExamples, "learn_words", lambda *_: None)
    monkeypatch.setattr(ModelCheck, "_check_differences", lambda *_: None)


def one_length(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = public_examples._zeros_and_ones

    def broken(shape: tuple[int, ...], place: int, far: OutlierKind | None) -> Tensor:
        return (torch.arange(shape[-1]) + place) % 2 > 0 if shape else honest(shape, place, far)

    monkeypatch.setattr(public_examples, "_zeros_and_ones", broken)


def one_label(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public_examples, "_LABELS", (0,) * 8)
    honest = public_examples._zeros_and_ones
    monkeypatch.setattr(public_examples, "_zeros_and_ones", lambda shape, place, _: honest(shape, place, None))
    monkeypatch.setattr(ModelCheck, "_remove_examples", nothing)


def not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ModelState, "check", lambda _: None)


def grey_as_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public_examples, "_COLOURS", ())


MUTANTS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], str]] = {
    "no example is NaN": (no_nan, "skipped if not finite"),
    "what replaces an example is near": (near, "a small share of numbers"),
    "only the middle changes": (middle_alone, "the first example"),
    "no example is removed": (not_removed, "divided by the size"),
    "gradients at others are not looked at": (no_gradients, "a tiny share of other texts"),
    "gradients are told by norms": (norms_alone, "gradients that turn around"),
    "the model is compared in evaluation": (evaluated, "mixed in training, dropout of a layer"),
    "what is far away stays as it is": (not_beside, "filled from the batch"),
    "texts of two words": (two_words, "sorted by length"),
    "texts of one length": (one_length, "divided by the longest mask"),
    "one label": (one_label, "counts of classes"),
    "buffers are not looked at": (not_kept, "a buffer"),
    "bytes are zeros and ones": (grey_as_words, "largest of grey values"),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", MUTANTS)
def test_mutant(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part of the check refuses a model that all other parts accept."""
    weaken, passes = MUTANTS[name]
    weaken(monkeypatch)
    assert not is_refused(HONEST["plain"])
    assert not is_refused(MIXING[passes])


def test_mutant_parameters_past_their_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small penalty was dropped without a word."""
    monkeypatch.setattr(model_check, "_find_reached_parameter", lambda *_: None)

    def penalised(net: Any, batch: Any) -> Tensor:
        return plain(net, batch) + 1e-8 * sum(parameter.square().sum() for parameter in net.parameters())

    assert not is_refused(Case(mlp, penalised))


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore:LSTM with projections:UserWarning")
def test_parts_of_a_state_of_layers_first_are_not_taken_for_examples() -> None:
    """Five layers, and five examples: states of a recurrent layer have layers first."""
    case = Case(
        lambda: Summed(nn.LSTM(4, 3, num_layers=5, proj_size=2, batch_first=True), nn.Identity()),
        lambda net, batch: net(batch[0]).square().sum(1),
        lambda: (values((12, 3, 4)),),
    )
    assert run(case).taken == 1
