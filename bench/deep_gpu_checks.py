"""The check of models on a GPU: what must be accepted there, what must be refused, and what the check costs.

Tests run on a processor. This script runs what differs on a GPU: dropout, whose random numbers are the device's own,
compiled models, whose sums are taken in another order, and products of bfloat16. Every model of the tests that mixes
examples must be refused there, and every honest one accepted.

    python bench/deep_gpu_checks.py            # all of it, a few minutes
    python bench/deep_gpu_checks.py --quick    # without what is compiled
    python bench/deep_gpu_checks.py --device cpu --quick
"""

from __future__ import annotations

import argparse
import copy
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from importlib.util import find_spec
from typing import Any

import _needed_modules  # noqa: F401 - first: it says what is missing
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import TensorDataset

from discreet.deep import Trainer, model_check
from discreet.errors import InvalidParameter
from tests.deep.mixing_models import HONEST, MIXING, Case, mlp, plain
from tests.deep.small_models import Cells, gradients, loop, seeded, values

Result = tuple[bool, str]
STEPS = 2


class Setting:
    """Where models run, and how.

    Args:
        device: of models and batches.
        reduced: whether models run under autocast with bfloat16.
        compiled: whether they are compiled.
    """

    def __init__(self, device: str, *, reduced: bool = False, compiled: bool = False) -> None:
        self.device, self.reduced, self.compiled = device, reduced, compiled

    def __str__(self) -> str:
        return " ".join(
            [self.device, *(["bfloat16"] if self.reduced else []), *(["compiled"] if self.compiled else [])]
        )

    def autocast(self) -> Any:
        return torch.autocast(self.device, torch.bfloat16) if self.reduced else nullcontext()


def train(case: Case, setting: Setting, **changed: Any) -> tuple[Trainer, nn.Module]:
    """Runs the check and two steps."""
    torch.compiler.reset()
    inner = case.model().to(setting.device)
    model: Any = torch.compile(inner) if setting.compiled else inner
    data = TensorDataset(*case.data())
    rows = len(data)
    options: dict[str, Any] = {"size": rows, "delta": 1e-5, "epochs": STEPS, "batch_size": rows, "noise_multiplier": 1}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with Trainer(model, optimizer, data, **{**options, **changed}) as trainer:
        for batch in trainer:
            moved = [each.to(setting.device) for each in batch]
            with setting.autocast():
                losses = case.loss(model, moved)
            trainer.step(losses.float())
    return trainer, inner


def accepted(case: Case, setting: Setting) -> Result:
    began = time.perf_counter()
    margins: dict[float, float] = {}
    honest = model_check._close

    def measured(one: Tensor, other: Tensor, tolerance: float) -> bool:
        """Notes the largest difference as a share of what is allowed."""
        near = (one - other).abs() / (one.abs() + model_check._FLOOR * one.abs().amax() + 1e-30)
        margins[tolerance] = max(margins.get(tolerance, 0.0), float(near.nan_to_num().max()))
        return honest(one, other, tolerance)

    model_check._close = measured
    try:
        trainer, _ = train(case, setting)
    except InvalidParameter as refused:
        return False, f"refused, differences {_told(margins)}: {refused}"
    finally:
        model_check._close = honest
    return trainer.taken == STEPS, f"{time.perf_counter() - began:.1f} s, differences {_told(margins)}"


def _told(margins: dict[float, float]) -> str:
    return ", ".join(f"{found:.0e} of {most:.0e}" for most, found in margins.items())


def refused(case: Case, setting: Setting) -> Result:
    try:
        train(case, setting)
    except InvalidParameter as why:
        return True, str(why)[:60]
    return False, "accepted"


# ---------------------------------------------------------------------------------------------------- larger models


class Encoder(nn.Module):
    """An encoder of texts, with dropout as PyTorch has it by default, or one that also centres its batch."""

    def __init__(self, width: int = 256, layers: int = 6, centred: bool = False, dropout: float = 0.1) -> None:
        super().__init__()
        self.table, self.centred = nn.Embedding(1000, width), centred
        layer = nn.TransformerEncoderLayer(width, 8, 4 * width, dropout, batch_first=True)
        self.body = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.out = nn.Linear(width, 2)

    def forward(self, words: Tensor) -> Tensor:
        x = self.table(words)
        return self.out(self.body(x - 0.5 * x.mean(0) if self.centred else x).mean(1))


