"""What holds for tests, doctests and pages alike: no anchor in a real state folder, limits of cost, what is left out.

Doctests of deep learning need torch, its kernels Triton.
"""

import atexit
import os
import shutil
import tempfile
from importlib.util import find_spec

# Before anything is imported: processes that tests start inherit it.
_STATE = tempfile.mkdtemp(prefix="discreet-state-")
os.environ["XDG_STATE_HOME"] = _STATE
atexit.register(shutil.rmtree, _STATE, ignore_errors=True)

pytest_plugins = ["tests.cost_limits"]

collect_ignore_glob: list[str] = []
if not find_spec("torch"):
    collect_ignore_glob += [
        "src/discreet/deep/*",
        "tests/deep/small_models.py",
        "tests/deep/replayed.py",
        "docs/deep.md",
    ]
if not find_spec("triton"):
    collect_ignore_glob += ["src/discreet/deep/kernels/*"]
