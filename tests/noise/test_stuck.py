"""Sources that are broken: bytes of the system that repeat, and bits that never end a draw."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import count, cycle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet.accounting.random_repetitions import Tries
from discreet.errors import RandomnessUnavailable
from discreet.learn.selection.search_plan import draw_tries
from discreet.measurement.releases.releaser import Releaser
from discreet.noise import (
    Bits,
    Coin,
    SecureBits,
    SeededBits,
    bernoulli,
    bernoulli_exp,
    choose_exponential,
    discrete_gaussian,
    discrete_laplace,
    exponential_deviate,
    geometric,
    normal_deviate,
    rng,
    round_real,
    rounded_gaussian,
    rounded_gaussians,
    uniform_below,
)
from discreet.noise.coin import exponential_coin
from discreet.noise.rng import CALL_BYTES, CALLS, TURNS, check_health
from tests.conformance.specimens import SPECIMENS, Specimen
from tests.noise.tape import Tape, spread


# --------------------------------------------------------------------------------------------------- the system's bytes
def stream(seed: int) -> Iterator[bytes]:
    return (hashlib.sha256(f"{seed}/{i}".encode()).digest() for i in count())


def reader(parts: Iterator[bytes]) -> Callable[[int], bytes]:
    """Bytes in order, however they are asked for."""
    left = bytearray()

    def read(size: int) -> bytes:
        while len(left) < size:
            left.extend(next(parts))
        taken = bytes(left[:size])
        del left[:size]
        return taken

    return read


def _anew(size: int) -> bytes:
    return reader(stream(1))(size)


BROKEN: dict[str, Callable[[], Callable[[int], bytes]]] = {
    "zeros": lambda: bytes,
    "one byte": lambda: lambda size: b"\x07" * size,
    "the same for every call": lambda: _anew,
    "a counter": lambda: reader(iter(bytes([i % 256]) for i in count())),
    "a period of 2,000": lambda: reader(cycle([reader(stream(2))(2000)])),
    "every third byte stuck": lambda: reader(part[:2] + b"\xff" for part in stream(3)),
    "half of each byte": lambda: reader(bytes(byte & 0x0F for byte in part) for part in stream(4)),
    "stuck after 3,000": lambda: reader(part if i < 94 else bytes(32) for i, part in enumerate(stream(5))),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_system_source_is_refused_before_anything_is_drawn(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "urandom", BROKEN[name]())
    source, array = SecureBits(), np.full(8, 77, dtype=np.uint16)
    draws: list[Callable[[], object]] = [
        source.ready,
        lambda: source.lanes(1),
        lambda: source.fill(array),
        lambda: discrete_laplace(1, bits=source),
        lambda: Releaser(source),
    ]
    for draw in draws:
        monkeypatch.setattr(os, "urandom", BROKEN[name]())
        with pytest.raises(RandomnessUnavailable):
            draw()
    assert (array == 77).all()


def test_every_new_key_is_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a fork, and when a key is used up."""
    monkeypatch.setattr(rng, "REKEY_AFTER", 2 * 2048)  # one block of waiting lanes
    forked, used = SecureBits(), SecureBits()
    for source in (forked, used):
        source.lanes(8)
    monkeypatch.setattr(os, "urandom", bytes)
    assert len(forked.lanes(8)) == len(used.lanes(8)) == 8  # from the good keys
    forked.after_fork()
    used.lanes(2032)
    for source in (forked, used):
        with pytest.raises(RandomnessUnavailable):
            source.lanes(1)


def test_a_source_that_is_ready_takes_no_second_key(monkeypatch: pytest.MonkeyPatch) -> None:
    source = SecureBits()
    source.ready()
    monkeypatch.setattr(os, "urandom", bytes)
    source.ready()
    assert len(source.lanes(4)) == 4


def judge_constant(source: SecureBits) -> None:
    """A source under a key of zeros: everybody could subtract its noise."""
    refused = False
    try:
        discrete_laplace(1, bits=source)
    except RandomnessUnavailable:
        refused = True
    assert refused


def test_mutants_without_a_health_test_draw_from_a_constant_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "urandom", bytes)
    judge_constant(SecureBits())
    monkeypatch.setattr(rng, "check_health", lambda _: None)
    with pytest.raises(AssertionError):
        judge_constant(SecureBits())


def test_honest_bytes_pass() -> None:
    """A false alarm has a probability of 2^-112; the largest count of a byte is near 16 + 4.5 * 4."""
    for seed in range(200):
        check_health(reader(stream(seed)))
    assert CALLS > 1
    assert CALLS * CALL_BYTES == 4096


