"""RT-081: nothing in the library draws randomness except through noise/rng.py."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.syntax import nodes

DOOR = Path("noise/rng.py")
GENERATORS = {"random", "secrets", "uuid", "torch", "jax", "randomgen", "mimesis", "numpy.random", "scipy.stats"}
ATTRIBUTES = {"random", "urandom", "getrandom", "rvs", "default_rng", "SystemRandom", "RandomState", "rand", "randn"}
ATTRIBUTES |= {"bernoulli_", "normal_", "rand_like", "randint", "randn_like", "randperm", "uniform_"}


def imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []


def leaks(found: Iterable[ast.AST]) -> Iterator[str]:
    """Every import of a generator, every attribute that names one, and every call of an engine's RANDOM()."""
    for node in found:
        yield from (
            name for name in imported(node) if name in GENERATORS - {"scipy.stats"} or name.startswith("numpy.random")
        )
        if isinstance(node, ast.Attribute) and node.attr in ATTRIBUTES:
            yield node.attr
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "random()" in node.value.lower():
            yield node.value


def test_no_other_randomness() -> None:
    found = {path: [*leaks(inside)] for path, inside in nodes().items()}
    assert len(found) > 100
    for path, names in found.items():
        if path.parts[0] == "deep":  # works with its tensors, and draws from it no more than others do
            found[path] = [name for name in names if name != "torch"]
    assert {path: names for path, names in found.items() if names} == {DOOR: ["urandom"]}


@pytest.mark.parametrize(
    "text",
    [
        "import random",
        "from random import gauss",
        "import numpy.random as r",
        "from numpy import random",
        "import numpy as np\nnp.random.laplace()",
        "from numpy.random import default_rng",
        "import os\nos.urandom(8)",
        "import secrets",
        "from scipy import stats\nstats.laplace.rvs()",
        "sql = 'SELECT x + RANDOM() FROM t'",
        "import torch",
    ],
)
def test_the_search_finds_what_it_looks_for(text: str) -> None:
    assert list(leaks(ast.walk(ast.parse(text))))
