"""Says which modules the package needs are missing, and makes its sources and tests importable."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

MISSING = [name for name in ("torch", "numpy", "scipy", "cryptography") if find_spec(name) is None]
if MISSING:
    sys.exit(f"Missing here: {', '.join(MISSING)}. Run: pip install {' '.join(MISSING)}")
