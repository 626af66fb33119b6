"""What holds for tests, doctests and pages alike: where files go, limits of cost, and what is left out.

Doctests of deep learning need torch, its kernels Triton.
"""

import atexit
import os
import shutil
import tempfile
from importlib.util import find_spec

import pytest
from _pytest.doctest import DoctestItem

# Before anything is imported: processes that tests start inherit it. Ledgers wait for the disk at every commit, which
# takes a thousand times as long as a file in memory, so temporary files go there if there is room.
_MEMORY = "/dev/shm"  # noqa: S108 - in which only folders of new names are made
if "TMPDIR" not in os.environ and os.path.isdir(_MEMORY) and shutil.disk_usage(_MEMORY).free > 4 << 30:
    os.environ["TMPDIR"] = tempfile.tempdir = _MEMORY
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

LONG_PAGES = {"deep.md", "attacks_tracing.md", "learning.md", "audit_query.md", "learning_pipelines.md", "synthetic.md"}
LONG_EXAMPLES = {"discreet.deep.estimators.classifier.Classifier", "discreet.deep.estimators.regressor.Regressor"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leaves long examples of pages and docstrings to `.ci/run` and `make test-slow`."""
    for item in items:
        if isinstance(item, DoctestItem) and item.name in LONG_PAGES | LONG_EXAMPLES:
            item.add_marker(pytest.mark.ci)
            item.add_marker(pytest.mark.slow)
