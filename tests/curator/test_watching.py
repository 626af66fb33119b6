"""Nobody is watched whose answers protect somebody, and everything is put back."""

from __future__ import annotations

from pathlib import Path

import pytest

from discreet.curator import Curator
from discreet.curator.observation import bits_of, engine_of, is_play, schema_of, watching
from discreet.engines import Memory
from discreet.errors import InvalidParameter
from discreet.measurement.releases.additive import Integers, Measure
from discreet.measurement.releases.releaser import Releaser
from discreet.noise import SecureBits, SeededBits
from tests.curator.spies import COUNT, OPTIONS, Spy, clinic


class Silent(Releaser):
    """Lets exact numbers out: what must never happen to somebody's data."""

    def noise(self, measure: Measure, exact: Integers) -> Integers:
        del measure
        return exact


def test_a_watched_answer_is_not_private_and_everything_is_put_back() -> None:
    own = Spy()
    curator = clinic(engine=own)
    releaser = curator._releaser
    with watching(curator, engine=own, releaser=Silent(SeededBits(1)), salt="s"):
        answer = curator.ask(COUNT, epsilon="1e-9")
    assert not answer.private
    assert answer[0]["n"] == int(answer[0]["n"]) > 100  # exact, at an epsilon that would drown it
    with pytest.raises(ZeroDivisionError), watching(curator, engine=Spy(), releaser=Silent(SeededBits(1)), salt="s"):
        raise ZeroDivisionError
    assert (curator._engine, curator._releaser, curator._salt) == (own, releaser, None)


def test_real_curators_are_not_watched() -> None:
    real = Curator(engine=Memory())
    secure = Curator.for_tests(engine=Memory(), bits=SecureBits())
    for curator in (real, secure):
        for look in (engine_of, bits_of, is_play, lambda c: schema_of(c, "visits")):
            with pytest.raises(InvalidParameter) as refused:
                look(curator)
            assert "for_tests" in refused.value.hint
        with (
            pytest.raises(InvalidParameter),
            watching(curator, engine=Memory(), releaser=Releaser(SeededBits(1)), salt="s"),
        ):
            raise AssertionError
        assert curator._salt is None


def test_a_releaser_with_secure_noise_is_refused() -> None:
    """Its answers would be marked as private."""
    curator = clinic()
    with pytest.raises(InvalidParameter), watching(curator, engine=Memory(), releaser=Silent(SecureBits()), salt="s"):
        raise AssertionError
    assert type(curator._releaser) is Releaser


def test_what_watched_curators_answered_is_never_served_by_real_ones(tmp_path: Path) -> None:
    ledger = str(tmp_path / "ledger")
    with clinic(ledger=ledger) as curator:
        assert not is_play(curator)
        with watching(curator, engine=engine_of(curator), releaser=Silent(bits_of(curator)), salt="s"):
            curator.ask(COUNT, epsilon=1)
    real = Curator(ledger, engine=Memory())
    real.protect([], name="visits", **OPTIONS)
    assert not real.ask(COUNT, epsilon=1).replayed
    real.close()
