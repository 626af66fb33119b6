"""The one door to randomness.

`SecureBits` is AES-256 in counter mode, keyed by the operating system: indistinguishable from fair coins without the
key, and about twenty times faster than asking the system for every byte. `SeededBits` is the same generator under a
key that anyone can compute from the seed: for tests, and every `Estimate` drawn from it says that it is not private.

*The system's bytes* are tested before any key is made of them: stuck, repeating and lopsided ones are refused, in the
spirit of NIST SP 800-90B, section 4.4 (repetition count, adaptive proportion), for a source that claims full entropy.
The test finds sources that are broken, not sources that an attacker predicts: those pass every test.

*Loops that honest bits always end.* A sampler that draws until a proposal is accepted has no longest draw. Honest bits
need more than a few turns hardly ever; bits that are stuck may never come to an end, and the answer would hang instead
of failing. So every such loop has at most so many turns, written ``for _ in range(TURNS)`` with ``raise endless()``
behind it. The price: a turn of any sampler here accepts with probability at least 2/5, whatever its scale, so that the
law of a draw that came to an end differs from the exact one by less than 0.6^TURNS = 2^-188 in total variation, for an
array of n entries by n times that. Ties of random bits with the digits of a number go on with probability 2^-64 for
each word, and TIES of them in a row have the probability 2^-256.
"""

from __future__ import annotations

import hashlib
import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from discreet import check
from discreet.errors import InternalError, InvalidParameter, RandomnessUnavailable

Shape = int | tuple[int, ...]

CALLS = 4  # more than one, because a source may give the same bytes to every call
CALL_BYTES = 1024
_TESTED = 16  # bytes of a block that must not repeat
_MOST_OFTEN = 100

TURNS = 256
TIES = 4
MOST_BITS = 1 << 12
"""The most bits of one uniform real. Digits double while a comparison is open, so 600 are known at this limit. An open
comparison then has a probability below 10^-600 times the most steps in the noise, 10^290 / 2^-900 < 10^562."""
WORD = 64
LANE = 16  # bits of a first look: one tie in 65536 tosses
_KEY_BYTES, _NONCE_BYTES = 32, 16
_BLOCK = 2048  # lanes kept for scalar draws: small, so that little randomness waits in memory
_ZEROS = np.zeros(1 << 16, dtype=np.uint8)
REKEY_AFTER = 1 << 32  # bytes under one key; far below 2^68, where counter mode becomes distinguishable from coins
_ALL: weakref.WeakSet[_StreamBits] = weakref.WeakSet()


def check_health(draw: Callable[[int], bytes]) -> None:
    """Refuses a source of bytes whose sample no honest source would give.

    Two tests on 4,096 bytes from 4 calls:

    - *Repetition*: all 256 blocks of 16 bytes differ. Fair bytes have two equal ones with a probability below
      256^2 / 2 * 2^-128 = 2^-113. A constant, a short period and a source that starts anew with each call fail.
    - *Proportion*: no byte comes up more than 100 times, where 16 are expected. By Chernoff's bound a fair one does
      with a probability of (16 / 101)^101 e^(101 - 16) < 2^-145, any of 256 with less than 2^-137.

    Raises:
        RandomnessUnavailable: if one of them fails, falsely less than once in 2^112 times.
    """
    sample = b"".join(draw(CALL_BYTES) for _ in range(CALLS))
    blocks = {sample[start : start + _TESTED] for start in range(0, len(sample), _TESTED)}
    if len(blocks) * _TESTED < len(sample):
        raise RandomnessUnavailable("The operating system's random bytes repeat; no noise can be drawn from them.")
    if max(Counter(sample).values()) > _MOST_OFTEN:
        raise RandomnessUnavailable("The operating system's random bytes are biased; no noise can be drawn from them.")


def endless() -> RandomnessUnavailable:
    """Returns the error of a draw that did not end."""
    return RandomnessUnavailable("The random bits never end a draw, as genuine ones do; nothing was released.")


