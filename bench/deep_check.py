"""Norms and clipped sums on a GPU beside a loop over examples in 64 bits on the processor, for every layer we test.

The kernels' tests run Triton's interpreter, since no GPU is at hand where they run; this script runs what a GPU runs:
every small model of the tests and the models of the benchmark, with all digits, with TF32 and under autocast. It prints
the largest relative errors, and how far one example's clipped gradient reaches into its bound.

    python bench/deep_check.py
"""

from __future__ import annotations

import contextlib
import copy
import sys
from pathlib import Path
from typing import Any

import _deep_environment  # noqa: F401 - first: it may run this script elsewhere
import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from discreet.deep import Flat
from discreet.deep.clipping import LayerCallRecorder, PerExampleGradients
from tests.deep.small_models import MODELS, WORDS, names_of, seeded, values, words

EXAMPLES = 5
PRECISIONS = {"all digits": False, "TF32": True, "bfloat16": True}


def losses_of(out: Tensor) -> Tensor:
    """One loss for each example, with a gradient that depends on the outputs."""
    weights = torch.cos(torch.arange(out.shape[1], dtype=out.dtype, device=out.device))
    return ((out * weights).sin() + out**2 / 2).sum(1)


def gradients(model: nn.Module, x: Tensor, precision: str) -> PerExampleGradients:
    recorder = LayerCallRecorder(model)
    recorder.start(len(x))
    cast: Any = torch.autocast("cuda", torch.bfloat16) if precision == "bfloat16" else contextlib.nullcontext()
    with cast:
        losses = losses_of(model(x).float())
    found = PerExampleGradients(recorder, losses, names_of(model), len(x))
    recorder.close()
    return found


def truth(model: nn.Module, x: Tensor) -> dict[str, Tensor]:
    """The gradient of each example, by a backward pass for each, in 64 bits on the processor."""
    exact = copy.deepcopy(model).double().cpu()
    inputs = x.cpu().double() if x.is_floating_point() else x.cpu()
    rows = []
    for row in inputs:
        loss = losses_of(exact(row[None]))[0]
        rows.append(torch.autograd.grad(loss, list(exact.parameters()), allow_unused=True))
    names = [name for name, _ in exact.named_parameters()]
    return {
        name: torch.stack([torch.zeros_like(p) if row[place] is None else row[place] for row in rows])
        for place, (name, p) in enumerate(zip(names, exact.parameters(), strict=True))
    }


def errors(model: nn.Module, x: Tensor, precision: str) -> tuple[float, float]:
    """The relative error of the sums without clipping, and the norm of one example's clipped part, of the bound 1."""
    rows = truth(model, x)
    found = gradients(model, x, precision)
    with torch.no_grad():
        ones = torch.ones(len(x), dtype=torch.float64, device="cuda")
        sums = found.weighted_sums(dict.fromkeys(found.squared_norms(), ones))
    whole = torch.cat([rows[name].sum(0).flatten() for name in sums])
    ours = torch.cat([sums[name].flatten().double().cpu() for name in sums])
    alone = gradients(model, x[:1], precision).clipped_sum(Flat(1e-3))
    part = torch.cat([value.flatten().double() for value in alone.values()]).norm() / 1e-3
    return float((whole - ours).norm() / whole.norm().clamp(min=1e-30)), float(part)


def main() -> None:
    if not torch.cuda.is_available():
        sys.exit("There is no GPU here.")
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}")
    cases = [(name, make, values((EXAMPLES, *shape))) for name, (make, shape) in MODELS.items()]
    cases += [(name, make, words((EXAMPLES, *shape))) for name, (make, shape) in WORDS.items()]
    for precision, fewer in PRECISIONS.items():
        torch.set_float32_matmul_precision("high" if fewer else "highest")
        torch.backends.cudnn.allow_tf32 = fewer
        worst, reach, failed = ("", 0.0), ("", 0.0), []
        for name, make, x in cases:
            try:
                error, part = errors(seeded(make).cuda(), x.cuda(), precision)
            except Exception as problem:  # noqa: BLE001 - all that fails is told at the end
                failed.append(f"{name}: {type(problem).__name__}: {str(problem)[:120]}")
                continue
            worst = max(worst, (name, error), key=lambda pair: pair[1])
            reach = max(reach, (name, part), key=lambda pair: pair[1])
        told = f"largest error {worst[1]:.1e} ({worst[0]}), a clipped example reaches {reach[1]:.5f} ({reach[0]})"
        print(f"{precision}: {len(cases) - len(failed)} models, {told}", *failed, sep="\n  ", flush=True)


if __name__ == "__main__":
    main()
