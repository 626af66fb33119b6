"""Class F: randomness. Fresh for every answer, from one door, never the analyst's, never before the charge."""

from __future__ import annotations

import ast
import inspect
import os
import struct
import warnings
from pathlib import Path
from typing import Any

import pytest

from discreet.curator import Curator
from discreet.engines import Memory
from discreet.errors import InvalidParameter
from discreet.ledger import Ledger
from discreet.noise import SecureBits, SeededBits
from discreet.privacy import Budget
from tests.redteam.clinics import CROWD, DECLARED, clinic, spent
from tests.syntax import nodes

COUNT = "SELECT COUNT(*) AS n FROM visits"
WIDE = 1e-9  # epsilon: noise of the order of a billion, so that two draws are never the same by chance


def real(ledger: str = ":memory:") -> Curator:
    """A curator as it is used, with secure noise."""
    curator = Curator(ledger, engine=Memory())
    curator.protect(CROWD, name="visits", budget=Budget(epsilon=1), **DECLARED)
    return curator


def forked(curator: Curator, i: int) -> int:
    """What a child process answers."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons warn of forks beside threads; the child does next to nothing
        process = os.fork()
    if process == 0:
        status = 1
        try:
            os.write(write, struct.pack("q", curator.ask(f"{COUNT} WHERE age > {i}", epsilon=WIDE)[0]["n"]))
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        data = pipe.read()
    os.waitpid(process, 0)
    (found,) = struct.unpack("q", data)
    return int(found)


@pytest.mark.ci
def test_forks_draw_different_noise(tmp_path: Path) -> None:
    """RT-079: a curator that has answered, forked four times: no two answers, and not the parent's, are alike."""
    curator = real(str(tmp_path / "book"))
    answers = [int(curator.ask(COUNT, epsilon=WIDE)[0]["n"])]
    answers += [forked(curator, i) for i in range(4)]
    answers.append(int(curator.ask(f"{COUNT} WHERE age > 99", epsilon=WIDE)[0]["n"]))
    assert len(set(answers)) == len(answers)
    assert [entry.kind for entry in curator.history("visits")].count("charge") == len(answers)


def test_curators_of_one_process_draw_different_noise() -> None:
    """RT-079: and so do two curators that were made alike."""
    assert len({real().ask(COUNT, epsilon=WIDE)[0]["n"] for _ in range(8)}) == 8


def test_no_seed_can_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """RT-080: no argument and no variable of the environment seeds a curator."""
    for function in (Curator.__init__, Curator.ask, Curator.protect, Curator.explain):
        assert not {"seed", "bits", "rng", "random_state"} & set(inspect.signature(function).parameters)
    make: Any = Curator
    for name in ("seed", "bits"):
        with pytest.raises(TypeError):
            make(engine=Memory(), **{name: 7})
    for name in ("DISCREET_SEED", "PYTHONHASHSEED", "SEED"):
        monkeypatch.setenv(name, "7")
    assert len({real().ask(COUNT, epsilon=WIDE)[0]["n"] for _ in range(4)}) == 4
    assert real().ask(COUNT, epsilon=0.1).private


def test_tests_say_that_they_are_tests() -> None:
    """RT-080: an answer with seeded noise says so, and a generator of another library is refused."""
    assert not clinic().ask(COUNT, epsilon=1).private
    assert SecureBits().private
    wrong: Any = 7
    with pytest.raises(InvalidParameter):
        Curator.for_tests(engine=Memory(), bits=wrong)


def test_no_engine_draws() -> None:
    """RT-081, RT-083: printed SQL holds no function of chance; tests/noise/test_door.py looks for all others."""
    engines = {path: found for path, found in nodes().items() if path.parts[0] == "engines"}
    assert len(engines) >= 20
    texts = [
        n.value.lower()
        for found in engines.values()
        for n in found
        if isinstance(n, ast.Constant) and isinstance(n.value, str)
    ]
    words = ("random", "rand", "uuid", "setseed", "now")
    assert not [text for text in texts if any(f"{word}(" in text for word in words)]


class Listening(SeededBits):
    """Tells what had been spent when it was first asked for bits."""

    def __init__(self) -> None:
        super().__init__(1)
        self.curator: Curator | None = None
        self.seen: list[str] = []

    def fill(self, array: Any) -> None:
        self._note()
        super().fill(array)

    def lanes(self, count: int) -> list[int]:
        self._note()
        return super().lanes(count)

    def _note(self) -> None:
        if self.curator is not None:
            self.seen.append(spent(self.curator))


def test_noise_is_drawn_after_the_charge_and_once() -> None:
    """RT-083: no bit is drawn before the charge, none for an explanation, none for a replay."""
    bits = Listening()
    curator = Curator.for_tests(engine=Memory(), bits=bits)
    curator.protect(CROWD, name="visits", budget=Budget(epsilon=1), **DECLARED)
    bits.curator = curator
    curator.explain(COUNT, epsilon=0.5)
    assert not bits.seen
    curator.ask(COUNT, epsilon=0.5)
    drawn = len(bits.seen)
    assert drawn >= 1
    assert all(seen.startswith("epsilon=0.5 in") for seen in bits.seen)
    assert curator.ask(COUNT, epsilon=0.5).replayed
    assert len(bits.seen) == drawn


def test_accounts_have_salts_of_their_own_and_keep_them(tmp_path: Path) -> None:
    """Which rows are kept is secret: a salt of 256 bits for each account, the same for as long as it lives."""
    salts = set()
    for i in range(4):
        path = str(tmp_path / str(i))
        real(path).close()
        with Ledger(path, read_only=True) as ledger, Ledger(path, read_only=True) as again:
            salts.add(ledger.account("visits").salt)
            assert again.account("visits").salt == ledger.account("visits").salt
    assert len(salts) == 4
    assert {len(salt) for salt in salts} == {32}


def test_answers_do_not_carry_the_salt(tmp_path: Path) -> None:
    path = str(tmp_path / "book")
    curator = real(path)
    answer = curator.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=0.1)
    with Ledger(path, read_only=True) as ledger:
        salt = ledger.account("visits").salt.hex()
    assert salt not in repr((answer.records, answer.notes, answer.event)) + answer._repr_html_()


def test_a_ledger_in_memory_answers_nothing_in_a_child() -> None:
    """RT-059: a forked copy of a budget would be a second one."""
    curator = real()
    with pytest.raises(struct.error):
        forked(curator, 1)
    assert not [entry for entry in curator.history("visits") if entry.kind == "charge"]
