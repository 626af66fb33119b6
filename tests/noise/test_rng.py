"""The door to randomness: never the same bits twice, never any bits when the system has none."""

from __future__ import annotations

import copy
import errno
import os
import pickle
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from discreet.errors import InternalError, InvalidParameter, RandomnessUnavailable
from discreet.noise import SecureBits, SeededBits, discrete_laplace, rng, system_bits
from discreet.noise.rng import Bits
from tests.noise.forks import draws_of_children

# NIST SP 800-38A, F.5.5 (CTR-AES256.Encrypt): key, initial counter and the output blocks, which are the keystream.
KEY = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
COUNTER = bytes.fromhex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")
KEYSTREAM = bytes.fromhex(
    "0bdf7df1591716335e9a8b15c860c502"
    "5a6e699d536119065433863c8f657b94"
    "1bc12c9c01610d5d0d8bd6a3378eca62"
    "2956e1c8693536b1bee99c73a31576b6"
)  # fmt: skip


class Known(SecureBits):
    """A secure source whose key everybody knows; counts how often it is asked."""

    asked = 0

    def _key(self) -> bytes:
        self.asked += 1
        return KEY + COUNTER


def test_known_answer_of_aes_256_in_counter_mode() -> None:
    block = np.empty(64, dtype=np.uint8)
    Known().fill(block)
    assert block.tobytes() == KEYSTREAM
    lanes = Known().lanes(32)
    assert np.array(lanes, dtype=np.uint16).tobytes() == KEYSTREAM


def test_words_and_integers_are_made_of_lanes_highest_first() -> None:
    lanes, source = Known().lanes(8), Known()
    assert source.word() == lanes[0] << 48 | lanes[1] << 32 | lanes[2] << 16 | lanes[3]
    assert source.integer(20) == (lanes[4] << 16 | lanes[5]) >> 12
    assert source.integer(0) == 0
    assert source.integer(16) == lanes[6]
    assert source.words(3).dtype == np.uint64


@pytest.mark.ci
def test_fork_times_eight_gives_eight_different_draws() -> None:
    """RT-079, with lanes waiting in memory when the process forks."""
    source = SecureBits()
    source.lanes(7)
    drawn = [*draws_of_children(source, 8), source.lanes(16)]
    assert len({tuple(lanes) for lanes in drawn}) == 9


@pytest.mark.ci
def test_the_process_wide_source_survives_a_fork_too() -> None:
    system_bits().lanes(1)
    drawn = [*draws_of_children(system_bits(), 8), system_bits().lanes(16)]
    assert len({tuple(lanes) for lanes in drawn}) == 9


def test_a_fork_while_another_thread_holds_the_lock_does_not_hang() -> None:
    source = SecureBits()
    with source._lock:
        (drawn,) = draws_of_children(source, 1)
    assert len(drawn) == 16


def test_threads_share_the_stream_without_sharing_a_bit() -> None:
    """Eight threads together get exactly the blocks that one reader gets, each once (16 divides the waiting block)."""
    source, alone = SeededBits(1), SeededBits(1)
    start = threading.Barrier(8)

    def read(_: int) -> list[tuple[int, ...]]:
        start.wait()
        return [tuple(source.lanes(16)) for _ in range(1000)]

    with ThreadPoolExecutor(8) as pool:
        together = [block for blocks in pool.map(read, range(8)) for block in blocks]
    assert sorted(together) == sorted(tuple(alone.lanes(16)) for _ in range(8000))
    assert len(set(together)) == 8000


def test_a_new_key_is_taken_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rng, "REKEY_AFTER", 8192)
    source = Known()
    block = np.empty(4096, dtype=np.uint8)
    for _ in range(6):
        source.fill(block)
    assert source.asked == 3
    source.fill(np.empty(64, dtype=np.uint8))
    assert source.asked == 4


def test_seeded_keys_change_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rng, "REKEY_AFTER", 64)
    source = SeededBits(1)
    first, second = (np.empty(64, dtype=np.uint8) for _ in range(2))
    source.fill(first)
    source.fill(second)
    assert first.tobytes() != second.tobytes()


