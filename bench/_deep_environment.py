"""Runs a benchmark of deep learning where PyTorch is: here, or in the environment of Opacus, or not at all."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PEER = ROOT / ".venv-peers" / "opacus"

if find_spec("torch") is None:
    if not (PEER / ".made").exists():
        print("PyTorch is not installed: make .venv-peers/opacus/.tried, or pip install 'discreet[deep]' opacus")
        sys.exit()
    os.environ["PYTHONPATH"] = str(ROOT / "src")
    os.execv(PEER / "bin" / "python", [str(PEER / "bin" / "python"), *sys.argv])
