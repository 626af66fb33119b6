"""A comparison with the real rows is exact, quick, and says in every form that it is not to be released."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from discreet import synthetic
from discreet.curator import Curator
from discreet.engines import Memory
from discreet.errors import InvalidParameter
from discreet.noise import SeededBits
from discreet.noise.experiment import uniforms
from discreet.privacy import Budget
from discreet.synthetic import Domain, Evaluation, evaluate

SAYS = "reads the real rows without noise. Do not release it."
DOMAIN = {"a": ["x", "y", "z"], "b": range(0, 8, 2), "c": [0, 1], "d": [0, 1, 2, 3]}


def frame(count: int, seed: int) -> dict[str, list[Any]]:
    u = uniforms((count, 4), bits=SeededBits(seed))
    return {
        "a": ["xyz?"[int(4 * value)] for value in u[:, 0]],
        "b": (10 * u[:, 1] - 1).tolist(),
        "c": [None if value < 0.1 else int(value < 0.5) for value in u[:, 2]],
        "d": [int(4 * value**2) for value in u[:, 3]],
    }


def slowly(real: Any, fake: Any, columns: tuple[int, ...], sizes: list[int]) -> float:
    """Cell by cell."""
    apart = 0.0
    for cell in product(*(range(sizes[column]) for column in columns)):
        one, other = (float(np.mean((rows[:, columns] == cell).all(axis=1))) for rows in (real, fake))
        apart += abs(one - other)
    return apart / 2


def test_distances_are_those_that_are_counted_cell_by_cell() -> None:
    domain, real, fake = Domain(DOMAIN), frame(60, 1), frame(45, 2)
    codes, sizes = [domain.encode(rows) for rows in (real, fake)], list(domain.sizes.values())
    found = evaluate(real, fake, domain=domain)
    assert (found.real_rows, found.fake_rows, list(found.marginals)) == (60, 45, [1, 2, 3])
    for degree in (1, 2, 3):
        expected = {
            tuple("abcd"[column] for column in columns): slowly(codes[0], codes[1], columns, sizes)
            for columns in combinations(range(4), degree)
        }
        assert dict(found[degree].distances) == pytest.approx(expected)
        assert found[degree].mean == pytest.approx(np.mean(list(expected.values())))
        assert found[degree].worst == pytest.approx(max(expected.values()))
        assert expected[found[degree].columns] == pytest.approx(found[degree].worst)


def test_the_same_rows_are_at_no_distance_and_disjoint_ones_at_one() -> None:
    rows = frame(50, 1)
    shuffled = {name: column[::-1] for name, column in rows.items()}
    same = evaluate(rows, shuffled, domain=DOMAIN)
    assert max(one.worst for one in same.marginals.values()) == pytest.approx(0, abs=1e-12)
    one, other = {"a": [0] * 5}, {"a": [1] * 7}
    assert evaluate(one, other, domain={"a": [0, 1]})[1].mean == pytest.approx(1)


def test_many_cells_are_counted_as_few_are(monkeypatch: pytest.MonkeyPatch) -> None:
    real, fake = frame(200, 1), frame(100, 2)
    dense = evaluate(real, fake, domain=DOMAIN)
    monkeypatch.setattr("discreet.synthetic.steward_evaluation._FEW", 0)
    few = {name: column[:3] for name, column in real.items()}, {name: column[:2] for name, column in fake.items()}
    sparse = evaluate(*few, domain=DOMAIN)  # more cells than rows
    codes = [Domain(DOMAIN).encode(rows) for rows in few]
    sizes = list(Domain(DOMAIN).sizes.values())
    assert sparse[3].distances["a", "b", "d"] == pytest.approx(slowly(codes[0], codes[1], (0, 1, 3), sizes))
    assert dense[3].mean < sparse[3].mean


def test_it_says_everywhere_that_it_is_not_to_be_released() -> None:
    found = evaluate(frame(20, 1), frame(20, 2), domain=DOMAIN)
    for text in (str(found), repr(found), found._repr_html_(), f"{found}"):
        assert SAYS in text
    assert "for the steward's eyes only" in (Evaluation.__doc__ or "")


def test_a_ledger_hears_nothing_of_it() -> None:
    rows = [{"who": n, "ward": "AB"[n % 2], "age": n % 90} for n in range(200)]
    curator = Curator.for_tests(engine=Memory(), bits=SeededBits(1))
    curator.protect(
        rows,
        name="visits",
        unit="who",
        max_rows=1,
        types={"who": "int", "ward": "text", "age": "int"},
        bounds={"age": (0, 89)},
        keys={"ward": ["A", "B"]},
        budget=Budget(epsilon=4, delta=1e-6),
    )
    made = curator.synthesize("visits", epsilon=1, generator="independent")
    before = curator.entries()
    real = {name: [row[name] for row in rows] for name in rows[0]}
    found = evaluate(real, made, domain=made.model.domain, ignore=["who"])
    assert found.fake_rows == len(made)
    assert curator.entries() == before
    assert SAYS not in "".join(entry.body for entry in curator.entries())


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"real": {"a": []}, "fake": {"a": [0]}}, "rows"),
        ({"real": {"b": [0]}}, "column"),
        ({"degrees": [0]}, "degrees"),
        ({"degrees": [2]}, "degrees"),
        ({"degrees": []}, "degrees"),
        ({"real": 3}, "frame"),
    ],
    ids=str,
)
def test_what_is_refused(change: dict[str, Any], name: str) -> None:
    given: dict[str, Any] = {"real": {"a": [0]}, "fake": {"a": [1]}, "domain": {"a": [0, 1]}} | change
    with pytest.raises(InvalidParameter) as error:
        evaluate(given.pop("real"), given.pop("fake"), **given)
    assert error.value.name == name


def test_too_many_marginals_are_refused() -> None:
    wide = {f"c{place}": [0] for place in range(200)}
    domain = {name: [0, 1] for name in wide}
    with pytest.raises(InvalidParameter):
        evaluate(wide, wide, domain=domain)
    assert evaluate(wide, wide, domain=domain, degrees=[1])[1].worst == 0


def test_it_is_among_the_public_names() -> None:
    assert synthetic.evaluate is evaluate
