"""Recorded mechanisms: what each was given while a learner was fitted, and what came out, or comes out again.

Learners hand exact numbers to mechanisms themselves. While one is watched, every mechanism of this process asks whether
the context that it runs in is watched. Other threads and other users' fits are not: they release as ever.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.dataclass import dataclass
from discreet.mechanisms import Mechanism
from discreet.noise import Bits, SeededBits, uniform

METHODS = ("release", "choose", "select")
_TRIES = 1 << 12  # streams of one toss: a number is rejected with a chance of at most one half
_LOCK = threading.RLock()  # what is watched is one setting of the whole process

Key = Any
Call = Callable[[Bits | None], Any]
"""Draws as the mechanism does, with these bits; with those that it was given, if there are none."""


@dataclass(frozen=True, slots=True)
class MechanismCall:
    """Holds one release: the mechanism, what it was given, what came out, and the labels that a selection is about."""

    mechanism: Any
    inputs: tuple[Any, ...]
    out: Any
    labels: tuple[Key, ...] | None = None


class MechanismRecorder:
    """Keeps what mechanisms are given.

    Args:
        bits: of the noise; those that each mechanism is given, unless they are.
        frozen: what came out on a neighbour, and comes out again.
        seed: of coins that are tossed for each row: those of the first rows are the same, however many follow.
        alone: labels of so many rows or fewer are never shown: one person may have them alone, and a selection shows
            such with a probability of at most delta.

    Attributes:
        made: the releases, in order.
        strayed: whether a release was not the one that was frozen.
        unjudged: what was done whose privacy does not follow from the inputs of noise.
    """

    def __init__(
        self, bits: Bits | None = None, *, frozen: list[MechanismCall] | None = None, seed: int = 0, alone: int = 0
    ) -> None:
        self.bits, self.frozen, self.seed, self.alone = bits, frozen, seed, alone
        self.made: list[MechanismCall] = []
        self.strayed, self.unjudged = False, ""
        self._inside, self._tosses = 0, 0
        self._labels: tuple[Key, ...] | None = None

    def answer(self, mechanism: Any, inputs: tuple[Any, ...], call: Call) -> Any:
        """Returns what comes out: what came out before, if there was a before."""
        place = len(self.made)
        labels = self._labels if self._labels is not None and len(self._labels) == np.size(inputs[0]) else None
        if self.frozen is None:
            return call(self.bits) if labels is None else self._shown_groups(inputs[0], call(self.bits))
        before = self.frozen[place] if place < len(self.frozen) else None
        if before is None or before.mechanism != mechanism or (labels is None) is not (before.labels is None):
            self.strayed = True
            return call(self.bits)
        if labels is None or before.labels is None:
            self.strayed |= [np.shape(one) for one in inputs] != [np.shape(one) for one in before.inputs]
            return before.out
        shown = dict(zip(before.labels, np.asarray(before.out).tolist(), strict=True))
        return np.array([shown.get(label, False) for label in labels], dtype=bool)

    def take(self, mechanism: Any, inputs: tuple[Any, ...], call: Call) -> Any:
        """Records a release and returns what comes out; calls inside a mechanism are not recorded."""
        if self._inside:
            return call(None)
        kept = tuple(np.array(one, copy=True) if isinstance(one, np.ndarray | list | tuple) else one for one in inputs)
        self._inside += 1
        try:
            out = self.answer(mechanism, inputs, call)
        finally:
            self._inside -= 1
        whole = self._labels is not None and len(self._labels) == np.size(kept[0])
        self.made.append(MechanismCall(mechanism, kept, out, self._labels if whole else None))
        return out

    def toss(self, limit: int, count: int, honest: Callable[[], NDArray[np.int64]]) -> NDArray[np.int64]:
        """Returns numbers below a limit, each a function of its own place and of how many tosses came before."""
        if self._inside:
            return honest()
        start, self._tosses = (self.seed + self._tosses) * _TRIES, self._tosses + 1
        shift = np.uint64(64 - max(1, (limit - 1).bit_length()))
        found = np.full(count, -1, dtype=np.int64)
        for place in range(_TRIES):
            drawn = (SeededBits(start + place).words(count) >> shift).astype(np.int64)
            found = np.where((found < 0) & (drawn >= 0) & (drawn < limit), drawn, found)
            if not (found < 0).any():
                break
        return found

    @contextmanager
    def about(self, labels: tuple[Key, ...]) -> Iterator[None]:
        """Marks numbers inside the context, if as many as these labels, as counts of them."""
        before, self._labels = self._labels, labels
        try:
            yield
        finally:
            self._labels = before

    def _shown_groups(self, counts: Any, kept: Any) -> NDArray[np.bool_]:
        return np.asarray(kept, dtype=bool) & (np.asarray(counts) > self.alone)


_WATCHED: ContextVar[MechanismRecorder | None] = ContextVar("discreet.audit.queries.mechanism_recorder", default=None)


@contextmanager
def watch_mechanisms(recorder: MechanismRecorder) -> Iterator[None]:
    """Makes mechanisms release through a recorder inside this context, and in it alone."""
    with _LOCK:
        undo = list(_patch_mechanisms())
        token = _WATCHED.set(recorder)
        try:
            yield
        finally:
            _WATCHED.reset(token)
            for owner, name, honest in undo:
                setattr(owner, name, honest)


def _patch_mechanisms() -> Iterator[tuple[Any, str, Any]]:
    """Wraps every mechanism and all else that releases, and yields what was there before."""
    modules = ("learner", "linear.perturbation", "linear.tilted_minimum")
    labels, objective, tilted = (import_module(f"discreet.learn.{name}") for name in modules)
    places = [(kind, name) for kind in _kinds(Mechanism) for name in METHODS if name in vars(kind)]
    wrappers: list[tuple[Any, str, Callable[[Any], Any]]] = [(owner, name, _release) for owner, name in places]
    wrappers += [
        (labels.ClassPlan, "read", _wrap_label_read),
        (objective.ObjectivePerturbation, "run", _wrap_unjudged),
        (tilted.TiltedMinimum, "theta", _wrap_unjudged),
        (uniform, "_many_below", _toss),
    ]
    for owner, name, wrapper in wrappers:
        honest = vars(owner)[name]
        setattr(owner, name, wrapper(honest))
        yield owner, name, honest


def _kinds(kind: type[Any]) -> Iterator[type[Any]]:
    """Returns a class and all that are made of it, once each."""
    found: dict[type[Any], None] = {kind: None}
    waiting = [kind]
    while waiting:
        for below in waiting.pop().__subclasses__():
            if below not in found:
                found[below] = None
                waiting.append(below)
    return iter(found)


def _release(honest: Callable[..., Any]) -> Callable[..., Any]:
    def release(self: Any, *inputs: Any, bits: Bits | None = None, **options: Any) -> Any:
        recorder = _WATCHED.get()
        if recorder is None:
            return honest(self, *inputs, bits=bits, **options)
        given = (*inputs, *options.values())
        return recorder.take(
            self, given, lambda own: honest(self, *inputs, bits=bits if own is None else own, **options)
        )

    return release


def _wrap_label_read(honest: Callable[..., Any]) -> Callable[..., Any]:
    def read(self: Any, y: NDArray[Any], bits: Bits) -> Any:
        recorder = _WATCHED.get()
        if recorder is None:
            return honest(self, y, bits)
        with recorder.about(tuple(np.unique(y).tolist())):
            return honest(self, y, bits)

    return read


def _wrap_unjudged(honest: Callable[..., Any]) -> Callable[..., Any]:
    def run(self: Any, *given: Any) -> Any:
        recorder = _WATCHED.get()
        if recorder is not None:
            recorder.unjudged = "objective perturbation"
        return honest(self, *given)

    return run


def _toss(honest: Callable[..., NDArray[np.int64]]) -> Callable[..., NDArray[np.int64]]:
    def toss(limit: int, count: int, bits: Bits) -> NDArray[np.int64]:
        recorder = _WATCHED.get()
        if recorder is None:
            return honest(limit, count, bits)
        return recorder.toss(limit, count, lambda: honest(limit, count, bits))

    return toss
