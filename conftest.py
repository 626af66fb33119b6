"""What is left out where an extra is not installed: doctests of deep learning need torch, its kernels Triton."""

from importlib.util import find_spec

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
