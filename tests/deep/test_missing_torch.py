"""Without torch the package works, and says what deep learning needs."""

from __future__ import annotations

from tests.test_start import python

_CODE = """\
import discreet
try:
    from discreet import deep
except ImportError as error:
    print(json.dumps([type(error).__name__, error.module, error.hint]))
"""


def test_the_extra_is_named() -> None:
    expected = ["MissingExtra", "torch", "In a checkout of Discreet, run: pip install '.[deep]'"]
    assert python(_CODE, without=["torch"]) == expected
