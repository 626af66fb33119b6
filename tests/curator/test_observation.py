"""Nobody is observed whose answers protect somebody, and whoever is observed stays as they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from discreet.curator import Curator
from discreet.curator.observation import bits_of, engine_of, is_in_memory, observe_curator, schemas_of
from discreet.engines import Memory
from discreet.errors import InvalidParameter
from discreet.measurement.releases.additive import AdditiveNoise, Integers
from discreet.measurement.releases.exact_groups import ExactGroups
from discreet.measurement.releases.open_exact import open_exact
from discreet.measurement.releases.releaser import Releaser
from discreet.noise import SecureBits, SeededBits
from tests.curator.clinic import TYPES, visits
from tests.curator.spies import COUNT, OPTIONS, Spy, clinic


class Silent(Releaser):
    """Lets exact numbers out: what must never happen to somebody's data."""

    def noise(self, measure: AdditiveNoise, exact: ExactGroups) -> Integers:
        del measure
        return np.array(open_exact(exact).numbers, dtype=object)


def test_an_observed_answer_is_not_private_and_the_curator_stays_as_it_is() -> None:
    curator, spy = clinic(engine=Spy()), Spy()
    spy.register("visits", visits(3, patients=200), TYPES)
    twin = observe_curator(curator, engine=spy, releaser=Silent(SeededBits(1)), salt="s")
    answer = twin.ask(COUNT, epsilon="1e-9")
    assert not answer.private
    assert answer[0]["n"] == int(answer[0]["n"]) > 100  # exact, at an epsilon that would drown it
    assert curator.ask(f"{COUNT} WHERE age > 1", epsilon="1e-9")[0]["n"] != int(answer[0]["n"])
    assert (spy.reads, engine_of(curator).reads) == (1, 1)  # type: ignore[attr-defined]
    assert curator.entries() == twin.entries()


def test_real_curators_are_not_observed() -> None:
    real = Curator(engine=Memory())
    secure = Curator.for_tests(engine=Memory(), bits=SecureBits())
    for curator in (real, secure):
        for look in (engine_of, bits_of, is_in_memory, schemas_of):
            with pytest.raises(InvalidParameter) as refused:
                look(curator)
            assert "for_tests" in refused.value.hint
        with pytest.raises(InvalidParameter):
            observe_curator(curator, engine=Memory(), releaser=Releaser(SeededBits(1)), salt="s")


def test_a_releaser_with_secure_noise_is_refused() -> None:
    """Its answers would be marked as private."""
    with pytest.raises(InvalidParameter):
        observe_curator(clinic(), engine=Memory(), releaser=Silent(SecureBits()), salt="s")


def test_what_observed_curators_answered_is_never_served_by_real_ones(tmp_path: Path) -> None:
    ledger = str(tmp_path / "ledger")
    with clinic(ledger=ledger) as curator:
        assert not is_in_memory(curator)
        observe_curator(curator, engine=engine_of(curator), releaser=Silent(bits_of(curator)), salt="s").ask(
            COUNT, epsilon=1
        )
    real = Curator(ledger, engine=Memory())
    real.protect([], name="visits", **OPTIONS)
    assert not real.ask(COUNT, epsilon=1).replayed
    real.close()
