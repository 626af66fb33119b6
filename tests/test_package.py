"""The front door: light, complete, and free of what it must not load."""

import subprocess
import sys

import pytest

import discreet
from tests.cases import every

HEAVY = {"numpy", "scipy", "cryptography", "rich"}


def _run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def test_importing_the_package_loads_no_dependency() -> None:
    loaded = set(_run("import sys, discreet; print(*sys.modules)").split())
    assert not loaded & HEAVY


def test_rooms_load_on_first_use() -> None:
    code = "import discreet; print(discreet.mechanisms.Laplace(epsilon=1, sensitivity=1).event.scale)"
    assert _run(code) == "1"


@every("name", discreet.__all__)
def test_every_public_name_is_there(name: str) -> None:
    if name == "deep":
        pytest.importorskip("torch", reason="Deep learning needs torch, which is an extra.")
    assert getattr(discreet, name) is not None
    assert name in dir(discreet)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        _ = discreet.nonsense


def test_budget_is_the_one_of_privacy() -> None:
    assert discreet.Budget is discreet.privacy.Budget