def long_texts() -> tuple[Tensor, ...]:
    return torch.randint(0, 1000, (32, 128), generator=torch.Generator().manual_seed(0)), torch.arange(32) % 2


def photos() -> tuple[Tensor, ...]:
    return values((16, 3, 64, 64)), torch.arange(16) % 2


def bert() -> nn.Module:
    from transformers import BertConfig, BertForSequenceClassification  # noqa: PLC0415 - where it is installed

    config = BertConfig(
        vocab_size=1000, hidden_size=128, num_hidden_layers=4, num_attention_heads=4, intermediate_size=256
    )
    return BertForSequenceClassification(config).train()


def of_bert(net: Any, batch: Any) -> Tensor:
    return cross_entropy(net(batch[0]).logits, batch[-1], reduction="none")


def gpt2() -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel  # noqa: PLC0415 - where it is installed

    return GPT2LMHeadModel(GPT2Config(vocab_size=1000, n_positions=128, n_embd=128, n_layer=3, n_head=4)).train()


def of_gpt2(net: Any, batch: Any) -> Tensor:
    out = net(batch[0]).logits[:, :-1]
    return cross_entropy(out.transpose(1, 2), batch[0][:, 1:], reduction="none").mean(1)


def resnet() -> nn.Module:
    from torchvision.models import resnet18  # noqa: PLC0415 - where it is installed

    return resnet18(num_classes=2, norm_layer=lambda channels: nn.GroupNorm(8, channels))


def vit() -> nn.Module:
    from torchvision.models import VisionTransformer  # noqa: PLC0415 - where it is installed

    return VisionTransformer(64, 16, 4, 4, 128, 256, dropout=0.1, num_classes=2)


LARGER: dict[str, Case] = {
    "encoder, dropout 0.1": Case(Encoder, plain, long_texts),
    "encoder, no dropout": Case(lambda: Encoder(dropout=0.0), plain, long_texts),
    "transformers BERT": Case(bert, of_bert, long_texts),
    "transformers GPT-2": Case(gpt2, of_gpt2, long_texts),
    "torchvision ResNet-18, GroupNorm": Case(resnet, plain, photos),
    "torchvision ViT": Case(vit, plain, photos),
}
CENTRED: dict[str, Case] = {
    "encoder that centres its batch": Case(lambda: Encoder(centred=True), plain, long_texts),
    "encoder, losses divided by the size": Case(
        Encoder, lambda net, batch: plain(net, batch) / len(batch[0]), long_texts
    ),
    "encoder, losses less the mean": Case(
        Encoder, lambda net, batch: plain(net, batch) - plain(net, batch).mean(), long_texts
    ),
}


# --------------------------------------------------------------------------------------------------- single questions


def cell_norms(device: str) -> Result:
    """Norms of an LSTM's cell beside a loop over examples in 64 bits."""
    worst = 0.0
    for times in (1, 2):
        model, x = seeded(lambda times=times: Cells(nn.LSTMCell, times)), values((5, 3, 4))
        found = gradients(copy.deepcopy(model).to(device), x.to(device), _of_outputs).squared_norms()
        expected = {
            name: rows.double().flatten(1).square().sum(1) for name, rows in loop(model.double(), x.double()).items()
        }
        for name, squared in found.items():
            worst = max(worst, float(((squared.cpu() - expected[name]) / expected[name]).abs().max()))
    return worst < 1e-3, f"largest relative error of squared norms {worst:.1e}"


def _of_outputs(out: Tensor) -> Tensor:
    weights = torch.cos(torch.arange(out.shape[1], dtype=out.dtype, device=out.device))
    return ((out * weights).sin() + out**2 / 2).sum(1)


def modes(device: str) -> Result:
    """A submodule that was left in evaluation stays there, and random numbers go on as they were."""
    model = nn.Sequential(nn.Linear(6, 5), nn.Dropout(0.5), nn.Sequential(nn.Dropout(0.2)), nn.Linear(5, 2)).to(device)
    model[2].eval()
    before = [module.training for module in model.modules()]
    held = TensorDataset(values((12, 6)), torch.arange(12) % 2)
    options: Any = {"size": 12, "delta": 1e-5, "epochs": 1, "batch_size": 12, "noise_multiplier": 1}
    with Trainer(model, torch.optim.SGD(model.parameters(), lr=0.1), held, **options) as trainer:
        for batch in trainer:
            trainer.step(plain(model, [each.to(device) for each in batch]))
    return before == [module.training for module in model.modules()], "modes of all modules"