class Bits(ABC):
    """A source of fair, independent random bits.

    Thread-safe: no bit is handed out twice. `private` says whether results drawn from it may be released.

    >>> from discreet.noise import uniform_below
    >>> class Recorded(Bits):  # numbers below 2^16 that were drawn elsewhere; for one thread
    ...     def __init__(self, numbers):
    ...         self.numbers = iter(numbers)
    ...
    ...     def lanes(self, count):
    ...         return [next(self.numbers) for _ in range(count)]
    ...
    ...     def fill(self, array):
    ...         array.view(np.uint16)[:] = self.lanes(array.nbytes // 2)
    >>> bits = Recorded([40503, 12, 65535])
    >>> uniform_below(100, bits=bits), bits.private
    (79, False)
    """

    private: bool = False

    def ready(self) -> None:  # noqa: B027 - most sources are
        """Makes sure that bits can be drawn, or raises before anything depends on them."""

    @abstractmethod
    def fill(self, array: NDArray[Any]) -> None:
        """Overwrites a contiguous array with random bytes."""

    @abstractmethod
    def lanes(self, count: int) -> list[int]:
        """Returns a few random integers below 2^16, without the cost of an array."""

    def word(self) -> int:
        """Returns one random integer below 2^64."""
        a, b, c, d = self.lanes(WORD // LANE)
        return a << 3 * LANE | b << 2 * LANE | c << LANE | d

    def words(self, count: int) -> NDArray[np.uint64]:
        """Returns an array of random integers below 2^64."""
        array = np.empty(count, dtype=np.uint64)
        self.fill(array)
        return array

    def integer(self, count: int) -> int:
        """Returns a random integer below 2^count."""
        result = 0
        for lane in self.lanes(-(-count // LANE)):
            result = result << LANE | lane
        return result >> (-count % LANE)


class _StreamBits(Bits):
    """AES-256-CTR under keys that a subclass provides."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[int] = []
        self._used = 0
        self._cipher: CipherContext | None = None
        self._left = 0
        _ALL.add(self)

    @abstractmethod
    def _key(self) -> bytes:
        """Fresh key and nonce, 48 bytes."""

    def fill(self, array: NDArray[Any]) -> None:
        """Overwrites a contiguous array with random bytes."""
        if not array.flags.c_contiguous:
            raise InternalError("Random bytes can only be written to a contiguous array.")
        with self._lock:
            self._fill(array.reshape(-1).view(np.uint8))

    def lanes(self, count: int) -> list[int]:
        """Returns a few random integers below 2^16, cut from a small block that waits in memory."""
        with self._lock:
            if self._used + count > len(self._waiting):
                self._refill(count)
            start = self._used
            self._used = stop = start + count
            return self._waiting[start:stop]

    def _refill(self, count: int) -> None:
        self._waiting, self._used = [], 0  # first: if no fresh lanes come, the old ones must not be served again
        block = np.empty(max(_BLOCK, count), dtype=np.uint16)
        self._fill(block.view(np.uint8))
        self._waiting = block.tolist()

    def _fill(self, target: NDArray[np.uint8]) -> None:
        for start in range(0, target.size, _ZEROS.size):
            self._stream(target[start : start + _ZEROS.size])

    def _stream(self, target: NDArray[np.uint8]) -> None:
        cipher = self._ensure_cipher(target.size)
        self._left -= target.size
        cipher.update_into(_ZEROS.data[: target.size], target.data)

    def _ensure_cipher(self, size: int) -> CipherContext:
        """Returns the cipher, under a new key if the old one may not give so many bytes more."""
        if self._cipher is None or self._left < size:
            key = self._key()
            self._cipher = Cipher(algorithms.AES(key[:_KEY_BYTES]), modes.CTR(key[_KEY_BYTES:])).encryptor()
            self._left = REKEY_AFTER
        return self._cipher

    def ready(self) -> None:
        """Takes a key, unless there is one."""
        with self._lock:
            self._ensure_cipher(0)

    def __reduce__(self) -> NoReturn:
        raise TypeError("A source of random bits cannot be copied or pickled: both copies would draw the same noise.")

    def after_fork(self) -> None:
        """Makes the source usable in a child process, where the old lock may be held by a thread that is not there."""
        self._lock = threading.Lock()


class SecureBits(_StreamBits):
    """Random bits fit for privacy: AES-256-CTR with keys from the operating system.

    Formal guarantee: outputs are computationally indistinguishable from fair coins if the system's bytes are; after a
    fork parent and child share no buffered bits and no key; a new key is taken every 4 GiB; if the system source fails,
    or its bytes fail the health test that every new key comes with, `RandomnessUnavailable` is raised and nothing is
    drawn.

    >>> import copy
    >>> bits = SecureBits()
    >>> bits.private, bits.word() == bits.word()
    (True, False)
    >>> copy.copy(bits)
    Traceback (most recent call last):
    TypeError: A source of random bits cannot be copied or pickled: both copies would draw the same noise.
    """

    private = True

    def after_fork(self) -> None:
        """Drops the key and all buffered bits, so that parent and child draw different noise."""
        super().after_fork()
        self._waiting, self._used = [], 0
        self._cipher = None

    def _key(self) -> bytes:
        check_health(_system_bytes)
        return _system_bytes(_KEY_BYTES + _NONCE_BYTES)


def _system_bytes(count: int) -> bytes:
    try:
        drawn = os.urandom(count)
    except (OSError, NotImplementedError) as error:
        raise RandomnessUnavailable("The operating system gave no random bytes; no noise can be drawn.") from error
    if len(drawn) != count:
        raise RandomnessUnavailable("The operating system gave too few random bytes; no noise can be drawn.")
    return drawn


class SeededBits(_StreamBits):
    """Reproducible bits for tests, never for release: anyone who knows the seed can subtract the noise.

    >>> SeededBits(7).word() == SeededBits(7).word()
    True
    """

    private = False

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._seed = check.integer(seed=seed)
        self._epoch = 0

    def _key(self) -> bytes:
        self._epoch += 1
        return hashlib.sha384(f"discreet.SeededBits/{self._seed}/{self._epoch}".encode()).digest()


def _after_fork() -> None:
    for source in list(_ALL):
        source.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

_SYSTEM = SecureBits()


def system_bits() -> Bits:
    """Returns the process-wide secure source that every sampler uses unless it is given another.

    >>> system_bits() is system_bits(), system_bits().private
    (True, True)
    """
    return _SYSTEM


def shape_of(size: Shape) -> tuple[int, ...]:
    """Returns a size argument as a checked shape."""
    sides = size if isinstance(size, tuple) else (size,)
    return tuple(check.integer(size=side, at_least=0) for side in sides)


def source_of(bits: Bits | None) -> Bits:
    """Returns the source to draw from: the given one, or the secure one of the system.

    Raises:
        InvalidParameter: for anything else, such as a generator of another library.

    >>> source_of(None) is system_bits()
    True
    >>> source_of(7)
    Traceback (most recent call last):
    discreet.errors.InvalidParameter: Expected bits=7 to be a source of bits. Pass SecureBits(), or nothing.
    """
    if bits is not None and not isinstance(bits, Bits):
        raise InvalidParameter("bits", bits, "to be a source of bits", "Pass SecureBits(), or nothing.")
    return _SYSTEM if bits is None else bits
