"""What is left out where an extra is not installed: doctests of deep learning need torch."""

from importlib.util import find_spec

collect_ignore_glob = (
    []
    if find_spec("torch")
    else ["src/discreet/deep/*", "tests/deep/small_models.py", "tests/deep/replayed.py", "docs/deep.md"]
)