def penalty(device: str) -> Result:
    def loss(net: Any, batch: Any) -> Tensor:
        return plain(net, batch) + 1e-6 * sum(each.square().sum() for each in net.parameters())

    found, why = refused(Case(mlp, loss), Setting(device))
    return found, why


def cost(case: Case, setting: Setting) -> Result:
    """The time of the whole check beside that of a step on a batch of 32 examples."""
    model = case.model().to(setting.device)
    data = TensorDataset(*case.data())
    options: Any = {"size": len(data), "delta": 1e-5, "epochs": 6, "batch_size": len(data), "noise_multiplier": 1}
    times: list[tuple[int, float]] = []
    with Trainer(model, torch.optim.SGD(model.parameters(), lr=0.01), data, **options) as trainer:
        for batch in trainer:
            with setting.autocast():
                losses = case.loss(model, [each.to(setting.device) for each in batch])
            trainer.step(losses.float())
            if setting.device == "cuda":
                torch.cuda.synchronize()
            times.append((trainer.taken, time.perf_counter()))
    check = [moment for taken, moment in times if not taken]
    steps = [moment for taken, moment in times if taken]
    step = (steps[-1] - steps[1]) / (len(steps) - 2)
    return True, f"{len(check)} public batches in {check[-1] - check[0]:.2f} s, a step of {len(data)}: {step:.3f} s"


# ------------------------------------------------------------------------------------------------------------- all


def questions(device: str, *, quick: bool) -> Iterator[tuple[str, Callable[[], Result]]]:
    plainly, reduced = Setting(device), Setting(device, reduced=True)
    for name, case in HONEST.items():
        yield f"accepted, {plainly}: {name}", lambda case=case: accepted(_seeded(case), plainly)
    for name, case in MIXING.items():
        yield f"refused, {plainly}: {name}", lambda case=case: refused(_seeded(case), plainly)
    settings = [plainly, reduced]
    if not quick:
        settings += [Setting(device, compiled=True), Setting(device, reduced=True, compiled=True)]
    for setting in settings:
        for name, case in LARGER.items():
            yield f"accepted, {setting}: {name}", lambda case=case, setting=setting: accepted(case, setting)
        for name, case in CENTRED.items():
            yield f"refused, {setting}: {name}", lambda case=case, setting=setting: refused(case, setting)
    yield "norms of LSTMCell", lambda: cell_norms(device)
    yield "submodules in evaluation", lambda: modes(device)
    yield "penalty of 1e-6 is refused", lambda: penalty(device)
    for name in ("encoder, dropout 0.1", "torchvision ResNet-18, GroupNorm"):
        yield f"cost, {plainly}: {name}", lambda name=name: cost(LARGER[name], plainly)


def _seeded(case: Case) -> Case:
    return Case(case.make, case.loss, case.data)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--quick", action="store_true", help="leave out what is compiled")
    asked.add_argument("--device", default="cuda")
    asked.add_argument("--only", default="", help="a part of the names of what is run")
    options = asked.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit("There is no GPU here.")
    print("torch", torch.__version__, torch.cuda.get_device_name() if options.device == "cuda" else "processor")
    missing = [name for name in ("transformers", "torchvision", "triton") if find_spec(name) is None]
    print("missing:", ", ".join(missing) or "nothing", flush=True)
    failed = []
    for name, ask in questions(options.device, quick=options.quick):
        if options.only not in name or any(each in name for each in missing):
            continue
        torch.manual_seed(0)
        try:
            good, told = ask()
        except Exception as problem:  # noqa: BLE001 - all that fails is told
            last = traceback.extract_tb(problem.__traceback__)[-1]
            good, told = False, f"{type(problem).__name__}: {str(problem)[:300]} ({last.filename}:{last.lineno})"
        failed += [] if good else [name]
        print(f"{'ok  ' if good else 'FAIL'} {name}: {told}", flush=True)
    print(f"{len(failed)} failed", *failed, sep="\n  ")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
