"""Notes what every mechanism is given, and answers in its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Seen = list[tuple[Any, tuple[Any, ...]]]


class Recorder:
    """The releases of one run: each mechanism with its private inputs, in order; answers come from a script."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, kinds: list[type], answer: Callable[[Any, int], Any]) -> None:
        self.seen: Seen = []

        def release(mechanism: Any, *inputs: Any, **_: Any) -> Any:
            self.seen.append((mechanism, inputs))
            return answer(mechanism, len(self.seen) - 1)

        for kind in kinds:
            monkeypatch.setattr(kind, "release", release)

    def of(self, call: Callable[[], Any]) -> Seen:
        """What the mechanisms see during a call."""
        self.seen = []
        call()
        return list(self.seen)