def _refuse(error: Exception) -> Callable[[int], bytes]:
    def urandom(_: int) -> bytes:
        raise error

    return urandom


FAILURES = [_refuse(OSError(errno.EIO, "no entropy")), _refuse(NotImplementedError()), lambda count: bytes(count - 1)]


@pytest.mark.parametrize("urandom", FAILURES, ids=["OSError", "NotImplementedError", "short"])
def test_no_system_randomness_no_noise(urandom: Callable[[int], bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "urandom", urandom)
    source = SecureBits()
    array = np.full(8, 77, dtype=np.uint16)
    with pytest.raises(RandomnessUnavailable):
        source.fill(array)
    assert (array == 77).all()
    for draw in (lambda: discrete_laplace(1, bits=source), lambda: discrete_laplace(1, 5, bits=source), source.word):
        for _ in range(2):  # the second try fails like the first
            with pytest.raises(RandomnessUnavailable):
                draw()


def test_old_lanes_are_not_served_again_when_a_new_key_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rng, "REKEY_AFTER", 2 * 2048)  # one block of waiting lanes
    source = SecureBits()
    source.lanes(2040)
    monkeypatch.setattr(os, "urandom", FAILURES[0])
    for count in (20, 5, 1, 2048):
        with pytest.raises(RandomnessUnavailable):
            source.lanes(count)


def test_recovery_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    source = SecureBits()
    with monkeypatch.context() as broken:
        broken.setattr(os, "urandom", FAILURES[0])
        with pytest.raises(RandomnessUnavailable):
            source.lanes(4)
    assert len(source.lanes(4)) == 4


def test_privacy_marks() -> None:
    assert SecureBits().private
    assert system_bits().private
    assert not SeededBits(1).private
    assert not Bits.private


def test_seeds() -> None:
    assert SeededBits(5).lanes(100) == SeededBits(5).lanes(100)
    firsts = {tuple(SeededBits(seed).lanes(4)) for seed in (0, 1, -1, 2**64, 2**64 + 1, 10**40)}
    assert len(firsts) == 6
    for seed in (True, 1.0, "1", None):
        with pytest.raises(InvalidParameter):
            SeededBits(seed)  # type: ignore[arg-type]


def test_no_environment_variable_seeds_the_secure_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """RT-080."""
    for name in ("PYTHONHASHSEED", "SEED", "DISCREET_SEED"):
        monkeypatch.setenv(name, "0")
    assert SecureBits().lanes(16) != SecureBits().lanes(16)
    with pytest.raises(TypeError):
        SecureBits(seed=1)  # type: ignore[call-arg]


def test_arrays_that_cannot_be_filled_in_place_are_refused() -> None:
    array = np.zeros((8, 8), dtype=np.uint16)
    for view in (array[:, ::2], array.T[1:], array[::-1]):
        with pytest.raises(InternalError):
            SeededBits(1).fill(view)
    assert not array.any()
    SeededBits(1).fill(np.empty((0, 3), dtype=np.uint16))


def test_filling_covers_the_whole_array() -> None:
    """200 000 bytes span several calls of the cipher; a run of 16 zero bytes has probability 2^-110 at most."""
    array = np.zeros((4, 50_000), dtype=np.uint8)
    SeededBits(2).fill(array)
    assert array.reshape(-1, 16).any(axis=1).all()


def test_a_source_cannot_be_copied() -> None:
    """Two copies would hold the same key and the same waiting lanes."""
    for source in (SecureBits(), SeededBits(1)):
        for clone in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="same noise"):
                clone(source)


def test_little_randomness_waits_in_memory() -> None:
    """RT-084: what a restored snapshot could repeat is at most 4 KiB of lanes, and the stream behind the key."""
    source = SecureBits()
    source.lanes(1)
    assert len(source._waiting) <= 2048


def test_large_requests_of_lanes() -> None:
    source = SeededBits(3)
    assert len(source.lanes(5000)) == 5000
    assert len(set(source.lanes(5000)[:100])) > 90
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert source.lanes(0) == []
