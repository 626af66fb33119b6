"""Private training beside plain PyTorch and Opacus: the time of a step and its peak memory, as ratios to plain.

A step is forward, backward, clipping, noise and optimizer, of one batch, which all get as a whole, in the same
precision. Opacus is measured in its three ways (hooks, ghost, functorch); `make .venv-peers/opacus/.tried` installs it.

    python bench/deep.py                    # a CNN and an MLP on the processor; on a GPU WRN-16-4, encoder, decoder
    python bench/deep.py encoder --precision tf32 bf16
    python bench/deep.py encoder --compiled # plain and ours, both through torch.compile
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import _deep_environment  # noqa: F401 - first: it may run this script elsewhere
import torch
from _deep_models import TASKS, Task
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from discreet import deep

PRECISIONS = ("fp32", "tf32", "bf16")
OPACUS = {"hooks": "Opacus, hooks", "ghost": "Opacus, ghost", "functorch": "Opacus, functorch"}
OURS = "discreet"
GPU_TASKS, CPU_TASKS = ("WRN-16-4", "encoder", "decoder"), ("CNN", "MLP")
Step = Callable[[], None]


def optimizer_of(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


def plain(task: Task, device: str, autocast: Any) -> Step:
    model = task.model().to(device)
    optimizer = optimizer_of(model)
    inputs, labels = (part.to(device) for part in task.batch())

    def step() -> None:
        optimizer.zero_grad()
        with autocast():
            loss = task.losses(model(inputs), labels).mean()
        loss.backward()
        optimizer.step()

    return step


def ours(task: Task, device: str, autocast: Any) -> Step:
    """Every example is in every batch, so that a step does what the plain one does."""
    model = task.model().to(device)
    data = TensorDataset(*(part.to(device) for part in task.batch()))
    size = len(data)
    trainer = deep.Trainer(
        model, optimizer_of(model), data, size=size, noise_multiplier=1, delta=1e-5, epochs=10_000, batch_size=size,
        physical_batch=size,
    )  # fmt: skip
    batches = iter(trainer)
    checked = 4  # public batches come first

    def one() -> None:
        inputs, labels = next(batches)
        with autocast():
            losses = task.losses(model(inputs), labels)
        trainer.step(losses)

    for _ in range(checked):
        one()
    return one


def opacus(mode: str) -> Callable[[Task, str, Any], Step]:
    def prepared(task: Task, device: str, autocast: Any) -> Step:
        from opacus import PrivacyEngine  # noqa: PLC0415 - where it is installed

        model = task.model().to(device)
        inputs, labels = (part.to(device) for part in task.batch())
        loader = DataLoader(TensorDataset(inputs, labels), batch_size=len(inputs))
        ghost = {"criterion": _Criterion(task)} if mode == "ghost" else {}
        made = PrivacyEngine().make_private(
            module=model, optimizer=optimizer_of(model), data_loader=loader, noise_multiplier=1.0, max_grad_norm=1.0,
            poisson_sampling=False, grad_sample_mode=mode, **ghost,
        )  # fmt: skip
        private, optimizer = made[0], made[1]
        criterion = made[2] if mode == "ghost" else (lambda scores, told: task.losses(scores, told).mean())

        def step() -> None:
            optimizer.zero_grad()
            with autocast():
                loss = criterion(private(inputs), labels)
            loss.backward()
            optimizer.step()

        return step

    return prepared


class _Criterion(nn.Module):
    """The losses of a task, as a criterion whose reduction can be asked for."""

    def __init__(self, task: Task) -> None:
        super().__init__()
        self._task, self.reduction = task, "mean"

    def forward(self, scores: Any, labels: Any) -> Any:
        losses = self._task.losses(scores, labels)
        return losses.mean() if self.reduction == "mean" else losses


def measured(step: Step, device: str, repeats: int) -> tuple[float, float]:
    """The median seconds of a step, and the peak memory of the device in GB, or 0 on the processor."""
    for _ in range(3):
        step()
    found = []
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    for _ in range(repeats):
        start = time.perf_counter()
        step()
        if device == "cuda":
            torch.cuda.synchronize()
        found.append(time.perf_counter() - start)
    return statistics.median(found), torch.cuda.max_memory_allocated() / 2**30 if device == "cuda" else 0.0


def compiled(task: Task) -> Task:
    return replace(task, model=lambda: cast("nn.Module", torch.compile(task.model())))


def compare(task: Task, device: str, precision: str, modes: list[str], repeats: int) -> None:
    torch.set_float32_matmul_precision("highest" if precision == "fp32" else "high")
    torch.backends.cudnn.allow_tf32 = precision != "fp32"
    ways: dict[str, Callable[[Task, str, Any], Step]] = {"plain": plain, OURS: ours}
    ways |= {name: opacus(mode) for mode, name in OPACUS.items()}

    def autocast() -> Any:
        return torch.autocast(device, torch.bfloat16) if precision == "bf16" else contextlib.nullcontext()

    base: tuple[float, float] | None = None
    for name in ["plain", *modes]:
        torch.manual_seed(0)
        gc.collect()
        if device == "cuda":
            torch.cuda.empty_cache()
        try:
            seconds, memory = measured(ways[name](task, device, autocast), device, repeats)
        except Exception as error:
            print(
                f"{task.name:9} {precision:5} {name:18} fails: {type(error).__name__}: {str(error)[:150]}", flush=True
            )
            if name == OURS:
                raise
            continue
        base = base or (seconds, memory)
        room = f"{memory:6.2f} GB  x{memory / base[1]:.2f}" if memory else ""
        ratio = f"x{seconds / base[0]:.2f}"
        print(f"{task.name:9} {precision:5} {name:18} {seconds * 1e3:8.2f} ms  {ratio}  {room}", flush=True)


def main(words: list[str]) -> None:
    warnings.simplefilter("ignore")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("tasks", nargs="*", default=list(GPU_TASKS if device == "cuda" else CPU_TASKS))
    parser.add_argument(
        "--precision", nargs="+", choices=PRECISIONS, default=["tf32"] if device == "cuda" else ["fp32"]
    )
    parser.add_argument("--modes", nargs="+", default=[OURS, *OPACUS.values()])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--compiled", action="store_true")
    asked = parser.parse_args(words)
    modes = [OURS] if asked.compiled else asked.modes
    where = torch.cuda.get_device_name() if device == "cuda" else f"{torch.get_num_threads()} threads"
    print(f"torch {torch.__version__}, {where}")
    for name in asked.tasks:
        for precision in asked.precision:
            task = compiled(TASKS[name]) if asked.compiled else TASKS[name]
            compare(task, device, precision, modes, asked.repeats)


if __name__ == "__main__":
    main(sys.argv[1:])