# ------------------------------------------------------------------------------------------------- draws without an end
class Stuck(Bits):
    """The same few lanes again and again."""

    def __init__(self, *lanes: int) -> None:
        self._lanes = lanes
        self._next = 0

    def lanes(self, count: int) -> list[int]:
        start, size = self._next, len(self._lanes)
        self._next = (start + count) % size
        return [self._lanes[(start + i) % size] for i in range(count)]

    def fill(self, array: NDArray[Any]) -> None:
        lanes = np.array(self.lanes(array.nbytes // 2 + 1), dtype=np.uint16)
        array.reshape(-1).view(np.uint8)[:] = lanes.view(np.uint8)[: array.nbytes]


each = pytest.mark.parametrize(
    "lanes",
    [
        pytest.param((0,), id="zeros"),
        pytest.param((0xFFFF,), id="ones"),
        pytest.param((0, 0xFFFF), id="alternating lanes", marks=pytest.mark.slow),
        pytest.param((0x5555,), id="alternating bits", marks=pytest.mark.slow),
        pytest.param((0xFFFF,) * 4 + (0,) * 4, id="alternating words", marks=pytest.mark.slow),
        pytest.param((1, 0, 0, 0), id="low", marks=pytest.mark.slow),
    ],
)

FAR = np.array([0, 10**9])  # e^(-10^9) of the second option: a uniform number needs 1.4 * 10^9 ones to reach it
SCALES = [Fraction(1, 100), Fraction(1), Fraction(1 << 54)]


def drawing(sampler: Callable[..., object], parameter: object, *size: int) -> Callable[[Bits], object]:
    return lambda bits: sampler(parameter, *size, bits=bits)


def rounding(sigma: Fraction) -> dict[str, Callable[[Bits], object]]:
    return {
        f"rounded normal {sigma}": lambda bits: rounded_gaussian(sigma, Fraction(1, 3), bits),
        f"rounded normals {sigma}": lambda bits: rounded_gaussians(sigma, np.zeros(5), bits),
    }


DRAWS: dict[str, Callable[[Bits], object]] = {
    **{f"uniform below {n}": drawing(uniform_below, n) for n in (1, 3, 2**16 + 1, 2**100 + 1)},
    **{f"uniforms below {n}": drawing(uniform_below, n, 5) for n in (1, 3, 2**62 + 1)},
    "a rational coin": drawing(bernoulli, "1/3"),
    "rational coins": drawing(bernoulli, "1/3", 5),
    "rational coins of long fractions": drawing(bernoulli, Fraction(1, 3**60), 5),
    **{f"a coin of exp(-{x})": drawing(bernoulli_exp, x) for x in (1, 10**9)},
    **{f"coins of exp(-{x})": drawing(bernoulli_exp, x, 5) for x in (1, 10**9)},
    **{f"geometric {s}": drawing(geometric, s) for s in SCALES},
    **{f"geometrics {s}": drawing(geometric, s, 5) for s in SCALES},
    **{f"Laplace {s}": drawing(discrete_laplace, s) for s in SCALES},
    **{f"Laplaces {s}": drawing(discrete_laplace, s, 5) for s in SCALES},
    **{f"Gaussian {s}": drawing(discrete_gaussian, s) for s in SCALES},
    **{f"Gaussians {s}": drawing(discrete_gaussian, s, 5) for s in SCALES},
    **rounding(Fraction(1)),
    **rounding(Fraction(1, 100)),
    **rounding(Fraction(1 << 30)),
    "exponential": lambda b: round_real(exponential_deviate(b)),
    "normal": lambda b: round_real(normal_deviate(b)),
    "a choice": lambda b: choose_exponential(np.array([0, 1, 7]), Fraction(1, 2), b),
    "a choice with a far option": lambda b: choose_exponential(FAR, Fraction(1), b),
    "a choice with a far option in front": lambda b: choose_exponential(FAR[::-1], Fraction(1), b),
    "tries": lambda b: draw_tries(Tries(gamma=Fraction(1, 10), eta=Fraction(1, 2)), b),
}


def ends(draw: Callable[[Bits], object], bits: Bits) -> bool:
    """Whether a value came out; anything but a value or the one error is a failure, and so is hanging."""
    try:
        draw(bits)
    except RandomnessUnavailable:
        return False
    return True


@pytest.mark.sampled(4)
@each
@pytest.mark.parametrize("name", DRAWS)
def test_every_draw_ends(name: str, lanes: tuple[int, ...]) -> None:
    ends(DRAWS[name], Stuck(*lanes))
    assert ends(DRAWS[name], SeededBits(1))


@pytest.mark.sampled(4)
@each
@pytest.mark.parametrize("specimen", SPECIMENS, ids=lambda specimen: specimen.name)
def test_every_release_ends(specimen: Specimen, lanes: tuple[int, ...]) -> None:
    mechanism = specimen.mechanism()
    ends(lambda bits: mechanism.release(specimen.value, *specimen.arguments, bits=bits), Stuck(*lanes))


CUT_OFF = [
    ("uniform below 3", (0xFFFF,)),
    ("uniforms below 1", (0xFFFF,)),
    ("geometric 1", (0,)),
    ("geometrics 1", (0,)),
    ("Gaussian 1", (0,)),
    ("normal", (0,)),
    ("rounded normals 1", (0,)),
    ("exponential", (0,)),
    ("a coin of exp(-1000000000)", (0,)),
    ("a choice with a far option", (0xFFFF,)),
    ("tries", (0xFFFF,)),
]


@pytest.mark.parametrize(("name", "lanes"), CUT_OFF)
def test_draws_that_such_bits_never_end_are_cut_off(name: str, lanes: tuple[int, ...]) -> None:
    assert not ends(DRAWS[name], Stuck(*lanes))


def test_long_draws_are_not_cut_off() -> None:
    """So many rejections in a row, of probability 1/2 each, are far more than anybody will see, and still end."""
    assert uniform_below(2**15 + 1, bits=Tape([0xFFFF] * (TURNS - 1) + [7])) == 7
    coin: Coin = exponential_coin(Fraction(1))
    tie = [lane for index in range(3) for lane in spread(coin._chunk(index), 64)]
    assert coin.toss(Tape([*tie, 0, 0, 0, 0]))
    assert not coin.toss(Tape([*tie, *[0xFFFF] * 4]))
